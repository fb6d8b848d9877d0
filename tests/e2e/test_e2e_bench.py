"""kith bench on a real node with the embedded model: every figure is there, and the process's memory is looked at."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from embedded_model import models_folder
from llama_server import llama_server
from running_nodes import cli

from node.cli.demo.nodes import DemoNode

pytestmark = [pytest.mark.e2e, pytest.mark.model]

SMALL = ("--prompt", "32", "--output", "4", "--rounds", "1")


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="kith-b-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_the_local_engine_and_an_upstream_one_are_measured(home):
    model = models_folder() / "SmolLM2-135M-Instruct.Q4_0.gguf"
    with llama_server(model) as address:
        settings = {"KITH_UPSTREAM_URL": address, "KITH_UPSTREAM_KIND": "llama.cpp"}
        with DemoNode("solo", home, env=settings) as node:
            node.start()
            done = cli(node, "bench", "--streams", "1,2", *SMALL, "--json")
            report = json.loads(done.stdout)
            assert [row["streams"] for row in report["rows"]] == [1, 2]
            assert all(row["output_tokens_per_s"] > 0 and row["prompt_tokens_per_s"] > 0 for row in report["rows"])
            assert all(abs(row["prompt_tokens"] - 32) <= 8 for row in report["rows"])
            assert report["load_s"] > 0 and report["memory_bytes"] > 90_000_000 and report["context_tokens"] == 4096

            listed = json.loads(cli(node, "models", "--json").stdout)["items"]
            (theirs,) = [one for one in listed if one["name"].endswith(".gguf")]
            shown = cli(node, "bench", theirs["digest"], "--streams", "1", *SMALL)
            assert shown.returncode == 0 and "WRITE tok/s" in shown.stdout and "2048 tokens" in shown.stdout
            assert cli(node, "bench", "nothing-like-it").returncode == 7
            assert cli(node, "bench", "--streams", "x").returncode == 2
