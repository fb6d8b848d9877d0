"""Messages as chat templates want them: one role after the other, never the same twice in a row.

Several templates refuse two user turns in a row, and small models answer better when request and material stand in
one. Pure.
"""

from collections.abc import Iterable

from offload.ports import Message

__all__ = ["joined_turns"]


def joined_turns(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same words with neighbours of one role joined by an empty line, empty ones left out.

    Calls and their results stay turns of their own."""
    joined: list[Message] = []
    for message in messages:
        if _stands_alone(message):
            joined.append(message)
            continue
        if not message.content.strip():
            continue
        if joined and joined[-1].role == message.role and not _stands_alone(joined[-1]):
            joined[-1] = Message(message.role, f"{joined[-1].content}\n\n{message.content}")
        else:
            joined.append(message)
    return tuple(joined)


def _stands_alone(message: Message) -> bool:
    return bool(message.calls or message.call_id or message.thought)
