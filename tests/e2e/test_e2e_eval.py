"""kith eval on a real node with the embedded model: every answer is a whole call, and the figures add up."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from embedded_model import models_folder
from running_nodes import cli

from node.cli.demo.nodes import DemoNode

pytestmark = [pytest.mark.e2e, pytest.mark.model]

TOOL = {"name": "set_timer", "description": "Set a timer.", "parameters": {
    "type": "dict", "required": ["minutes"], "properties": {"minutes": {"type": "integer", "description": "Minutes."}}}}
OTHER = {"name": "get_weather", "description": "The weather of a city.", "parameters": {
    "type": "dict", "required": ["city"], "properties": {"city": {"type": "string", "description": "City."}}}}


def case(case_id, text, functions):
    return {"id": case_id, "question": [[{"role": "user", "content": text}]], "function": functions}


CASES = [
    case("simple_1", "Set a timer for 7 minutes.", [TOOL]),
    case("multiple_1", "Set a timer for 9 minutes.", [TOOL, OTHER]),
    case("irrelevance_1", "Who wrote Hamlet?", [TOOL]), case("parallel_1", "Timers for 3 and 4 minutes.", [TOOL]),
]
ANSWERS = [
    {"id": "simple_1", "ground_truth": [{"set_timer": {"minutes": [7]}}]},
    {"id": "multiple_1", "ground_truth": [{"set_timer": {"minutes": [9]}}]},
    {"id": "parallel_1", "ground_truth": [{"set_timer": {"minutes": [3]}}, {"set_timer": {"minutes": [4]}}]},
]


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="kith-e-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_cases_of_a_file_with_answers_beside_it(home, tmp_path):
    models_folder()
    file = tmp_path / "BFCL_test.json"
    (tmp_path / "possible_answer").mkdir()
    file.write_text("\n".join(map(json.dumps, CASES)))
    (tmp_path / "possible_answer" / file.name).write_text("\n".join(map(json.dumps, ANSWERS)))
    (tmp_path / "none.json").write_text("hello")
    with DemoNode("solo", home) as node:
        node.start()
        report = json.loads(cli(node, "eval", str(file), "--json").stdout)
        assert report["left_out"] == {"several calls at once": 1} and report["cases"] == 3
        kinds = {kind["kind"]: kind for kind in report["kinds"]}
        assert set(kinds) == {"simple", "multiple", "irrelevance"}
        assert all(kind["broken"] == 0 for kind in kinds.values()), "the schema holds every answer"
        assert report["right"] == sum(kind["right"] for kind in kinds.values()) and report["output_tokens"] > 0
        assert kinds["simple"]["tool"] + kinds["simple"]["abstained"] == 1
        assert report["planning"]["allowed"] is False and "60 cases" in report["planning"]["why_not"]

        own = json.loads(cli(node, "eval", str(file), "--own-format", "--must-call", "--json").stdout)
        assert "own format" in own["chooser"]
        assert all(kind["broken"] == kind["abstained"] == 0 for kind in own["kinds"]), "each is held to a call"
        gated = json.loads(cli(node, "eval", str(file), "--gated", "--json").stdout)
        kinds = {kind["kind"]: kind for kind in gated["kinds"]}
        assert kinds["simple"]["tool"] == kinds["multiple"]["tool"] == kinds["irrelevance"]["abstained"] == 1
        assert gated["planning"]["allowed"] is False and "own choice" in gated["planning"]["why_not"]
        shown = cli(node, "eval", str(file), "--cases", "1")
        assert shown.returncode == 0 and "ARG VALUES" in shown.stdout
        assert cli(node, "eval", str(tmp_path / "none.json")).returncode == 2
        assert cli(node, "eval", str(file), "--model", "nothing").returncode == 7
