"""Frames of /kith/query/1: one search question per stream, passages of shared folders back."""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import Frame, Id16

__all__ = ["Answer", "Passage", "Query", "QueryEnd", "QueryFrame", "QueryRefusalCode", "QueryRefused"]

QueryRefusalCode = Literal[
    "not_granted", "grant_expired", "quota", "busy", "offline", "shutting_down", "bad_request", "internal",
]

PassageCount = Annotated[int, Meta(ge=0, le=limits.MAX_PASSAGES)]


class Query(Frame, frozen=True, tag=1):
    """The question in words, and how many passages at most."""

    query_id: Id16
    text: Annotated[str, Meta(min_length=1, max_length=limits.MAX_QUERY_CHARS)]
    k: Annotated[int, Meta(ge=1, le=limits.MAX_PASSAGES)]


class Passage(Frame, frozen=True):
    """A piece of a shared document, as its owner cleared it. The asker scores it again itself."""

    doc_id: Id16
    title: Annotated[str, Meta(max_length=limits.MAX_TITLE_CHARS)]
    text: Annotated[str, Meta(min_length=1, max_length=limits.MAX_PASSAGE_CHARS)]
    folder: Annotated[str, Meta(max_length=limits.MAX_FOLDER_CHARS)]


class Answer(Frame, frozen=True, tag=2):
    """Some of the passages, best first."""

    query_id: Id16
    passages: Annotated[tuple[Passage, ...], Meta(min_length=1, max_length=limits.MAX_PASSAGES)]


class QueryRefused(Frame, frozen=True, tag=3):
    """The question is not answered."""

    query_id: Id16
    code: QueryRefusalCode


class QueryEnd(Frame, frozen=True, tag=4):
    """All passages were sent; the count must equal what came."""

    query_id: Id16
    passage_count: PassageCount


QueryFrame = Query | Answer | QueryRefused | QueryEnd
