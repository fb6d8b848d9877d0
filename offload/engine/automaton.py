"""A language as an automaton over bytes: what may follow, what must follow, and when it may end.

A state is the set of all ways in which the text so far can go on, and is worked out when a walk first comes by. It
costs 0.1 ms a token where a grammar over a whole vocabulary costs 8. Pure: must not know schemas, tokens or models.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from offload.language import Chars, Choice, Node, Row, Text, Times

__all__ = ["Automaton", "State"]

_KEPT_WAYS = 200_000        # of all remembered states together
_MOST_WAYS = 20_000         # of one state; only a language made to be ambiguous has more
_LONGEST_FORCED_BYTES = 1024
_ASCII = range(0x80)


@dataclass(frozen=True, slots=True, eq=False)
class _Byte:
    """One byte out of a set, as a mask of 256 bits."""

    mask: int


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    parts: "tuple[_Part, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    options: "tuple[_Part, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class _Times:
    part: "_Part"
    least: int
    most: int | None


_Part = _Byte | _Row | _Choice | _Times
# One way to go on: a part, how much of it is done, and the way behind it. None is the end.
_Way = tuple[_Part, int, "_Way"] | None


@dataclass(slots=True, eq=False)
class State:
    """Where a walk has come to. may_end: the text so far is complete. next_bytes: what may follow, as a mask."""

    may_end: bool
    next_bytes: int
    edges: tuple[tuple[int, _Way], ...]
    steps: "dict[int, State | None]" = field(default_factory=dict)


class Automaton:
    """Accepts the texts of one expression. Belongs to one thread at a time."""

    def __init__(self, root: Node) -> None:
        self._states: dict[frozenset[_Way], State] = {}
        self._held = 0
        self._least: dict[_Part, int] = {}
        self.start = self._state(frozenset(((_compile(root, {}), 0, None),)))

    def walk(self, state: State, data: bytes) -> State | None:
        """The state behind these bytes; None when they are not allowed here."""
        for byte in data:
            following = state.steps[byte] if byte in state.steps else self._step(state, byte)
            if following is None:
                return None
            state = following
        return state

    def forced(self, state: State) -> bytes:
        """The bytes that must follow, up to the next place with a choice or where the text may end."""
        must = bytearray()
        while not state.may_end and state.next_bytes.bit_count() == 1 and len(must) < _LONGEST_FORCED_BYTES:
            byte = state.next_bytes.bit_length() - 1
            following = self.walk(state, bytes((byte,)))
            if following is None:
                break
            must.append(byte)
            state = following
        return bytes(must)

    def ending(self, state: State) -> bytes:
        """The fewest bytes with which the text can end from here, each time the same ones."""
        last = bytearray()
        while not state.may_end:
            mask = min(state.edges, key=lambda edge: (_fewest(edge[1], self._least), edge[0] & -edge[0]))[0]
            byte = (mask & -mask).bit_length() - 1
            following = self.walk(state, bytes((byte,)))
            if following is None:
                break
            last.append(byte)
            state = following
        return bytes(last)

    def fewest(self, state: State) -> int:
        """How many bytes those are."""
        return 0 if state.may_end else 1 + min(_fewest(way, self._least) for _, way in state.edges)

    @staticmethod
    def done(state: State) -> bool:
        """Whether the text is complete and nothing may follow."""
        return state.may_end and not state.next_bytes

    def _step(self, state: State, byte: int) -> State | None:
        ways = frozenset(way for mask, way in state.edges if mask >> byte & 1)
        following = state.steps[byte] = self._state(ways) if 0 < len(ways) <= _MOST_WAYS else None
        return following

    def _state(self, ways: frozenset[_Way]) -> State:
        known = self._states.get(ways)
        if known is not None:
            return known
        self._held += 1 + len(ways)
        if self._held > _KEPT_WAYS:
            self._states.clear()        # those in use stay alive through whoever stands on them
            self._held = 1 + len(ways)
        edges: list[tuple[int, _Way]] = []
        seen: set[_Way] = set()
        ends = [_expand(way, edges, seen) for way in ways]
        next_bytes = 0
        for mask, _ in edges:
            next_bytes |= mask
        state = self._states[ways] = State(any(ends), next_bytes, tuple(edges))
        return state


def _expand(way: _Way, edges: list[tuple[int, _Way]], seen: set[_Way]) -> bool:
    """Collect the bytes with which this way goes on. True when it may end here."""
    if way is None:
        return True
    if way in seen:
        return False
    seen.add(way)
    part, done, rest = way
    match part:
        case _Byte(mask=mask):
            edges.append((mask, rest))
            return False
        case _Row(parts=parts):
            if not parts:
                return _expand(rest, edges, seen)
            behind: _Way = rest if done + 1 == len(parts) else (part, done + 1, rest)
            return _expand((parts[done], 0, behind), edges, seen)
        case _Choice(options=options):
            ends = [_expand((option, 0, rest), edges, seen) for option in options]
            return any(ends)
        case _Times(part=inner, least=least, most=most):
            may_end = done >= least and _expand(rest, edges, seen)
            if most is None or done < most:
                count = done + 1 if most is not None else min(done + 1, least)
                may_end |= _expand((inner, 0, (part, count, rest)), edges, seen)
            return may_end


def _fewest(way: _Way, known: dict[_Part, int]) -> int:
    """The fewest bytes with which this way comes to its end."""
    total = 0
    while way is not None:
        part, done, way = way
        match part:
            case _Row(parts=parts):
                total += sum(_least(inner, known) for inner in parts[done:])
            case _Times(part=inner, least=least):
                total += max(0, least - done) * _least(inner, known)
            case _:
                total += _least(part, known)
    return total


def _least(part: _Part, known: dict[_Part, int]) -> int:
    """The length of its shortest text."""
    found = known.get(part)
    if found is None:
        match part:
            case _Byte():
                found = 1
            case _Row(parts=parts):
                found = sum(_least(inner, known) for inner in parts)
            case _Choice(options=options):
                found = min(_least(option, known) for option in options)
            case _Times(part=inner, least=least):
                found = least * _least(inner, known) if least else 0
        known[part] = found
    return found


def _compile(node: Node, known: dict[int, _Part]) -> _Part:
    """The expression with its texts and characters as bytes; shared parts stay shared."""
    part = known.get(id(node))
    if part is None:
        part = known[id(node)] = _compiled(node, known)
    return part


def _compiled(node: Node, known: dict[int, _Part]) -> _Part:
    match node:
        case Text(text=text):
            return _Row(tuple(_Byte(1 << byte) for byte in text.encode(errors="surrogateescape")))
        case Chars(chars=chars):
            return _Byte(_mask(chars.encode()))
        case Row(parts=parts):
            return _Row(tuple(_compile(part, known) for part in parts))
        case Choice(options=options):
            return _Choice(tuple(_compile(option, known) for option in options))
        case Times(part=part, least=least, most=most):
            return _Times(_compile(part, known), least, most)
        case _:
            return _character(_mask(_ASCII) & ~_mask(node.without.encode()))


def _character(ascii_mask: int) -> _Part:
    """One well-formed UTF-8 character: no overlong form, no surrogate, none above U+10FFFF (RFC 3629, section 4)."""
    tail = _mask(range(0x80, 0xC0))
    rows = (
        (_mask(range(0xC2, 0xE0)), tail),
        (1 << 0xE0, _mask(range(0xA0, 0xC0)), tail),
        (_mask((*range(0xE1, 0xED), 0xEE, 0xEF)), tail, tail),
        (1 << 0xED, _mask(range(0x80, 0xA0)), tail),
        (1 << 0xF0, _mask(range(0x90, 0xC0)), tail, tail),
        (_mask(range(0xF1, 0xF4)), tail, tail, tail),
        (1 << 0xF4, _mask(range(0x80, 0x90)), tail, tail),
    )
    return _Choice((_Byte(ascii_mask), *(_Row(tuple(_Byte(mask) for mask in row)) for row in rows)))


def _mask(values: Iterable[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask
