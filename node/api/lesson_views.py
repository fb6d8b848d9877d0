"""What the agent has learnt, as the API tells it."""

import msgspec

__all__ = ["LessonView", "MemoryView"]


class LessonView(msgspec.Struct, frozen=True, kw_only=True):
    """One confirmed action: the sentence, the tool, and the words that became its arguments."""

    lesson_id: str
    text: str
    tool: str
    words: dict[str, str]
    made: str


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it learns, and what it has learnt."""

    schema: int = 1
    on: bool
    lessons: list[LessonView]
