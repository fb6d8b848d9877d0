"""The upstream engine against llama.cpp's own C++ server with the embedded model, on loopback."""

import json

import pytest
import trio
from chat_templates import chat_template
from embedded_model import model_path
from engine_asks import collect, running_engine
from llama_server import llama_server
from scripted_model import END, write_scripted

from offload.ports import ChatPrompt, Finished, GenerateRequest, Message, Piece, TextPrompt, ToolCall, ToolOffer
from offload.upstream import UpstreamEngine, UpstreamSettings

pytestmark = pytest.mark.model

CHAT = ChatPrompt((Message("user", "Say hello to the 🎉 in Zürich, and count from one to twenty."),))


@pytest.fixture(scope="module")
def address():
    with llama_server(model_path()) as found:
        yield found


@pytest.fixture
def engine(address):
    return UpstreamEngine(UpstreamSettings(address, "llama.cpp"))


async def run(engine, **request):
    wanted = GenerateRequest(**{"request_id": "r", "prompt": CHAT, "max_tokens": 12, **request})
    async with engine.stream(wanted) as stream:
        return [event async for event in stream]


def text_of(found):
    return "".join(event.text for event in found if isinstance(event, Piece))


async def test_it_lists_its_model_with_context_and_size(engine):
    (model,) = await engine.models()
    assert model.context_tokens == 2048 and model.quantisation == "Q4_0" and model.size_bytes > 80_000_000


async def test_a_chat_and_its_continuation_are_one_answer(engine):
    """Greedy: the first tokens, then the rest behind them, are the text that one call writes."""
    whole = await run(engine, max_tokens=16)
    assert isinstance(whole[-1], Finished) and whole[-1].finish_reason == "length"
    assert whole[-1].usage.output_tokens == 16
    begun = await run(engine, max_tokens=6)
    rest = await run(engine, max_tokens=10, text_so_far=text_of(begun))
    assert text_of(begun) + text_of(rest) == text_of(whole)


async def test_the_count_is_the_prompts_own(engine):
    found = await run(engine, max_tokens=1)
    assert await engine.count_tokens(CHAT) == found[-1].usage.prompt_tokens
    assert await engine.count_tokens(TextPrompt("hello there")) == 2


async def test_a_grammar_a_stop_and_a_bad_grammar(engine):
    assert text_of(await run(engine, grammar='root ::= "ab" | "cd"')) in ("ab", "cd")
    stopped = await run(engine, prompt=TextPrompt("one, two, three, four,"), stop=(" six",), max_tokens=32)
    assert stopped[-1].finish_reason == "stop" and " six" not in text_of(stopped)
    failed = await run(engine, grammar="rt ::= oops")
    assert failed[-1].code == "upstream_refused" and "grammar" in failed[-1].message


@pytest.mark.parametrize("prompt", [CHAT, TextPrompt("The number is")])
async def test_a_schema_is_kept(engine, prompt):
    schema = '{"type": "object", "properties": {"n": {"enum": [3, 4]}}, "required": ["n"]}'
    found = await run(engine, prompt=prompt, schema=schema, max_tokens=40)
    assert found[-1].finish_reason != "length"
    assert json.loads(text_of(found))["n"] in (3, 4)


async def test_cancelled_answers_free_their_slots(engine):
    """Two slots: five long answers left early, then one that must get a slot."""
    with trio.fail_after(60):
        for _ in range(5):
            async with engine.stream(GenerateRequest(request_id="x", prompt=CHAT, max_tokens=1500)) as stream:
                async for event in stream:
                    if isinstance(event, Piece):
                        break
        assert isinstance((await run(engine, max_tokens=2))[-1], Finished)


async def test_eight_at_once_keep_apart(engine):
    found = {}

    async def one(number):
        grammar = f'root ::= "answer {number}"'
        found[number] = text_of(await run(engine, request_id=f"r{number}", grammar=grammar))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(one, number)
    assert found == {number: f"answer {number}" for number in range(8)}


async def test_the_server_reads_the_same_call_as_our_engine(tmp_path):
    """Qwen3.5's own template, and a model that writes this call: rendered, read and typed by both alike."""
    call = (
        "<tool_call>\n<function=note_write>\n<parameter=text>\nbuy <b>milk</b>\nand eggs ☕\n</parameter>\n"
        "<parameter=pages>\n2\n</parameter>\n<parameter=loud>\ntrue\n</parameter>\n</function>\n</tool_call>")
    tool = ToolOffer("note_write", "Write a note", json.dumps({
        "type": "object", "required": ["text"], "properties": {
            "text": {"type": "string"}, "pages": {"type": "integer"}, "loud": {"type": "boolean"}}}))
    request = GenerateRequest(
        request_id="r", prompt=ChatPrompt((Message("user", "note milk"),)), tools=(tool,), max_tokens=300)
    write_scripted(
        tmp_path / "m.gguf", request, call + END, template=chat_template("Qwen3.5-4B"),
        plain=("<tool_call>", "</tool_call>", "<think>", "</think>"))
    async with running_engine([tmp_path]) as ours:
        own = await collect(ours, request)
    with llama_server(tmp_path / "m.gguf", context_tokens=4096) as address:
        theirs = await collect(UpstreamEngine(UpstreamSettings(address, "llama.cpp")), request)
    told = {"text": "buy <b>milk</b>\nand eggs ☕", "pages": 2, "loud": True}
    for found in (own, theirs):
        (made,) = (event for event in found if isinstance(event, ToolCall))
        assert (made.name, json.loads(made.arguments)) == ("note_write", told)
        assert (text_of(found), found[-1].finish_reason) == ("", "tool_calls")
    # by their counts the prompt is the same too
    assert own[-1].usage.prompt_tokens == theirs[-1].usage.prompt_tokens
