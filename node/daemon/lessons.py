"""The agent's lessons as the owner sees them: listed, forgotten, switched off. Keeps them in the database.

Implements node.agent.lessons.LessonStore and node.api.lesson_ports.Lessons. Must not know what is learnt from them.
"""

from collections.abc import Callable, Sequence

import trio

from node.agent.lessons import MOST, Lesson, Lessons
from node.api.lesson_views import LessonView, MemoryView
from node.clock import from_ms, to_ms
from node.errors import UsageError
from node.store import lessons as rows
from node.store.database import Database
from node.store.lessons import LessonRow

__all__ = ["LessonDesk", "StoredLessons"]


class StoredLessons:
    """The lessons in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> Sequence[Lesson]:
        """The newest first."""
        return [
            Lesson(row.lesson_id, row.text, row.tool, from_ms(row.made_ms), row.words)
            for row in await self._database.read(rows.listed, MOST)
        ]

    async def add(self, lesson: Lesson) -> None:
        """Keep one."""
        row = LessonRow(lesson.lesson_id, lesson.text, lesson.tool, dict(lesson.words), to_ms(lesson.made_at))
        await self._database.write(rows.add, row, keep=MOST)


class LessonDesk:
    """What the owner may do with them."""

    def __init__(self, database: Database, lessons: Lessons, keep_switch: Callable[[bool], None]) -> None:
        """keep_switch: writes it down for the next start, in a thread."""
        self._database = database
        self._lessons = lessons
        self._keep_switch = keep_switch

    async def all(self, limit: int) -> MemoryView:
        """Whether it learns, and what it has learnt, the newest first."""
        found = await self._database.read(rows.listed, limit)
        return MemoryView(on=self._lessons.on, lessons=[_view(row) for row in found])

    async def forget(self, name: str) -> int:
        """How many were forgotten: the one with this id or a unique start of it, or "all". Raises UsageError."""
        if name == "all":
            count = await self._database.write(rows.clear)
        else:
            known = await self._database.read(rows.listed, MOST)
            found = [row for row in known if name and row.lesson_id.startswith(name)]
            if len(found) != 1:
                what = "Several lessons begin" if found else "No lesson begins"
                raise UsageError(f"{what} with {name[:40]!r}.", hint="See them with: kith memory list")
            count = int(await self._database.write(rows.remove, found[0].lesson_id))
        self._lessons.forget_all()
        return count

    async def switch(self, *, on: bool) -> MemoryView:
        """Learn and use lessons, or neither; what was learnt stays until it is forgotten."""
        await trio.to_thread.run_sync(self._keep_switch, on)
        self._lessons.on = on
        return await self.all(1)


def _view(row: LessonRow) -> LessonView:
    return LessonView(
        lesson_id=row.lesson_id, text=row.text, tool=row.tool, words=row.words,
        made=from_ms(row.made_ms).isoformat(timespec="seconds"),
    )
