"""What of a request goes to an upstream engine on another machine: every free text, cleared by the guard first.

Must not know how the guard decides, or how the request is sent.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from offload.ports import ChatPrompt, GenerateRequest, OutsideClearance, OutsideGuard, TextPrompt
from offload.upstream_errors import OutsideRefused
from offload.upstream_place import Place

__all__ = ["Plain", "cleared", "free_texts", "with_texts"]

_ROLES = frozenset({"system", "user", "assistant", "tool"})


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
    if isinstance(request.prompt, ChatPrompt) and any(one.role not in _ROLES for one in request.prompt.messages):
        raise OutsideRefused("A message with an unknown role does not go to another machine.")
    texts = free_texts(request)
    async with guard.clear(
        place=place.name, principal=request.principal, request_id=request.request_id, texts=texts,
    ) as clearance:
        yield with_texts(request, clearance.texts), clearance


def free_texts(request: GenerateRequest) -> tuple[str, ...]:
    """Every free text that would be sent: messages or text, the answer so far, stop texts."""
    match request.prompt:
        case ChatPrompt(messages=messages):
            own = tuple(one.content for one in messages)
        case TextPrompt(text=text):
            own = (text,)
        case _:
            own = ()
    return (*own, request.text_so_far, *request.stop)


def with_texts(request: GenerateRequest, texts: Sequence[str]) -> GenerateRequest:
    """The request with other texts in the places of free_texts(). Raises OutsideRefused when their number differs."""
    if len(texts) != len(free_texts(request)):
        raise OutsideRefused("The privacy guard cleared another number of texts than were shown to it.")
    prompt, count = request.prompt, 0
    match prompt:
        case ChatPrompt(messages=messages):
            count = len(messages)
            pairs = zip(messages, texts[:count], strict=True)
            prompt = ChatPrompt(tuple(msgspec.structs.replace(one, content=text) for one, text in pairs))
        case TextPrompt():
            count = 1
            prompt = TextPrompt(texts[0])
        case _:
            pass
    return msgspec.structs.replace(
        request, prompt=prompt, text_so_far=texts[count], stop=tuple(texts[count + 1:]), token_ids_so_far=())
