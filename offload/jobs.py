"""What a model's host keeps of each thing it was asked for, and how much may come back for it. Must not know workers or
models."""

from dataclasses import dataclass

import trio

from offload.child.process import Death
from offload.errors import EngineError
from offload.ports import Event, Piece, Queued, Reading, ToolCall

__all__ = ["Job", "shown"]

_MOST_SHOWN_CHARS = 200


@dataclass(slots=True, eq=False)
class Job:
    """One request on its way through the worker. Its inbox gets events, or how the worker ended."""

    job_id: str
    principal: str
    inbox: trio.MemoryReceiveChannel[Event | Death]
    post: trio.MemorySendChannel[Event | Death]
    events_left: int        # a worker that sends more is broken, or was taken over by its model file
    chars_left: int
    signs_left: int = 100_000       # of how far it is: they are not counted among the events
    sent: bool = False
    over: bool = False
    broken: EngineError | None = None     # why the inbox ends without a last event

    def take(self, event: Event) -> bool:
        """Put an event into the inbox; False, and it is not put there, when that is more than was asked for."""
        if isinstance(event, Queued | Reading):     # for as long as it takes, and of use only to who keeps up
            self.signs_left -= 1
            if not self.post.statistics().current_buffer_used and self.signs_left >= 0:
                self.post.send_nowait(event)
            return True
        self.events_left -= 1
        if isinstance(event, Piece):
            self.chars_left -= len(event.text) + len(event.thought) + len(event.token_ids)
        elif isinstance(event, ToolCall):
            self.chars_left -= len(event.name) + len(event.arguments)
        if self.events_left < 0 or self.chars_left < 0:
            return False
        self.post.send_nowait(event)
        return True


def shown(text: str) -> str:
    """What may be shown of a worker's words: short, and nothing that moves a terminal's cursor."""
    return "".join(char for char in text[:_MOST_SHOWN_CHARS] if char.isprintable())
