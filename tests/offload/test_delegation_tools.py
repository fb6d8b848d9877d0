"""Tool calls and thoughts for a peer, computed by a real worker and carried by both drivers of /kith/infer/1."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import trio
from memory_channel import ALICE, BOB, TestClearance, memory_channels
from scripted_model import END, write_scripts
from tool_asks import LIMITS, NOTE, NOTE_CALL, QWEN, TOOLS

from offload.client import AnswerRefused, RemoteAnswer, ThoughtArrived, ask_peer
from offload.local_engine import LocalEngine
from offload.ports import ChatPrompt, GenerateRequest, Message
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.content import content_texts
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, Part, PastCall, PromptParts, ToolCallArrived, ToolOffer
from protocol.names import INFER

pytestmark = pytest.mark.model

OFFERS = tuple(ToolOffer(tool.name, tool.description, tool.parameters) for tool in TOOLS)
THOUGHT = "The list. "
SCRIPT = f"{THOUGHT}\n</think>\n\nOne moment.\n\n{NOTE_CALL}"
GRANT = Grant(
    services=("infer",), models=(ANY_MODEL,), tokens_per_day=100_000, max_context=4096, max_concurrency=1,
    not_after_s=2**40, issued_by=BOB, issued_to=ALICE, epoch=1)


class Grants:
    def grant_for(self, peer_id: str) -> Grant:
        return GRANT

    def ran_out(self, peer_id: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Usages:
    async def tokens_on(self, peer_id: str, day: date) -> int:
        return 0

    async def add_tokens(self, peer_id: str, day: date, **_: int) -> None:
        pass


def request(text: str, **changes: Any) -> InferRequest:
    return InferRequest(**({
        "request_id": bytes(16), "prompt": PromptParts((Part("user", text),)), "max_tokens": 400, "deadline_s": 60,
        "tools": OFFERS, "thinking_tokens": 50} | changes))


async def ask(server: InferenceServer, asked: InferRequest) -> tuple[RemoteAnswer, list[Any]]:
    near, far = memory_channels(INFER)
    found: list[Any] = []

    async def on_text(text: str) -> bool:
        found.append(text)
        return True

    async def on_aside(aside: Any) -> None:
        found.append(aside)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, far)
        answer = await ask_peer(near, asked, TestClearance(content_texts(asked)), on_text, on_aside=on_aside)
        nursery.cancel_scope.cancel()
    return answer, found


async def test_a_peer_gets_calls_thoughts_and_text_and_can_go_on_from_any_of_them(tmp_path: Path) -> None:
    own = GenerateRequest(
        request_id="r", prompt=ChatPrompt((Message("user", "note it"),)), tools=TOOLS, thinking_tokens=50)
    (adjusted,) = write_scripts(tmp_path / "m.gguf", [(own, SCRIPT)], template=QWEN)
    assert adjusted == own
    engine = LocalEngine([tmp_path], limits=LIMITS)
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        server = InferenceServer(engine, Grants(), QuotaBook(Usages(), lambda: date(2026, 3, 1)))
        answer, found = await ask(server, request("note it"))
        (call,) = answer.calls
        assert (call.name, call.repaired) == ("note_write", False)
        assert json.loads(call.arguments_json) == {"text": "buy <b>milk</b>\nand eggs ☕", "pages": 2, "loud": True}
        assert (answer.text, answer.finish_reason) == ("One moment.", "tool_calls")
        thought = "".join(aside.text for aside in found if isinstance(aside, ThoughtArrived))
        assert thought == THOUGHT.rstrip()
        kinds = [type(aside) for aside in found]
        assert kinds[-1] is ToolCallArrived     # in the order in which they were written
        assert kinds.index(str) > kinds.index(ThoughtArrived)
        assert answer.token_count == len(SCRIPT.encode())

        # the slot and the grant's only place are free at once
        again, _ = await ask(server, request("note it"))
        assert again.calls == answer.calls

        # another provider goes on from the ids that the peer told, wherever it broke off
        model = (await engine.models())[0].digest
        for at in (4, len(THOUGHT) + 20, len(SCRIPT) - 60):
            ids = tuple(SCRIPT.encode()[:at])
            told, half = _shown(SCRIPT, at)
            rest, _ = await ask(server, request(
                "note it", model_digest=model, resume_cursor=7, token_ids_so_far=ids, text_so_far=told,
                thought_so_far=half, max_tokens=400 - at))
            assert rest.calls == answer.calls
            assert rest.text == answer.text
        nursery.cancel_scope.cancel()


def _shown(script: str, at: int) -> tuple[str, str]:
    """What of text and thought the first tokens are sure to have shown: one token each, all of it ASCII up to there."""
    head = script[:at]
    thought, _, rest = head.partition("\n</think>\n\n")
    return rest.partition("\n\n<tool_call>")[0], thought.rstrip() if "</think>" in head else head[:1]


async def test_what_a_peer_cannot_be_served_is_refused_in_the_wires_words(tmp_path: Path) -> None:
    own = GenerateRequest(request_id="r", prompt=ChatPrompt((Message("user", "x"),)))
    write_scripts(tmp_path / "m.gguf", [(own, f"Fine.{END}")], template=QWEN)
    engine = LocalEngine([tmp_path], limits=LIMITS)
    refused = []
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        await engine.warm()     # a cold model is admitted while it loads; then it is too late to refuse
        server = InferenceServer(engine, Grants(), QuotaBook(Usages(), lambda: date(2026, 3, 1)))
        for tools in ((ToolOffer("f", "", '{"type": "string"}'),), (ToolOffer("f", "", "{}"),)):
            try:
                await ask(server, request("x", tools=tools, max_tokens=8))
            except* AnswerRefused as errors:
                refused += [error.code for error in errors.exceptions]
        # a history with a bad call in it is no reason to refuse
        talk = PromptParts((
            Part("user", "note"), Part("assistant", "", (PastCall(NOTE.name, '{"text": "mi', "c1"),)),
            Part("tool", "bad", call_id="c1"), Part("user", "and?")))
        answer, _ = await ask(server, request("", prompt=talk, max_tokens=8))
        assert answer.finish_reason == "length"
        nursery.cancel_scope.cancel()
    assert refused == ["tools_unsupported"]
