"""Every place that could run a request, with numbers and reason, from the same choice as real work; nothing runs."""

import json
from typing import Any

import click
import msgspec
import pytest

from node.api.ports import AskInput, Attachment
from node.cli.cmd_offload import render
from node.daemon.explainer import Explainer
from node.daemon.thinker import Thinker
from node.errors import UnknownPeer
from offload.ports import EngineHealth, ModelInfo
from offload.prediction import Speed
from offload.router import Offer, PeerCandidate

BIG = Offer("qwen-7b", "a" * 64, 8192)
MODEL = ModelInfo(name="smollm2", digest="d" * 64, size_bytes=1, context_tokens=2048)


class Engine:
    """Says how it is; computing anything would be a fault."""

    async def health(self) -> EngineHealth:
        return EngineHealth(state="ready", running=1, queued=2)

    def stream(self, request: Any) -> Any:
        raise AssertionError("explaining runs nothing")


class Peers:
    """Paired peers as a test puts them."""

    def __init__(self, *candidates: PeerCandidate) -> None:
        self.found = candidates

    def candidates(self) -> tuple[PeerCandidate, ...]:
        return self.found

    def find(self, name: str) -> str:
        for one in self.found:
            if one.name == name:
                return one.peer_id
        raise UnknownPeer(f"No paired peer is called {name!r}.")

    def rtt_ms(self, peer_id: str) -> float | None:
        return 2.5 if peer_id == "id-home" else None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"explaining does not {name}")


HOME = PeerCandidate("id-home", "home-pc", "home", True, True, (BIG,), in_flight=3)
BEA = PeerCandidate("id-bea", "bea", "friend", True, False, (BIG,))
CARA = PeerCandidate("id-cara", "cara", "home", True, True, (BIG,), refused_lately="used up")
AWAY = PeerCandidate("id-away", "away", "home", False, False)


def explainer(*peers: PeerCandidate, mode: str = "lan", model: ModelInfo | None = MODEL) -> Explainer:
    directory, engine = Peers(*peers), Engine()

    async def default() -> ModelInfo | None:
        return model

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("explaining sends nothing and asks nobody")

    thinker = Thinker(
        node_name="phone", engine=engine, egress=never, peers=directory,  # type: ignore[arg-type]
        open_channel=never, ask=never, mode=lambda: mode, default_model=default,  # type: ignore[arg-type]
    )
    return Explainer(thinker, engine, directory, lambda: mode)  # type: ignore[arg-type]


async def test_every_place_is_named_with_its_numbers_and_reason() -> None:
    view = await explainer(HOME, BEA, CARA, AWAY).explain(AskInput(text="Sum it up"))
    assert (view.where, view.runs_on, view.model, view.mode) == ("peer", "home-pc", "qwen-7b", "lan")
    assert view.context_tokens == view.prompt_tokens + view.answer_tokens
    lines = {line.name: line for line in view.candidates}
    assert list(lines) == ["phone", "home-pc", "bea", "cara", "away"]
    assert [line.chosen for line in view.candidates] == [False, True, False, False, False]
    here, home = lines["phone"], lines["home-pc"]
    assert (here.able, here.model, here.context_tokens, here.in_flight, here.rtt_ms) == (True, "smollm2", 2048, 3, None)
    assert (home.able, home.model, home.context_tokens, home.in_flight, home.rtt_ms) == (True, "qwen-7b", 8192, 3, 2.5)
    assert (lines["bea"].able, lines["bea"].reason) == (False, "has not granted inference")
    assert lines["bea"].context_tokens == 8192  # what it has, though it may not be used
    assert lines["cara"].refused_lately == "used up"
    assert "used up" in lines["cara"].reason
    assert (lines["away"].model, lines["away"].reason) == (None, "not reachable now")


async def test_the_predicted_parts_are_shown() -> None:
    quick = Offer("qwen-7b", "a" * 64, 8192, "Q4_K_M", warm=False, speed=Speed(0.001, 0.05, 4.0))
    peer = PeerCandidate("id-home", "home-pc", "home", True, True, (quick,), wait_s=7.0, rtt_s=0.01)
    view = await explainer(peer).explain(AskInput(text="Sum it up"))
    line = view.candidates[1]
    assert (line.quantisation, line.warm, line.wait_s, line.load_s, line.answer_s) == ("Q4_K_M", False, 7.0, 4.0, 12.8)
    assert line.prompt_s == round(view.prompt_tokens * 0.001, 2)
    assert line.total_s == line.score_s == round(7.0 + 4.0 + view.prompt_tokens * 0.001 + 12.8 + 0.01, 2)
    row = next(row for row in render(json.loads(msgspec.json.encode(view))).splitlines() if row.startswith("* home-pc"))
    assert row.split()[6:10] == ["7.0", "s", "4.0", "s"]


async def test_the_estimate_grows_with_what_is_given_along() -> None:
    small = await explainer(HOME).explain(AskInput(text="Sum it up"))
    large = await explainer(HOME).explain(AskInput(text="Sum it up", attachments=[Attachment("a.txt", "x" * 6000)]))
    assert large.prompt_tokens == small.prompt_tokens + 2000
    (here, home) = large.candidates
    assert not here.able
    assert "the local model has 2048" in here.reason
    assert home.chosen


@pytest.mark.parametrize(("request_", "mode", "where"), [
    (AskInput(text="x", local=True), "lan", "here"),
    (AskInput(text="x", on="home-pc"), "lan", "peer"),
    (AskInput(text="x", on="bea"), "lan", "nowhere"),
    (AskInput(text="x", model="gpt-4o"), "lan", "nowhere"),
    (AskInput(text="x"), "offline", "here"),
])
async def test_where_the_owner_said(request_: AskInput, mode: str, where: str) -> None:
    view = await explainer(HOME, BEA, mode=mode).explain(request_)
    assert view.where == where
    assert sum(line.chosen for line in view.candidates) == (where != "nowhere")


async def test_a_peer_that_nobody_paired() -> None:
    with pytest.raises(UnknownPeer):
        await explainer(HOME).explain(AskInput(text="x", on="attic"))


async def test_the_screen_marks_the_choice() -> None:
    view = await explainer(HOME, BEA).explain(AskInput(text="Sum it up"))
    text = render(json.loads(msgspec.json.encode(view)))
    lines = text.splitlines()
    assert lines[0] == "runs on home-pc: heavy work, and home-pc is reachable"
    assert lines[1].startswith(f"needs about {view.prompt_tokens} + 1,024 = ")
    assert [line.split()[:3] for line in lines[5:]] == [
        ["phone", "yes", "smollm2"], ["*", "home-pc", "yes"], ["bea", "NO", "qwen-7b"],
    ]
    assert click.unstyle(text) == text
