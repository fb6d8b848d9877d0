"""The registry of frames: golden bytes, tags, and the proof that no frame carries free text that the guard would not
see.
"""

import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from frame_samples import SAMPLES
from msgspec import inspect

from protocol import canonical, names
from protocol.content import FREE_TEXT_FIELDS, content_texts, has_opaque_content
from protocol.fields import Frame
from protocol.frames import inference, link, mail, model, pairing, query

GOLDEN = Path(__file__).parent / "golden"
ALL_SAMPLES = [(protocol, name) for protocol, frames in SAMPLES.items() for name in frames]


def members(protocol: str) -> set[type[msgspec.Struct]]:
    return set(typing.get_args(names.FRAMES[protocol]))


def all_members() -> set[type[msgspec.Struct]]:
    return set().union(*(members(protocol) for protocol in names.PROTOCOLS))


def struct_fields(info: inspect.Type) -> list[tuple[str, str, inspect.Type]]:
    """(struct name, field name, plain type) of every field that can be reached."""
    found: list[tuple[str, str, inspect.Type]] = []

    def walk(info: inspect.Type, owner: str, field: str) -> None:
        match info:
            case inspect.StructType():
                for inner in info.fields:
                    walk(inner.type, info.cls.__name__, inner.name)
            case inspect.UnionType():
                for option in info.types:
                    walk(option, owner, field)
            case inspect.VarTupleType() | inspect.ListType():
                walk(info.item_type, owner, field)
            case inspect.Metadata():
                walk(info.type, owner, field)
            case _:
                found.append((owner, field, info))

    walk(info, "", "")
    return found


def free_texts(type_: Any) -> set[tuple[str, str]]:
    """Fields whose text is bounded by neither a pattern nor an enumeration."""
    return {
        (owner, field)
        for owner, field, info in struct_fields(inspect.type_info(type_))
        if isinstance(info, inspect.StrType) and info.pattern is None
    }


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
def test_golden_bytes(protocol: str) -> None:
    text = (GOLDEN / f"{protocol.strip('/').replace('/', '-')}.txt").read_text(encoding="ascii")
    golden = dict(line.split() for line in text.splitlines())
    assert list(golden) == list(SAMPLES[protocol])
    for name, frame in SAMPLES[protocol].items():
        assert canonical.encode(frame).hex() == golden[name], name
        assert canonical.decode(bytes.fromhex(golden[name]), names.FRAMES[protocol]) == frame


def test_golden_bytes_by_hand() -> None:
    # worked out from the MessagePack specification: an array of two, the tag, the number
    assert canonical.encode(SAMPLES[names.LINK]["beat"]) == bytes([0x92, 2, 7])
    assert canonical.encode(SAMPLES[names.MAIL]["refused"]) == bytes([0x92, 5, 0xA4]) + b"full"
    assert canonical.encode(SAMPLES[names.INFER]["cancel"]) == bytes([0x92, 9, 0xC4, 16, *range(16)])


@pytest.mark.parametrize("protocol", names.PROTOCOLS)
def test_every_frame_has_a_specimen_and_its_own_tag(protocol: str) -> None:
    assert {type(frame) for frame in SAMPLES[protocol].values()} == members(protocol)
    tags = [member.__struct_config__.tag for member in members(protocol)]
    assert all(isinstance(tag, int) for tag in tags)
    assert sorted(tags) == list(range(1, len(tags) + 1))


def test_every_frame_is_frozen_and_strict() -> None:
    for member in all_members():
        config = member.__struct_config__
        assert issubclass(member, Frame)
        assert config.frozen
        assert config.array_like
        assert config.forbid_unknown_fields


def test_control_accounted_content_and_opaque_are_everything_once() -> None:
    parts = [names.CONTROL, names.ACCOUNTED, names.CONTENT, names.OPAQUE]
    assert set().union(*parts) == all_members()
    assert sum(len(part) for part in parts) == len(all_members())


def test_control_frames_have_no_free_text() -> None:
    for member in names.CONTROL | names.OPAQUE:
        assert free_texts(member) == set(), member.__name__


def test_every_free_text_is_declared() -> None:
    found = set().union(*(free_texts(member) for member in all_members()))
    assert found == {(owner, field) for owner, fields in FREE_TEXT_FIELDS.items() for field in fields}


def test_negative_control_an_undeclared_text_is_found() -> None:
    class Leaky(Frame, frozen=True, tag=99):
        code: typing.Literal["a", "b"]
        parts: tuple[inference.ToolOffer, ...]
        remark: str | None

    assert free_texts(Leaky) == {("ToolOffer", "description"), ("ToolOffer", "params_json"), ("Leaky", "remark")}


def marked(frame: msgspec.Struct, marks: list[str]) -> msgspec.Struct:
    """The frame with every declared free text replaced by a mark of its own."""

    def fresh() -> str:
        marks.append(f"mark{len(marks)}")
        return marks[-1]

    def change(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(change(item) for item in value)
        if not isinstance(value, msgspec.Struct):
            return value
        changes: dict[str, Any] = {}
        for field in value.__struct_fields__:
            old = getattr(value, field)
            if field not in FREE_TEXT_FIELDS.get(type(value).__name__, ()):
                changes[field] = change(old)
            else:
                changes[field] = tuple(fresh() for _ in old) if isinstance(old, tuple) else fresh()
        return msgspec.structs.replace(value, **changes)

    changed = change(frame)
    assert isinstance(changed, msgspec.Struct)
    return changed


@pytest.mark.parametrize(("protocol", "name"), ALL_SAMPLES)
def test_content_texts_returns_every_free_text(protocol: str, name: str) -> None:
    frame = SAMPLES[protocol][name]
    if isinstance(frame, inference.InferRequest):
        frame = msgspec.structs.replace(frame, resume_cursor=1)  # text so far needs one
    marks: list[str] = []
    changed = marked(frame, marks)
    assert sorted(content_texts(changed)) == sorted(marks)
    assert (marks == []) == (type(frame) in names.CONTROL | names.OPAQUE)


def test_order_of_texts_in_a_request() -> None:
    assert content_texts(SAMPLES[names.INFER]["request"]) == (
        "Be brief.", "Wer bist du? ☕", "Ich bin", "\n\n", "Finds free time.", '{"type":"object"}',
    )  # fmt: skip
    assert content_texts(SAMPLES[names.QUERY]["answer"]) == ("Trips", "The 9:40 is quickest.", "travel")
    assert content_texts(SAMPLES[names.MAIL]["mail"]) == ("See you at six? ☕",)


def test_empty_texts_need_no_cover() -> None:
    assert content_texts(SAMPLES[names.INFER]["request_bare"]) == ("Hi",)
    assert content_texts(SAMPLES[names.INFER]["token_hidden_ids"]) == ()
    assert content_texts(mail.Mail(1, bytes(16), "chat.read", "", 0)) == ()


def test_token_ids_are_told_as_opaque() -> None:
    samples = SAMPLES[names.INFER]
    assert has_opaque_content(samples["request_tokens"])
    assert has_opaque_content(samples["request"])  # token ids so far
    assert not has_opaque_content(samples["request_bare"])
    assert not any(
        has_opaque_content(frame)
        for frames in SAMPLES.values()
        for frame in frames.values()
        if not isinstance(frame, inference.InferRequest)
    )


def request(**changes: Any) -> inference.InferRequest:
    fields: dict[str, Any] = {
        "request_id": bytes(16),
        "prompt": inference.PromptParts((inference.Part("user", "x"),)),
        "max_tokens": 1,
        "deadline_s": 1,
    }
    return inference.InferRequest(**(fields | changes))


TOOL = inference.ToolOffer("a", "", "{}")


@pytest.mark.parametrize(
    "changes",
    [
        {"lane": "exact"},
        {"prompt": inference.PromptTokens((1,))},
        {"token_ids_so_far": (1,), "resume_cursor": 1},
        {"text_so_far": "x"},
        {"token_ids_so_far": (1,), "model_digest": "ab" * 32},
        {"tools": (TOOL, TOOL)},
        {"text_so_far": "☕" * 50_000, "resume_cursor": 1},
    ],
)
def test_requests_that_contradict_themselves(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        request(**changes)


def test_token_frames_that_contradict_themselves() -> None:
    with pytest.raises(ValueError):
        inference.TokenFrame(bytes(16), 0, "x", 2, (1,), bytes(16))
    with pytest.raises(ValueError):
        inference.TokenFrame(bytes(16), 0, "", 0, (), bytes(16))


def test_frame_limits_are_known_for_every_protocol() -> None:
    assert set(names.FRAME_LIMITS) == set(names.FRAMES) == set(names.PROTOCOLS)
    assert query.QueryFrame is names.FRAMES[names.QUERY]


def test_the_reference_lists_every_frame_with_its_tag() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "protocols.md").read_text(encoding="utf-8")
    for protocol in names.PROTOCOLS:
        assert f"`{protocol}`" in text
        assert f"{names.FRAME_LIMITS[protocol] // 1024} KiB" in text
        section = text.split(f"## {protocol}\n")[1].split("\n## ")[0]
        for member in members(protocol):
            assert f"| {member.__struct_config__.tag} | {member.__name__} |" in section, member.__name__
            for field in member.__struct_fields__:
                assert f"{field}" in section, (member.__name__, field)


def test_the_reference_names_every_error_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "protocols.md").read_text(encoding="utf-8")
    for codes in (
        inference.RefusalCode,
        inference.ErrorCode,
        inference.FinishReason,
        query.QueryRefusalCode,
        mail.MailRefusalCode,
        mail.MailKind,
        model.ModelRefusalCode,
        pairing.PairRefusalCode,
        link.ByeCode,
    ):
        for code in typing.get_args(codes):
            assert f"`{code}`" in text, code
