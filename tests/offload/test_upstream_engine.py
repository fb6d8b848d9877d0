"""The upstream engine over real loopback connections to a server that says what the test wrote."""

import os
import stat
from contextlib import asynccontextmanager

import psutil
import pytest
import trio
from scripted_http import ScriptedServer, events, reply
from upstream_answers import ANSWER, MODELS, all_of, answering, ask, text_of

from offload.ports import (
    Failed,
    Finished,
    Piece,
    Started,
    TextPrompt,
    TokenPrompt,
    ToolCall,
    ToolOffer,
    Usage,
)
from offload.upstream import UpstreamEngine, UpstreamSettings
from offload.upstream_errors import UpstreamMisconfigured
from offload.upstream_http import HttpLimits
from offload.upstream_key import read_key

TEXT = "Grüße, 🎉 ok"


@asynccontextmanager
async def upstream(script, *, hang=False, **settings):
    server = ScriptedServer(script, hang)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        kind = settings.pop("kind", "other")
        engine = UpstreamEngine(UpstreamSettings(f"http://127.0.0.1:{server.port}", kind, **settings))
        yield engine, server
        nursery.cancel_scope.cancel()


async def test_an_answer_streams_with_counts_and_reason():
    async with upstream(answering()) as (engine, server):
        found = await all_of(engine, ask())
        digest = (await engine.models())[0].digest
        assert found[0] == Started(0, 0, digest)
        assert text_of(found) == TEXT
        assert found[-1] == Finished("stop", Usage(9, 2, 4), digest)
        asked = server.asked[-1]
        assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
        assert asked.json["model"] == "qwen" and asked.json["messages"][1]["content"] == "grüße 🎉?"
        assert "authorization" not in asked.headers


async def test_what_it_wrote_last_is_its_sign_of_life():
    """Readiness asks for nothing else; a server that only answers for its models has shown none."""
    async with upstream(answering()) as (engine, _):
        await engine.models()
        health = await engine.health()
        assert (health.state, health.detail, health.last_token_age_s) == ("ready", "", None)
        assert "upstream 127.0.0.1" in health.backend
        await all_of(engine, ask())
        begun_s = (await engine.health()).last_token_age_s
        assert begun_s is not None
        await trio.sleep(0.01)
        later_s = (await engine.health()).last_token_age_s
        assert later_s is not None and later_s > begun_s


async def test_calls_and_thoughts_of_a_server_are_events_like_ours():
    def delta(**fields):
        return {"choices": [{"delta": fields}]}

    def part(index, name, arguments):
        return delta(tool_calls=[{"index": index, "id": f"c{index}", "type": "function", "function": {
            "name": name, "arguments": arguments}}])

    script = answering(events(
        delta(reasoning_content="Hm."), delta(content="One moment."), part(0, "note_write", '{"te'),
        part(0, None, 'xt": "milk"}'), part(1, "clock_now", ""),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"))
    tools = (ToolOffer("note_write", "", "{}"), ToolOffer("clock_now", "", "{}"))
    note, clock = ToolCall("note_write", '{"text":"milk"}'), ToolCall("clock_now", "{}")
    for parallel, calls in ((True, [note, clock]), (False, [note])):
        async with upstream(script) as (engine, server):
            found = await all_of(engine, ask(tools=tools, parallel_calls=parallel))
            assert [event for event in found if isinstance(event, ToolCall)] == calls
            assert [event.thought for event in found if isinstance(event, Piece) and event.thought] == ["Hm."]
            assert (text_of(found), found[-1].finish_reason) == ("One moment.", "tool_calls")
            assert [tool["function"]["name"] for tool in server.asked[-1].json["tools"]] == ["note_write", "clock_now"]


async def test_the_answer_is_the_same_wherever_the_bytes_are_split():
    start = ANSWER.index(b"data:")
    cuts = range(start, len(ANSWER), 7)     # the parser's own tests split at every byte; here, what travels
    state = {}
    async with upstream(lambda asked: answering(*state["pieces"])(asked)) as (engine, _):
        for cut in cuts:
            state["pieces"] = [ANSWER[:cut], ANSWER[cut:]]
            assert text_of(await all_of(engine, ask())) == TEXT, cut
        state["pieces"] = [ANSWER[at:at + 1] for at in range(len(ANSWER))]
        found = await all_of(engine, ask())
        assert text_of(found) == TEXT and isinstance(found[-1], Finished)


async def test_models_are_listed_and_mapped_to_names_of_ours():
    async with upstream(answering()) as (engine, _):
        assert [(one.name, one.context_tokens, one.size_bytes, len(one.digest)) for one in await engine.models()] == [
            ("qwen", 4096, 7, 64), ("tiny", 4096, 0, 64)]
    async with upstream(answering(), models={"small": "tiny", "gone": "x"}, context_tokens=99) as (engine, server):
        (small,) = await engine.models()
        assert (small.name, small.context_tokens) == ("small", 99)
        for name in ("small", small.digest, None):
            assert isinstance((await all_of(engine, ask(model=name)))[-1], Finished)
            assert server.asked[-1].json["model"] == "tiny"
        assert (await all_of(engine, ask(model="gone")))[-1].code == "model_unknown"
        assert (await engine.health()).state == "ready"


async def test_the_list_is_not_asked_for_each_time():
    async with upstream(answering()) as (engine, server):
        for _ in range(5):
            await engine.models()
        assert [one.path for one in server.asked] == ["/v1/models"]


async def test_leaving_the_answer_closes_the_connection():
    begun = ANSWER[:ANSWER.index(b" ok") - 60]
    async with upstream(answering(begun), hang=True) as (engine, server):
        with trio.fail_after(30):
            server.hang = False
            await engine.models()
            server.hang = True
            async with engine.stream(ask()) as stream:
                async for event in stream:
                    if isinstance(event, Piece):
                        break
                assert not server.hung_up.is_set()
                assert (await engine.health()).running == 1
            await server.hung_up.wait()
        assert (await engine.health()).running == 0


@pytest.mark.parametrize(("pieces", "code", "shown"), [
    ([ANSWER[:-200]], "upstream_broken", TEXT),                                       # ends without a reason
    ([events({"choices": [{"text": "ab"}]})], "upstream_broken", "ab"),
    ([events({"choices": [{"text": "ab"}]}, "{broken")], "upstream_broken", "ab"),
    ([events({"choices": [{"text": "ab"}]}, {"error": {"message": "no memory"}})], "upstream_refused", "ab"),
    ([events({"choices": [{"text": "a", "finish_reason": "content_filter"}]}, "[DONE]")], "upstream_refused", "a"),
    ([events({"choices": [{"text": "x" * 9000}]})], "upstream_broken", ""),           # more than 32 tokens can hold
    ([events("x" * 1_100_000)], "upstream_broken", ""),                               # an endless event
    ([reply({"error": {"message": "too long"}}, 400)], "upstream_refused", ""),
    ([reply(b"", 302, "Location: http://127.0.0.1:1/\r\n")], "upstream_refused", ""),
    ([reply(b"", 401)], "upstream_refused", ""),
    ([b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\ndata: "], "upstream_broken", ""),
    ([b"SSH-2.0-x\r\n"], "upstream_broken", ""),
    ([b"HTTP/1.1 200 OK\r\nX: " + b"y" * 80_000], "upstream_broken", ""),
    ([], "upstream_broken", ""),
])
async def test_every_bad_end_is_one_failed_event_and_keeps_what_came(pieces, code, shown):
    def script(asked):
        return [reply(MODELS)] if asked.path.endswith("/v1/models") else pieces
    async with upstream(script) as (engine, _):
        found = await all_of(engine, ask())
        assert isinstance(found[-1], Failed) and found[-1].code == code, found
        assert text_of(found) == shown
        assert found[-1].message and found[-1].hint


async def test_requests_that_can_not_be_served_never_go_out():
    async with upstream(answering()) as (engine, server):
        await engine.models()
        for request, code in (
            (ask(TokenPrompt((1, 2))), "bad_prompt"), (ask(lane="exact"), "lane_unsupported"),
            (ask(grammar='root ::= "a"'), "bad_grammar"), (ask(text_so_far="a"), "bad_request"),
            (ask(TextPrompt("")), "bad_prompt"),
        ):
            assert (await all_of(engine, request))[-1].code == code
        assert len(server.asked) == 1


async def test_nobody_there_is_a_failure():
    nobody = UpstreamEngine(UpstreamSettings("http://127.0.0.1:1"))
    assert (await all_of(nobody, ask()))[-1].code == "upstream_unreachable"
    assert await nobody.models() == [] and (await nobody.health()).state == "no_model"


@pytest.mark.parametrize(("pieces", "limits", "code"), [
    ([b"HTTP/1.1 20"], HttpLimits(first_s=0.05), "upstream_unreachable"),
    ([ANSWER[:300]], HttpLimits(idle_s=0.05), "upstream_broken"),
])
async def test_a_server_that_falls_silent_is_given_up(pieces, limits, code):
    server = ScriptedServer(answering(*pieces))
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        engine = UpstreamEngine(UpstreamSettings(f"http://127.0.0.1:{server.port}", limits=limits))
        await engine.models()
        server.hang = True
        with trio.fail_after(30):
            assert (await all_of(engine, ask()))[-1].code == code
            await server.hung_up.wait()
        nursery.cancel_scope.cancel()


async def test_a_server_on_a_unix_socket(tmp_path):
    path = tmp_path / "engine.sock"
    server = ScriptedServer(answering())
    listener = trio.socket.socket(trio.socket.AF_UNIX)
    await listener.bind(str(path))
    listener.listen(4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, server._serve, [trio.SocketListener(listener)])
        engine = UpstreamEngine(UpstreamSettings(f"unix:{path}"))
        assert text_of(await all_of(engine, ask())) == TEXT
        nursery.cancel_scope.cancel()


# -- the key --

async def test_the_key_is_sent_from_a_private_file_and_from_no_other(tmp_path):
    path = tmp_path / "key"
    path.write_text("sk-123\n")
    path.chmod(0o600)
    async with upstream(answering(), key_file=path) as (engine, server):
        await all_of(engine, ask())
        assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer sk-123"}
        path.chmod(0o640)
        count = len(server.asked)
        found = await all_of(engine, ask())
        assert found[-1].code == "upstream_misconfigured" and "chmod 600" in found[-1].message
        assert len(server.asked) == count


@pytest.mark.parametrize("content", ["", "two words", "a\nb", "ü", "x" * 5000, "a\x00b"])
def test_a_file_that_holds_no_key(tmp_path, content):
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(UpstreamMisconfigured):
        read_key(path)


def test_a_key_is_no_pipe_and_must_exist(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    for path in (tmp_path / "pipe", tmp_path / "absent"):
        with pytest.raises(UpstreamMisconfigured):
            read_key(path)


async def test_answers_that_end_in_any_way_leave_no_connection_behind():
    state = {"pieces": [ANSWER]}
    async with upstream(lambda asked: answering(*state["pieces"])(asked)) as (engine, _):
        await all_of(engine, ask())
        await trio.sleep(0.05)
        before = len(psutil.Process().net_connections())
        for number in range(60):
            state["pieces"] = [ANSWER, ANSWER[:700], b"HTTP/1.1 500 X\r\n\r\n", reply(b"{}", 400)][number % 4:][:1]
            async with engine.stream(ask()) as stream:
                async for _ in stream:
                    if number % 3 == 0:
                        break
        with trio.fail_after(30):
            while len(psutil.Process().net_connections()) > before:
                await trio.sleep(0.02)
        assert (await engine.health()).running == 0
