"""What of a request goes to an upstream engine on another machine: every free text, cleared by the guard first.

Must not know how the guard decides, or how the request is sent.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from offload.ports import ChatPrompt, GenerateRequest, Message, OutsideClearance, OutsideGuard, TextPrompt
from offload.upstream_errors import OutsideRefused
from offload.upstream_place import Place

__all__ = ["Plain", "cleared", "free_texts", "with_texts"]

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{0,32}\Z")


class Plain:
    """The clearance of a request that stays on this machine: nothing is changed or counted."""

    texts: Sequence[str] = ()

    def count(self, data: bytes) -> None:
        """Not counted: it does not leave."""

    def restore(self, text: str) -> str:
        """As it is."""
        return text

    def restore_end(self) -> str:
        """Nothing is held back."""
        return ""


@asynccontextmanager
async def cleared(
    request: GenerateRequest, place: Place, guard: OutsideGuard | None,
) -> AsyncIterator[tuple[GenerateRequest, OutsideClearance]]:
    """The request as it may be sent to this place, and its clearance. Raises OutsideRefused, and what the guard raises.

    Nothing goes to another machine without a guard.
    """
    if place.here:
        yield request, Plain()
        return
    if guard is None:
        raise OutsideRefused("Without the privacy guard nothing goes to an upstream engine on another machine.")
    if request.grammar or request.schema:
        raise OutsideRefused("A grammar or schema can hold words of the conversation, so none goes to another machine.")
    _check_names(request)
    texts = free_texts(request)
    async with guard.clear(
        place=place.name, principal=request.principal, request_id=request.request_id, texts=texts,
    ) as clearance:
        yield with_texts(request, clearance.texts), clearance


def free_texts(request: GenerateRequest) -> tuple[str, ...]:
    """Every free text that would be sent: messages with their thoughts and the arguments of their calls, or text; the
    answer so far, stop texts, descriptions and schemas of tools."""
    match request.prompt:
        case ChatPrompt(messages=messages):
            own = tuple(text for one in messages for text in _texts_of(one))
        case TextPrompt(text=text):
            own = (text,)
        case _:
            own = ()
    tools = tuple(text for tool in request.tools for text in (tool.description, tool.parameters))
    return (*own, request.text_so_far, *request.stop, *tools)


def _texts_of(message: Message) -> tuple[str, ...]:
    thought = (message.thought,) if message.thought else ()
    return (message.content, *thought, *(call.arguments for call in message.calls))


def with_texts(request: GenerateRequest, texts: Sequence[str]) -> GenerateRequest:
    """The request with other texts in the places of free_texts(). Raises OutsideRefused when their number differs."""
    if len(texts) != len(free_texts(request)):
        raise OutsideRefused("The privacy guard cleared another number of texts than were shown to it.")
    rest = iter(texts)
    prompt = request.prompt
    match prompt:
        case ChatPrompt(messages=messages):
            prompt = ChatPrompt(tuple(_message(one, rest) for one in messages))
        case TextPrompt():
            prompt = TextPrompt(next(rest))
        case _:
            pass
    return msgspec.structs.replace(
        request, prompt=prompt, text_so_far=next(rest), stop=tuple(next(rest) for _ in request.stop),
        tools=tuple(
            msgspec.structs.replace(tool, description=next(rest), parameters=next(rest)) for tool in request.tools),
        token_ids_so_far=())


def _message(message: Message, texts: Iterator[str]) -> Message:
    content, thought = next(texts), next(texts) if message.thought else ""
    calls = tuple(msgspec.structs.replace(call, arguments=next(texts)) for call in message.calls)
    return msgspec.structs.replace(message, content=content, thought=thought, calls=calls)


def _check_names(request: GenerateRequest) -> None:
    """Names and ids are no free text, so they may hold none. Raises OutsideRefused."""
    messages = request.prompt.messages if isinstance(request.prompt, ChatPrompt) else ()
    names = [tool.name for tool in request.tools] + [call.name for one in messages for call in one.calls]
    ids = [one.call_id for one in messages] + [call.call_id for one in messages for call in one.calls]
    if any(one.role not in _ROLES for one in messages):
        raise OutsideRefused("A message with an unknown role does not go to another machine.")
    if not all(_NAME.match(name) for name in names) or not all(_CALL_ID.match(call_id) for call_id in ids):
        raise OutsideRefused("A tool or call with such a name does not go to another machine.")
