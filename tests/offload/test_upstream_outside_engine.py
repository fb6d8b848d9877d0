"""An upstream engine on another machine: only what the guard cleared goes there, over TLS to a host of that name."""

from contextlib import asynccontextmanager

import pytest
import trio
from scripted_http import ScriptedServer, make_certificate
from upstream_answers import CHAT, all_of, answering, ask, text_of

from offload import upstream_http
from offload.ports import (
    ChatPrompt,
    Finished,
    Message,
    PastCall,
    ToolOffer,
)
from offload.upstream import UpstreamEngine, UpstreamSettings
from offload.upstream_errors import OutsideRefused

# -- another machine --

class Guard:
    """Masks one name, counts, and restores it; may refuse."""

    def __init__(self, refuse=False):
        self.refuse, self.counted, self.shown, self.open, self.tail = refuse, b"", None, 0, ""
        self.texts = ()

    @asynccontextmanager
    async def clear(self, *, place, principal, request_id, texts):
        if self.refuse:
            raise OutsideRefused("The owner said no.")
        self.shown = (place, principal, request_id, tuple(texts))
        self.texts = tuple(text.replace("Bea Long", "[PERSON_1]").replace("grüße", "hi") for text in texts)
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    def count(self, data):
        self.counted += data

    def restore(self, text):
        self.tail = text[-1:]
        return text[:-1].replace("Grüße", "Bea Long")

    def restore_end(self):
        return self.tail + "!"


@asynccontextmanager
async def outside(tmp_path, monkeypatch, guard, names=("models.example",), **settings):
    """A server that calls itself models.example; connections meant for it are led to loopback."""
    context, trusted = make_certificate(tmp_path, *names)
    server = ScriptedServer(answering())
    dialled = []

    async def dial(place):
        dialled.append(place.host)
        return await trio.open_tcp_stream("127.0.0.1", server.port)

    monkeypatch.setattr(upstream_http, "_dial", dial)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run, context)
        settings = {"models": {"big": "qwen"}, "ca_file": trusted, **settings}
        engine = UpstreamEngine(UpstreamSettings("https://models.example", **settings), guard=guard)
        yield engine, server, dialled
        nursery.cancel_scope.cancel()


async def test_another_machine_gets_what_the_guard_cleared_and_nothing_else(tmp_path, monkeypatch):
    guard = Guard()
    async with outside(tmp_path, monkeypatch, guard) as (engine, server, _):
        found = await all_of(engine, ask(stop=("grüße",), principal="peer-1"))
        assert guard.shown == ("models.example", "peer-1", "r1", ("Be kind to Bea Long.", "grüße 🎉?", "", "grüße"))
        (asked,) = server.asked
        assert b"Bea" not in asked.body and asked.json["stop"] == ["hi"]
        assert asked.json["messages"][0]["content"] == "Be kind to [PERSON_1]."
        assert guard.counted == asked.body and guard.open == 0
        assert text_of(found).endswith("k!") and isinstance(found[-1], Finished)


async def test_tools_and_past_calls_are_cleared_like_any_text(tmp_path, monkeypatch):
    guard = Guard()
    chat = ChatPrompt((
        Message("user", "hi"),
        Message("assistant", "", (PastCall("mail_send", '{"to": "Bea Long"}', "c1"),), "", "Bea Long?"),
        Message("tool", "sent", (), "c1")))
    tool = ToolOffer("mail_send", "Writes to Bea Long", '{"properties": {"to": {"enum": ["Bea Long"]}}}')
    async with outside(tmp_path, monkeypatch, guard) as (engine, server, _):
        await all_of(engine, ask(chat, tools=(tool,)))
        assert guard.shown[3] == (
            "hi", "", "Bea Long?", '{"to": "Bea Long"}', "sent", "", "Writes to Bea Long",
            '{"properties": {"to": {"enum": ["Bea Long"]}}}')
        (asked,) = server.asked
        assert b"Bea" not in asked.body
        assert asked.body.count(b"[PERSON_1]") == 3     # a thought does not go to this kind of server
        for wrong in (ToolOffer("Bea", "", "{}"), ToolOffer("a b", "", "{}")):
            assert (await all_of(engine, ask(tools=(wrong,))))[-1].code == "outside_refused"


async def test_the_check_above_sees_an_unmasked_text(tmp_path, monkeypatch):
    """Negative control: with a guard that clears everything as it is, the name is in the bytes."""
    guard = Guard()
    monkeypatch.setattr(Guard, "texts", property(lambda self: self.shown[3], lambda self, value: None), raising=False)
    async with outside(tmp_path, monkeypatch, guard) as (engine, server, _):
        await all_of(engine, ask())
        assert b"Bea Long" in server.asked[0].body


@pytest.mark.parametrize("guard", [None, Guard(refuse=True)])
async def test_without_the_guards_yes_nothing_is_even_dialled(tmp_path, monkeypatch, guard):
    async with outside(tmp_path, monkeypatch, guard) as (engine, server, dialled):
        found = await all_of(engine, ask())
        assert [event.code for event in found] == ["outside_refused"]
        assert [one.name for one in await engine.models()] == ["big"]
        with pytest.raises(OutsideRefused):
            await engine.count_tokens(CHAT)
        assert (dialled, server.asked) == ([], [])


async def test_a_guard_that_breaks_stops_the_request(tmp_path, monkeypatch):
    class Broken(Guard):
        def clear(self, **_):
            raise RuntimeError("bug")
    async with outside(tmp_path, monkeypatch, Broken()) as (engine, _, dialled):
        with pytest.raises(RuntimeError):
            await all_of(engine, ask())
        assert dialled == []


async def test_a_grammar_and_a_strange_role_do_not_leave(tmp_path, monkeypatch):
    async with outside(tmp_path, monkeypatch, Guard(), kind="vllm") as (engine, _, dialled):
        strange = ChatPrompt((Message("Bea Long", "hi"),))
        for request in (ask(grammar='root ::= "Bea"'), ask(schema='{"const": "Bea"}'), ask(strange)):
            assert (await all_of(engine, request))[-1].code == "outside_refused"
        assert dialled == []


async def test_the_certificate_must_be_trusted_and_name_the_host(tmp_path, monkeypatch):
    async with outside(tmp_path, monkeypatch, Guard(), ca_file=None) as (engine, server, _):
        assert (await all_of(engine, ask()))[-1].code == "upstream_unreachable"
        assert server.asked == []
    async with outside(tmp_path, monkeypatch, Guard(), names=("other.example",)) as (engine, server, _):
        assert (await all_of(engine, ask()))[-1].code == "upstream_unreachable"
        assert server.asked == []
