"""The configuration file as text: its values with their line numbers, and setting one value without losing the rest.

Must not know which keys exist or what they mean.
"""

import fcntl
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from node.errors import ConfigError

__all__ = ["FileValue", "read_file", "read_text", "set_in_file", "set_in_text"]

_HEADER = re.compile(r"\s*\[\s*([A-Za-z0-9_.\-\s\"']+?)\s*\]\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*([A-Za-z0-9_\-.\s\"']+?)\s*=")
_SIZE_LIMIT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileValue:
    """One value of the file and the line it stands in (0 when the line could not be told)."""

    value: Any
    line: int


def read_file(path: Path) -> dict[str, FileValue]:
    """Every value of the file under its dotted key; empty when there is no file. Raises ConfigError with the line."""
    try:
        if path.stat().st_size > _SIZE_LIMIT_BYTES:
            raise ConfigError(f"{path} is larger than {_SIZE_LIMIT_BYTES} bytes; that is no configuration.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.", hint=f"Check: ls -l {path}") from error
    return read_text(text, path)


def read_text(text: str, path: Path) -> dict[str, FileValue]:
    """As read_file(), from text; path is for messages."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no valid TOML: {error}.", hint=f"Mend this line in {path}") from error
    lines = _lines(text)
    return {key: FileValue(value, lines.get(key, 0)) for key, value in _flat(tree)}


def set_in_file(path: Path, key: str, value: Any) -> None:
    """Write key = value into the file, made with mode 0600 if need be, in one step. Comments and other values stay,
    also those that another thread or process sets at the same time."""
    try:
        with _sole_writer(path.parent):
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            _replace(path, set_in_text(text, key, value, path))
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}."
        raise ConfigError(text, hint=f"Check: ls -ld {path.parent}") from error


@contextmanager
def _sole_writer(folder: Path) -> Iterator[None]:
    """The folder's own lock: every open of it is a holder of its own, so threads wait for each other too."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _replace(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def set_in_text(text: str, key: str, value: Any, path: Path) -> str:
    """The text with key set. Edits the one line where it can; else rewrites the file, which loses comments."""
    before = read_text(text, path)
    wanted = {**{name: found.value for name, found in before.items()}, key: value}
    edited = _edit_line(text, key, value, before)
    try:
        after = {name: found.value for name, found in read_text(edited, path).items()}
    except ConfigError:
        after = {}
    return edited if after == wanted else tomli_w.dumps(_tree(wanted))


def _edit_line(text: str, key: str, value: Any, before: Mapping[str, FileValue]) -> str:
    table, _, name = key.rpartition(".")
    line = tomli_w.dumps({name: value}).rstrip("\n")
    lines = text.split("\n")
    at = before[key].line if key in before else 0
    if at:
        left = lines[at - 1].partition("=")[0].rstrip()
        lines[at - 1] = f"{left} = {line.partition('=')[2].strip()}"
        return "\n".join(lines)
    for number, content in enumerate(lines):
        header = _HEADER.match(content)
        if table and header and _plain(header[1]) == table:
            lines.insert(number + 1, line)
            return "\n".join(lines)
    if not table:
        return line + "\n" + text
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}[{table}]\n{line}\n"


def _lines(text: str) -> dict[str, int]:
    """Dotted key -> line of its assignment. A guess by shape, used for messages and checked before it is edited."""
    found: dict[str, int] = {}
    table = ""
    for number, content in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(content):
            table = _plain(header[1])
        elif assignment := _ASSIGNMENT.match(content):
            name = _plain(assignment[1])
            found.setdefault(f"{table}.{name}" if table else name, number)
    return found


def _plain(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            flat.extend(_flat(value, f"{prefix}{name}."))
        else:
            flat.append((prefix + name, value))
    return flat


def _tree(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *tables, name = key.split(".")
        level = tree
        for table in tables:
            level = level.setdefault(table, {})
        level[name] = value
    return tree
