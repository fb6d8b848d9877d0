"""The pure parts of the upstream engine: events out of any pieces, addresses, calls and replies."""

import contextlib
import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.errors import BadGrammar, BadPrompt, BadRequest, LaneUnsupported
from offload.ports import (
    ChatPrompt,
    GenerateRequest,
    Message,
    PastCall,
    Piece,
    TextPrompt,
    TokenPrompt,
    ToolCall,
    ToolOffer,
    Usage,
)
from offload.upstream_calls import chat_call, text_call, tokens_call
from offload.upstream_errors import UpstreamBroken, UpstreamMisconfigured, UpstreamRefused
from offload.upstream_place import parse_place
from offload.upstream_sse import EventSplitter
from offload.upstream_tools import CallCollector
from offload.upstream_wire import CallPart, decode_chunk, decode_models, decode_tokens, finish_word, refusal

CHAT = ChatPrompt((Message("user", "hello"),))

# The examples of the WHATWG HTML standard, 9.2.6, and what it says they mean (data only); then the three line ends.
SPECIFIED = [
    (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
    (b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
     [b"first event", b"second event"]),
    (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
    (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
    (b"\xef\xbb\xbfdata: a\r\rdata: b\r\n\r\ndata: c\n\r\n: x\r\n\r\n", [b"a", b"b", b"c"]),
    ("event: x\r\ndata: über 🎉 \u2028 end\r\n\r\n".encode(), ["über 🎉 \u2028 end".encode()]),
]


@pytest.mark.parametrize(("stream", "wanted"), SPECIFIED)
def test_events_are_the_specified_ones_at_every_split(stream, wanted):
    for at in range(len(stream) + 1):
        splitter = EventSplitter()
        assert [*splitter.feed(stream[:at]), *splitter.feed(stream[at:])] == wanted, at
    splitter = EventSplitter()
    assert [event for byte in stream for event in splitter.feed(bytes([byte]))] == wanted


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_any_bytes_in_any_pieces_give_the_same_events(stream, cuts):
    whole, pieces = EventSplitter(), EventSplitter()
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    parts = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert [event for part in parts for event in pieces.feed(part)] == whole.feed(stream)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 60, b": " + b"x" * 60, b"data: 0123456789\n" * 5])
def test_an_event_above_the_limit_is_refused_and_one_below_is_not(line):
    with pytest.raises(UpstreamBroken):
        EventSplitter(50).feed(line)
    assert EventSplitter(200).feed(line + b"\n\n") is not None


@pytest.mark.parametrize(("url", "name", "here", "prefix"), [
    ("http://127.0.0.1:8080", "127.0.0.1:8080", True, ""),
    ("http://localhost:11434/v1/", "localhost:11434", True, ""),
    ("http://[::1]:8000/llm/v1", "[::1]:8000", True, "/llm"),
    ("https://127.8.9.10", "127.8.9.10", True, ""),
    ("https://models.example/x", "models.example", False, "/x"),
    ("https://10.0.0.7:8443", "10.0.0.7:8443", False, ""),
    ("https://localhost.example", "localhost.example", False, ""),
    ("unix:/run/llama.sock", "localhost", True, ""),
])
def test_an_address_is_taken_apart(url, name, here, prefix):
    place = parse_place(url)
    assert (place.name, place.here, place.prefix) == (name, here, prefix)


@pytest.mark.parametrize("url", [
    "", "127.0.0.1:8080", "ftp://127.0.0.1", "http://models.example", "http://10.0.0.7", "http://0.0.0.0:1", "unix:",
    "http://user:key@127.0.0.1", "http://127.0.0.1/?key=1", "http://127.0.0.1:99999", "http://127.0.0.1/a b",
    "http://127.0.0.1/\r\nX: y", "http://[::1", "http://127.0.0.1.example",
])
def test_other_addresses_are_refused_with_words(url):
    with pytest.raises(UpstreamMisconfigured):
        parse_place(url)


def body_of(call):
    return json.loads(call.body)


def test_a_chat_is_asked_in_the_words_of_the_interface():
    request = GenerateRequest(
        request_id="1", prompt=CHAT, max_tokens=7, temperature=0.5, top_p=0.9, seed=3, stop=("END",))
    call = chat_call(request, "big", "other")
    assert call.path == "/v1/chat/completions"
    assert body_of(call) == {
        "model": "big", "messages": [{"role": "user", "content": "hello"}], "stream": True,
        "stream_options": {"include_usage": True}, "max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "seed": 3,
        "stop": ["END"],
    }


def test_tools_and_past_calls_are_asked_in_the_words_of_the_interface():
    chat = ChatPrompt((
        Message("user", "note milk"),
        Message("assistant", "", (PastCall("note_write", '{"text": "mi', "c1"),), "", "So."),
        Message("tool", "bad", (), "c1")))
    tool = ToolOffer("note_write", "Write", '{"type": "object", "properties": {"text": {"type": "string"}}}')
    request = GenerateRequest(
        request_id="1", prompt=chat, tools=(tool,), tool_choice="required", parallel_calls=True, thinking_tokens=9)
    for kind in ("llama.cpp", "vllm", "ollama", "other"):
        body = body_of(chat_call(request, "m", kind))
        user, call, result = body["messages"]
        assert call["tool_calls"] == [{"id": "c1", "type": "function", "function": {
            "name": "note_write", "arguments": '{"text":"{\\"text\\": \\"mi"}'}}]
        assert (user["role"], result) == ("user", {"role": "tool", "content": "bad", "tool_call_id": "c1"})
        assert body["tools"] == [{"type": "function", "function": {
            "name": "note_write", "description": "Write", "parameters": json.loads(tool.parameters)}}]
        assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", True)
        told = kind in ("llama.cpp", "vllm")
        assert (body.get("chat_template_kwargs") == {"enable_thinking": True}) == told
        assert (call.get("reasoning_content") == "So.") == told
    named = msgspec.structs.replace(request, named_tool="note_write", tool_choice="none")
    assert body_of(chat_call(named, "m", "other"))["tool_choice"] == {
        "type": "function", "function": {"name": "note_write"}}
    none = msgspec.structs.replace(request, tool_choice="none")
    assert "tools" not in body_of(chat_call(none, "m", "other"))
    for changes in (
        {"tools": (ToolOffer("f", "", "{"),)}, {"text_so_far": "x"}, {"thought_so_far": "x"}, {"adapter": "a"},
        {"calls_so_far": 1},
    ):
        with pytest.raises(BadRequest):
            chat_call(msgspec.structs.replace(request, **changes), "m", "vllm")


def test_each_kind_goes_on_from_a_text_in_its_own_way():
    request = GenerateRequest(request_id="1", prompt=CHAT, text_so_far="Good mor")
    vllm = body_of(chat_call(request, "m", "vllm"))
    assert vllm["messages"][-1] == {"role": "assistant", "content": "Good mor"}
    assert (vllm["continue_final_message"], vllm["add_generation_prompt"]) == (True, False)
    assert "continue_final_message" not in body_of(chat_call(request, "m", "ollama"))
    assert body_of(text_call(request, "<user>hello<assistant>", "m", "llama.cpp"))["prompt"].endswith("nt>Good mor")
    with pytest.raises(BadRequest):
        chat_call(request, "m", "other")


def test_a_grammar_goes_under_the_name_that_each_kind_knows():
    request = GenerateRequest(request_id="1", prompt=CHAT, grammar='root ::= "a"')
    assert body_of(chat_call(request, "m", "llama.cpp"))["grammar"] == 'root ::= "a"'
    assert body_of(chat_call(request, "m", "vllm"))["structured_outputs"] == {"grammar": 'root ::= "a"'}
    for kind in ("ollama", "other"):
        with pytest.raises(BadGrammar):
            chat_call(request, "m", kind)


def test_a_schema_goes_as_each_interface_wants_it():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    chat = GenerateRequest(request_id="1", prompt=CHAT, schema=json.dumps(schema))
    for kind in ("vllm", "ollama", "other"):
        assert body_of(chat_call(chat, "m", kind))["response_format"]["json_schema"]["schema"] == schema
    text = GenerateRequest(request_id="1", prompt=TextPrompt("x"), schema=json.dumps(schema))
    assert body_of(text_call(text, "x", "m", "vllm"))["structured_outputs"] == {"json": schema}
    with pytest.raises(BadGrammar):
        text_call(text, "x", "m", "other")
    with pytest.raises(BadGrammar):
        chat_call(GenerateRequest(request_id="1", prompt=CHAT, schema="{"), "m", "vllm")


def test_where_grammars_are_taken_a_schema_goes_as_one_without_white_space():
    schema = {"type": "object", "properties": {"n": {"enum": [3, 4]}}, "required": ["n"]}
    chat = body_of(chat_call(GenerateRequest(request_id="1", prompt=CHAT, schema=json.dumps(schema)), "m", "llama.cpp"))
    text = GenerateRequest(request_id="1", prompt=TextPrompt("x"), schema=json.dumps(schema))
    plain = body_of(text_call(text, "x", "m", "llama.cpp"))
    assert chat["grammar"] == plain["grammar"] and "response_format" not in chat and "json_schema" not in plain
    assert chat["grammar"].startswith("root ::= ") and r'"{"' in chat["grammar"] and r"\n" not in chat["grammar"]


def test_a_schema_beyond_our_grammars_is_left_to_the_server():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a$"}}, "required": ["a"]}
    request = GenerateRequest(request_id="1", prompt=CHAT, schema=json.dumps(schema))
    sent = body_of(chat_call(request, "m", "llama.cpp"))
    assert sent["response_format"]["json_schema"]["schema"] == schema and "grammar" not in sent
    assert body_of(text_call(request, "x", "m", "llama.cpp"))["json_schema"] == schema


def test_what_can_not_be_asked_is_refused():
    with pytest.raises(LaneUnsupported):
        chat_call(GenerateRequest(request_id="1", prompt=CHAT, lane="exact"), "m", "vllm")
    with pytest.raises(BadPrompt):
        text_call(GenerateRequest(request_id="1", prompt=TokenPrompt((1,))), "", "m", "vllm")
    five = GenerateRequest(request_id="1", prompt=TextPrompt("x"), stop=tuple("abcde"))
    with pytest.raises(BadRequest):
        text_call(five, "x", "m", "other")
    assert len(body_of(text_call(five, "x", "m", "llama.cpp"))["stop"]) == 5
    with pytest.raises(BadPrompt):
        tokens_call("x", "m", "ollama")


def test_chunks_are_read_leniently():
    text = decode_chunk(b'{"id":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"h\xc3\xa9"}}],"z":[]}')
    assert (text.text, text.finish, text.usage) == ("hé", None, None)
    assert decode_chunk(b'{"choices":[{"text":"a","finish_reason":"length"}]}').finish == "length"
    assert decode_chunk(b'{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}],"usage":null}').text == ""
    counted = decode_chunk(
        b'{"choices":[],"usage":{"prompt_tokens":32,"completion_tokens":5,'
        b'"prompt_tokens_details":{"cached_tokens":3}}}')
    assert counted.usage == Usage(32, 3, 5)
    for broken in (
        b"{", b"[]", b'{"choices":[{"text":5}]}', b'{"choices":3}', b"\xff\xfe", b'{"choices":[{"text":"\xc3"}]}',
    ):
        with pytest.raises(UpstreamBroken):
            decode_chunk(broken)
    with pytest.raises(UpstreamRefused, match="out of memory"):
        decode_chunk(b'{"error":{"message":"out of memory","code":500}}')


@given(st.binary(max_size=300))
def test_no_bytes_break_a_decoder_in_another_way(data):
    for decode in (decode_chunk, decode_models, decode_tokens):
        with contextlib.suppress(UpstreamBroken, UpstreamRefused):
            decode(data)
    assert isinstance(refusal(500, data), UpstreamRefused)


def test_thoughts_and_parts_of_calls_are_read():
    chunk = decode_chunk(
        b'{"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{"index":1,"id":"x","type":"function",'
        b'"function":{"name":"f","arguments":""}},{"index":1,"function":{"arguments":"{}"}},{"index":2}]}}]}')
    assert (chunk.thought, chunk.calls) == ("hm", (CallPart(1, "f", ""), CallPart(1, "", "{}")))
    assert decode_chunk(b'{"choices":[{"delta":{"reasoning":"hm"}}]}').thought == "hm"


class Upper:
    """A clearance that restores by shouting, and holds the last character back."""

    def restore(self, text):
        self.held = text[-1:].upper()
        return text[:-1].upper()

    def restore_end(self):
        held, self.held = self.held, ""
        return held


def test_calls_are_put_together_from_their_pieces_and_restored_within():
    calls = CallCollector(2)
    calls.take([CallPart(0, "f", ""), CallPart(0, "", '{"a": "x", "b": ["y')])
    calls.take([CallPart(1, "g", "{oops"), CallPart(0, "", '", 1]}'), CallPart(2, "h", "{}")])
    assert calls.told(Upper()) == [ToolCall("f", '{"a":"X","b":["Y",1]}'), Piece("G({OOPS)")]
    nameless = CallCollector()
    nameless.take([CallPart(0, "", "{}"), CallPart(1, "g", "{}")])
    assert nameless.told(Upper()) == [Piece("({})")]
    deep = CallCollector()
    deep.take([CallPart(0, "f", '{"a":' + "[" * 200 + "]" * 200 + "}")])
    assert isinstance(deep.told(Upper())[0], Piece)


def test_finish_reasons_in_our_words():
    words = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}
    assert {word: finish_word(word) for word in words} == words
    assert finish_word("function_call") == "tool_calls"
    for word in ("content_filter", "abort", "error"):
        with pytest.raises(UpstreamRefused, match=word):
            finish_word(word)


def test_refusals_quote_one_short_line():
    assert "failed to parse grammar" in str(refusal(400, b'{"error":{"message":"failed to parse grammar"}}'))
    assert "key" in str(refusal(401, b""))
    assert "elsewhere" in str(refusal(302, b""))
    said = str(refusal(500, json.dumps({"error": "a\x1b[2J\n" + "x" * 5000}).encode()))
    assert "\x1b" not in said and "\n" not in said and len(said) < 300


def test_models_of_llama_cpp_and_vllm():
    found = decode_models(
        b'{"data":[{"id":"a","meta":{"n_ctx":2048,"size":9,"ftype":"Q4_0","vocab_type":2}},'
        b'{"id":"b","max_model_len":32768},{"id":"c","meta":null}]}')
    assert [(one.name, one.context_tokens, one.size_bytes, one.quantisation) for one in found] == [
        ("a", 2048, 9, "Q4_0"), ("b", 32768, 0, ""), ("c", 0, 0, "")]
