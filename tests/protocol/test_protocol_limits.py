"""Every bound of every field of every frame: just inside is taken, just outside is refused. And every limit is in
use.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from frame_samples import PEER_A, PEER_B, SAMPLES
from msgspec import inspect

from protocol import canonical, limits, names
from protocol.errors import BadEncoding, BadFrame, LocalProtocolError
from protocol.fields import (
    Address,
    CallId,
    ModelDigest,
    ModelName,
    NodeName,
    PeerId,
    ProtocolId,
    Slug,
    SoftwareVersion,
    ToolName,
)
from protocol.frames.inference import InferRequest, Part, PromptParts, ToolOffer
from protocol.frames.link import Hello
from protocol.frames.mail import Mail
from protocol.grants import Grant, SignedGrant

Path_ = tuple[int, ...]
ROOT = Path(__file__).parents[2]

GRANT = Grant(
    services=("infer",), models=("*",), tokens_per_day=1, max_context=1, max_concurrency=1, not_after_s=1,
    issued_by=PEER_A, issued_to=PEER_B, epoch=0,
)  # fmt: skip
STRUCTS: list[tuple[str, msgspec.Struct]] = [
    (f"{protocol} {name}", frame) for protocol, frames in SAMPLES.items() for name, frame in frames.items()
] + [("grant", GRANT), ("signed grant", SignedGrant(b"x", bytes(64)))]


def raw_of(value: Any) -> Any:
    """Structs as plain lists, tags included; bytes stay bytes."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))


def bounds(info: inspect.Type, raw: Any, path: Path_) -> Iterator[tuple[Path_, list[Any], list[Any]]]:
    """(where, values that must be taken, values that must be refused) for every bound below this point."""
    match info:
        case inspect.StructType():
            shift = 0 if info.tag is None else 1
            for place, field in enumerate(info.fields):
                yield from bounds(field.type, raw[place + shift], (*path, place + shift))
        case inspect.UnionType():
            for option in info.types:
                if isinstance(option, inspect.StructType) and not (isinstance(raw, list) and raw[0] == option.tag):
                    continue
                if isinstance(option, inspect.NoneType) or raw is None:
                    continue
                yield from bounds(option, raw, path)
        case inspect.VarTupleType():
            if info.max_length is not None and raw:
                yield path, [], [[raw[0]] * (info.max_length + 1)]
            if info.min_length:
                yield path, [], [[]]
            if raw:
                yield from bounds(info.item_type, raw[0], (*path, 0))
        case inspect.IntType():
            if info.ge is not None and info.le is not None:
                yield path, [info.ge, info.le], [info.ge - 1, info.le + 1, True, str(raw), float(raw), None]
            else:
                raise AssertionError(f"an unbounded number at {path}")
        case inspect.FloatType():
            yield path, [info.ge, info.le], [-0.001, info.le + 0.001, str(raw)]  # type: ignore[operator, list-item]
        case inspect.BytesType():
            assert info.max_length is not None, f"unbounded bytes at {path}"
            low = info.min_length or 0
            yield path, [bytes(low), bytes(info.max_length)], [bytes(info.max_length + 1), "x" * len(raw)]
            if low:
                yield path, [], [bytes(low - 1)]
        case inspect.StrType() if info.pattern is None:
            assert info.max_length is not None, f"an unbounded text at {path}"
            low = info.min_length or 0
            yield path, ["x" * low, "x" * info.max_length], ["x" * (info.max_length + 1), b"x" * len(raw), None]
            if low:
                yield path, [], ["x" * (low - 1)]
        case inspect.StrType():
            empty = [] if re.match(info.pattern, "") else [""]      # an id that may be absent; NAME_CASES has it
            yield path, [raw], [raw + "\n", raw + " ", " " + raw, raw + "\x00", *empty, raw + "é", "x" * 400, None]
        case inspect.LiteralType():
            yield path, list(info.values), ["", "other", info.values[0] + " ", None]
        case inspect.BoolType():
            yield path, [True, False], [0, 1, "true"]
        case _:
            raise AssertionError(f"no rule for {info}")


def replaced(raw: Any, path: Path_, value: Any) -> Any:
    if not path:
        return value
    copy = list(raw)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


def is_cross_checked(frame: msgspec.Struct, path: Path_) -> bool:
    """Fields whose taken values also depend on other fields; those rules have their own tests."""
    names_of = type(frame).__struct_fields__
    field = names_of[path[0] - (0 if type(frame).__struct_config__.tag is None else 1)]
    return (type(frame).__name__, field) in {
        ("TokenFrame", "tokens"), ("TokenFrame", "text"), ("InferRequest", "resume_cursor"), ("InferRequest", "lane"),
        ("InferRequest", "token_ids_so_far"), ("InferRequest", "text_so_far"), ("InferRequest", "thought_so_far"),
        ("InferRequest", "calls_so_far"), ("InferRequest", "named_tool"), ("InferRequest", "tools"),
    }  # fmt: skip


@pytest.mark.parametrize(("label", "frame"), STRUCTS, ids=[label for label, _ in STRUCTS])
def test_each_bound_of_each_field(label: str, frame: msgspec.Struct) -> None:
    raw = raw_of(frame)
    type_ = type(frame)
    checked = 0
    for path, taken, refused in bounds(inspect.type_info(type_), raw, ()):
        if not is_cross_checked(frame, path):
            for value in taken:
                data = msgspec.msgpack.encode(replaced(raw, path, value))
                if len(data) <= limits.MAX_FRAME_BYTES:
                    canonical.decode(data, type_)
                    checked += 1
        for value in refused:
            if value is None and is_optional(type_, path):
                continue
            data = msgspec.msgpack.encode(replaced(raw, path, value))
            with pytest.raises((BadFrame, BadEncoding)):
                canonical.decode(data, type_)
            checked += 1
    assert checked >= len(type_.__struct_fields__)


def is_optional(type_: type[msgspec.Struct], path: Path_) -> bool:
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.StructType)
    field = info.fields[path[0] - (0 if info.tag is None else 1)].type
    return len(path) == 1 and isinstance(field, inspect.UnionType) and field.includes_none


NAME_CASES: list[tuple[Any, list[str], list[str]]] = [
    (NodeName, ["a", "7", "home-pc", "a" * 32], ["", "a" * 33, "-a", "a-", "Home", "a b", "a.b", "ä", "a\n"]),
    (ModelName, ["a", "Qwen/Qwen3.5-0.8B", "x:latest", "a" * 96], ["", "a" * 97, "/a", "a b", "-a", "a\n", "a\\b"]),
    (ModelDigest, ["0" * 64, "abcdef" + "0" * 58], ["0" * 63, "0" * 65, "A" * 64, "g" * 64]),
    (CallId, ["", "a", "call_1-X", "a" * 32], ["a" * 33, "a b", "é", "a\n", "a.b"]),
    (ToolName, ["a", "calendar_free", "a" * 64], ["", "a" * 65, "1a", "_a", "A", "a-b", "a b"]),
    (PeerId, [PEER_A], [PEER_A[:-1], PEER_A + "1", PEER_A.replace("12D3KooW", "12D3KooX"), PEER_A[:-1] + "0"]),
    (ProtocolId, ["/kith/ab/1", "/kith/link/999"],
     ["/kith/a/1", "/kith/link/0", "/kith/link/1000", "/kith/Link/1", "kith/xy/1"]),
    (Slug, ["a", "exact-lane", "a" * 24], ["", "a" * 25, "1", "-a", "a_b", "A"]),
    (SoftwareVersion, ["0.1.0", "10.20.30rc1", "1.2.3+local.1"],
     ["1.2", "1.2.3.4.5 x", "v1.2.3", "1.2.3" + "a" * 17, "1.2.3\n"]),
    (Address, ["/ip4/1.2.3.4", "/ip4/1.2.3.4/tcp/1", "/ip6/fe80::1%eth0/tcp/1"],
     ["", "/", "/ip4", "ip4/1.2.3.4", "/ip4/1.2.3.4/", "/ip4//tcp", "/ip4/1 2", "/a" * 9, "/ip4/" + "1" * 65,
      "/dns4/" + "/".join(["x" * 50] * 4)]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "good", "bad"), NAME_CASES, ids=range(len(NAME_CASES)))
def test_names(type_: Any, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert canonical.decode(canonical.encode(text), type_) == text
    for text in bad:
        with pytest.raises(BadFrame):
            canonical.decode(canonical.encode(text), type_)


@pytest.mark.parametrize("field", ["versions", "capabilities", "models"])
def test_lists_of_a_hello_may_be_full(field: str) -> None:
    hello = SAMPLES[names.LINK]["hello"]
    assert isinstance(hello, Hello)
    most = {
        "versions": limits.MAX_PROTOCOL_IDS,
        "capabilities": limits.MAX_CAPABILITIES,
        "models": limits.MAX_MODEL_ADVERTS,
    }[field]
    full = msgspec.structs.replace(hello, **{field: (getattr(hello, field)[0],) * most})
    assert canonical.decode(canonical.encode(full), Hello) == full


def request_with(**changes: Any) -> InferRequest:
    prompt = PromptParts((Part("user", "x"),))
    fields: dict[str, Any] = {"request_id": bytes(16), "prompt": prompt, "max_tokens": 1, "deadline_s": 1}
    return InferRequest(**(fields | changes))


def test_the_fullest_lists_of_a_request_fit() -> None:
    tools = tuple(ToolOffer(f"t{n}", "d", "{}") for n in range(limits.MAX_TOOLS))
    full = request_with(
        prompt=PromptParts((Part("user", "x"),) * limits.MAX_PROMPT_PARTS),
        tools=tools,
        stop=("x" * limits.MAX_STOP_CHARS,) * limits.MAX_STOP_STRINGS,
    )
    assert canonical.decode(canonical.encode(full), InferRequest) == full
    with pytest.raises(LocalProtocolError):
        canonical.encode(request_with(prompt=PromptParts((Part("user", "x"),) * (limits.MAX_PROMPT_PARTS + 1))))


def test_text_so_far_is_bounded_in_bytes() -> None:
    exact = "é" * (limits.MAX_TEXT_BYTES // 2)
    canonical.encode(request_with(text_so_far=exact, resume_cursor=1))
    with pytest.raises(ValueError, match="too long"):
        request_with(text_so_far=exact + "x", resume_cursor=1)


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
def test_every_specimen_fits_its_protocols_frames(protocol: str) -> None:
    assert all(len(canonical.encode(frame)) <= names.FRAME_LIMITS[protocol] for frame in SAMPLES[protocol].values())


def test_the_largest_honest_frames_fit() -> None:
    advert = SAMPLES[names.LINK]["hello"].models[0]  # type: ignore[attr-defined]
    name, most = "m" * limits.MAX_MODEL_NAME_CHARS, limits.MAX_CONTEXT_TOKENS
    widest = msgspec.structs.replace(advert, name=name, context_tokens=most)
    hello = Hello("a" * 32, "1.2.3", names.PROTOCOLS, ("infer",) * 16, (widest,) * limits.MAX_MODEL_ADVERTS)
    assert len(canonical.encode(hello)) <= limits.LINK_FRAME_BYTES
    mail = Mail(1, bytes(16), "chat.msg", "☕" * limits.MAX_MAIL_CHARS, 0)
    assert len(canonical.encode(mail)) <= limits.MAIL_FRAME_BYTES
    assert max(names.FRAME_LIMITS.values()) == limits.MAX_FRAME_BYTES


USED_ELSEWHERE = {"PAIRING_TRIES", "PAIRING_WINDOW_S"}  # by whoever keeps the window and the durable counter
SPELLED_OUT = {"MAX_NODE_NAME_CHARS", "MAX_MODEL_NAME_CHARS", "MODEL_DIGEST_CHARS", "MAX_TOOL_NAME_CHARS"}


def test_every_limit_is_used() -> None:
    own = {name for name in vars(limits) if name.isupper()}
    text = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "protocol").rglob("*.py") if path.name != "limits.py"
    )
    own_text = (ROOT / "protocol" / "limits.py").read_text(encoding="utf-8")
    text += re.sub(r"^\w+: Final = ", "", own_text, flags=re.MULTILINE)
    unused = {name for name in own if not re.search(rf"\b{name}\b", text)}
    assert unused == USED_ELSEWHERE | SPELLED_OUT


def test_widths_in_patterns_match_the_limits() -> None:
    # the patterns spell their widths out; the named limits are for documents and other code
    assert canonical.decode(canonical.encode("a" * limits.MAX_NODE_NAME_CHARS), NodeName)
    assert canonical.decode(canonical.encode("a" * limits.MAX_MODEL_NAME_CHARS), ModelName)
    assert canonical.decode(canonical.encode("a" * limits.MODEL_DIGEST_CHARS), ModelDigest)
    assert canonical.decode(canonical.encode("a" * limits.MAX_TOOL_NAME_CHARS), ToolName)
    for type_, width in (
        (NodeName, limits.MAX_NODE_NAME_CHARS), (ModelName, limits.MAX_MODEL_NAME_CHARS),
        (ModelDigest, limits.MODEL_DIGEST_CHARS), (ToolName, limits.MAX_TOOL_NAME_CHARS),
    ):  # fmt: skip
        with pytest.raises(BadFrame):
            canonical.decode(canonical.encode("a" * (width + 1)), type_)
