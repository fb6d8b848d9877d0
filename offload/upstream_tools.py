"""Tool calls of an upstream engine, put together from the pieces in which they are streamed. Pure."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from offload.ports import OutsideClearance, Piece, ToolCall
from offload.upstream_wire import CallPart

__all__ = ["MOST_CALLS", "CallCollector"]

MOST_CALLS = 8
_DEPTH_LIMIT = 32


class CallCollector:
    """The calls of one answer, in the order in which they began."""

    def __init__(self, most: int = 1) -> None:
        self._most = most
        self._names: dict[int, str] = {}
        self._arguments: dict[int, list[str]] = {}

    def take(self, parts: Iterable[CallPart]) -> None:
        """More of some calls; those beyond the limit are dropped."""
        for part in parts:
            if part.index not in self._names:
                if len(self._names) >= self._most:
                    continue
                self._names[part.index], self._arguments[part.index] = "", []
            self._names[part.index] = self._names[part.index] or part.name
            self._arguments[part.index].append(part.arguments)

    def told(self, clearance: OutsideClearance) -> list[ToolCall | Piece]:
        """All of them, words as the owner reads them; what is no call comes as text."""
        return [self._told(index, clearance) for index in self._names]

    def _told(self, index: int, clearance: OutsideClearance) -> ToolCall | Piece:
        name, arguments = self._names[index], "".join(self._arguments[index]).strip()

        def restored(text: str) -> str:
            return clearance.restore(text) + clearance.restore_end()

        try:
            found = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
            if not name:
                raise msgspec.DecodeError("a call without a name")
            return ToolCall(name, msgspec.json.encode(_changed(found, restored)).decode())
        except (msgspec.DecodeError, msgspec.EncodeError, RecursionError, UnicodeError):
            return Piece(restored(f"{name}({arguments})"))


def _changed(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """The value with every text in it changed. Names of arguments are the tool's own and stay."""
    if depth > _DEPTH_LIMIT:
        raise RecursionError
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(item, change, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, change, depth + 1) for item in value]
    return value
