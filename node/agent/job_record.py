"""A heavy job as bytes for the node's own database, with every label, and back: what an answer goes on from after a
restart.

The way back for text is not part of it: whoever reads the record brings a new one. Must not know where it is kept.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from node.agent.ports import ThinkJob, ThinkPart
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value

__all__ = ["decode_job", "encode_job"]


class _Part(msgspec.Struct, frozen=True, array_like=True):
    role: Literal["system", "user", "assistant"]
    name: str
    text: str
    confidentiality: int
    integrity: int
    source: str
    values: tuple[tuple[str, str], ...] | None


class _Job(msgspec.Struct, frozen=True, array_like=True):
    version: int
    job_id: str
    conversation_id: str
    parts: tuple[_Part, ...]
    place: str
    model: str | None
    max_tokens: int
    temperature: float
    stop: tuple[str, ...]
    exact: bool
    adapter: str | None = None


def encode_job(job: ThinkJob) -> bytes:
    """The record of a job."""
    return msgspec.msgpack.encode(_Job(
        1, job.job_id, job.conversation_id, tuple(map(_record, job.parts)), job.place, job.model, job.max_tokens,
        job.temperature, job.stop, job.exact, job.adapter,
    ))


def decode_job(data: bytes, on_text: Callable[[str], Awaitable[bool]], *, keep: bool = False) -> ThinkJob:
    """The job of a record, with somebody to read the answer. Raises msgspec.MsgspecError or ValueError."""
    job = msgspec.msgpack.decode(data, type=_Job)
    return ThinkJob(
        job.job_id, job.conversation_id, tuple(map(_part, job.parts)), on_text, place=job.place, model=job.model,
        max_tokens=job.max_tokens, temperature=job.temperature, stop=job.stop, exact=job.exact, keep=keep,
        adapter=job.adapter,
    )


def _record(part: ThinkPart) -> _Part:
    text = part.text
    values = None if text.values is None else tuple((one.text, one.type) for one in text.values)
    return _Part(
        part.role, part.name, text.value, int(text.confidentiality), int(text.integrity), text.source, values)


def _part(part: _Part) -> ThinkPart:
    values = None if part.values is None else tuple(Value(*one) for one in part.values)
    text = Labeled(
        part.text, Confidentiality(part.confidentiality), Integrity(part.integrity), part.source, values)
    return ThinkPart(part.role, text, part.name)
