"""Models as the owner manages them on the command line of a running node."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from embedded_model import MODEL_NAME, model_path
from fake_hub import fake_hub
from gguf_files import make_adapter, make_gguf
from running_nodes import cli

from node.cli.demo.nodes import DemoNode

pytestmark = pytest.mark.e2e


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="kith-m-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def say(node, *arguments):
    done = cli(node, *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


def test_add_show_choose_and_remove(home, tmp_path):
    file = make_gguf(tmp_path / "mine.gguf", template="{{ tools }}")
    other = make_gguf(tmp_path / "hub.gguf", vocabulary=50).read_bytes()
    with (
        fake_hub(files={"tiny-Q8_0.gguf": other}) as hub,
        DemoNode("solo", home, env={"KITH_MODELS_HUB": hub.url}) as node,
    ):
        node.start()
        code, added = say(node, "models", "add", str(file))
        assert (code, [one["name"] for one in added["items"]]) == (0, ["mine"])
        assert cli(node, "models", "add", str(tmp_path / "nothing.gguf")).returncode == 2
        (tmp_path / "text.gguf").write_text("hello")
        code, refused = say(node, "models", "add", str(tmp_path / "text.gguf"))
        assert (code, refused["error"]["code"]) == (1, "model_unusable")

        code, refused = say(node, "models", "add", "hf:some-owner/tiny-GGUF")
        assert code == 4 and "lan" in refused["error"]["message"] and not hub.asked
        assert say(node, "mode", "online")[0] == 0
        code, added = say(node, "models", "add", "hf:some-owner/tiny-GGUF:Q8_0")
        assert (code, [one["name"] for one in added["items"]]) == (0, ["tiny-q8_0"])
        code, entries = say(node, "ledger")
        (entry,) = [one for one in entries["items"] if one["purpose"] == "hub"]
        assert entry["peer"] == hub.url.removeprefix("http://") and entry["outcome"] == "end"

        shown = cli(node, "models", "info", "mine").stdout
        assert "Tiny Test" in shown and "yes, with tools" in shown and "apache-2.0" in shown
        code, refused = say(node, "models", "use", "tiny-q8_0")     # it was tried, and holds nothing to compute with
        assert (code, refused["error"]["code"]) == (1, "model_unusable")
        code, listed = say(node, "models")
        assert {one["name"] for one in listed["items"]} >= {"mine", "tiny-q8_0"}
        assert listed["items"][0]["default"]
        assert cli(node, "models", "remove", "mine").returncode == 4      # nobody to ask
        assert say(node, "models", "remove", "mine", "--yes")[0] == 0
        assert cli(node, "models", "info", "mine").returncode == 7
        assert say(node, "ledger", "verify")[1]["ok"]


@pytest.mark.model
@pytest.mark.soak
def test_an_adapter_beside_its_model(home, tmp_path):
    model_path()
    fits = make_adapter(tmp_path / "calm.gguf")
    strange = make_adapter(tmp_path / "wide.gguf", width=640)
    with DemoNode("solo", home) as node:
        node.start()
        code, refused = say(node, "models", "add", str(strange))
        assert (code, refused["error"]["code"]) == (1, "adapter_alone")
        code, added = say(node, "models", "add", str(fits))
        assert (code, [(one["name"], one["base"]) for one in added["items"]]) == (0, [("calm", MODEL_NAME)])
        assert f"adapter for {MODEL_NAME}" in cli(node, "models").stdout
        shown = cli(node, "models", "info", "calm").stdout
        assert "LoRA" in shown and "chat template" not in shown
        asked = "Write one sentence about the sea."
        plain, with_it, again = (
            say(node, "ask", "--local", *more, asked) for more in ((), ("--adapter", "calm"), ()))
        assert (plain[0], with_it[0], again[0]) == (0, 0, 0)
        assert plain[1]["text"] == again[1]["text"] != with_it[1]["text"]
        code, refused = say(node, "ask", "--adapter", "wide", asked)
        assert (code, refused["error"]["code"]) == (7, "model_missing")
        assert "no adapter called wide" in refused["error"]["message"] and "calm" in refused["error"]["message"]
        assert cli(node, "ask", "--adapter", "calm", "--on", "anybody", asked).returncode == 2
        assert say(node, "models", "use", "calm")[0] == 0
        code, listed = say(node, "models")
        assert [one["name"] for one in listed["items"] if one["default"]] == [MODEL_NAME, "calm"]
        assert say(node, "ask", "--local", "Write one sentence about the sea.")[0] == 0
        assert say(node, "models", "remove", "calm", "--yes")[0] == 0
        code, listed = say(node, "models")
        assert [one["name"] for one in listed["items"] if one["default"]] == [MODEL_NAME]
