"""Logging with the standard library: JSON lines in a size-rotated private file, plain lines on a terminal.

Personal text is never logged. Code logs fixed sentences with ids and counts; the filter here is the second net: it
shortens long values, drops bytes, removes e-mail addresses and long numbers, and keeps only the type of foreign errors.
Must not know what the node does.
"""

import json
import logging
import logging.handlers
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from node.errors import KithError

__all__ = ["ConsoleFormatter", "JsonFormatter", "RedactingFilter", "scrub_with", "set_up"]

OWN_LOGGERS = ("node", "protocol", "offload", "search")
_VALUE_LIMIT_CHARS = 120
_EMAIL = re.compile(r"[^\s@<>\"']+@[^\s@<>\"']+\.[A-Za-z]{2,}")
_LONG_NUMBER = re.compile(r"(?<![\w.])\+?\d(?:[\s()/-]?\d){8,}(?!\w)")

Scrub = Callable[[str], str]


class RedactingFilter(logging.Filter):
    """Cleans every record before a handler formats it. scrub: one more net, such as the vault's, set by the daemon."""

    def __init__(self, scrub: Scrub | None = None) -> None:
        super().__init__()
        self.scrub = scrub

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true; the record's message and arguments are replaced by clean ones."""
        try:
            record.msg, record.args = self._clean(_message(record)), None
            if record.exc_info:
                record.exc_text, record.exc_info = self._trace(record.exc_info), None
            if scrub := self.scrub:
                record.msg = scrub(record.msg)
                record.exc_text = scrub(record.exc_text) if record.exc_text else record.exc_text
        except Exception as error:  # a line that cannot be cleaned is not written, and must not stop its writer either
            record.msg, record.args, record.exc_info = f"(a log line was left out: {type(error).__name__})", None, None
            record.exc_text = None
        return True

    def _clean(self, text: str) -> str:
        return _LONG_NUMBER.sub("<number>", _EMAIL.sub("<address>", text))

    def _trace(self, info: Any) -> str:
        kind, error, trace = info
        frames = [f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in traceback.extract_tb(trace)]
        # Only our own errors have texts that were written for reading; any other text may quote what it failed on.
        said = f": {self._clean(error.text)[:_VALUE_LIMIT_CHARS]}" if isinstance(error, KithError) else ""
        return f"{kind.__name__}{said} at {' < '.join(reversed(frames))}"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at, level, logger, text, and error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(), "logger": record.name, "text": record.getMessage(),
        }
        if record.exc_text:
            line["error"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


class ConsoleFormatter(logging.Formatter):
    """A line for people: time, level when it matters, text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        return f"{at} {level}{record.getMessage()}" + (f" ({record.exc_text})" if record.exc_text else "")


def set_up(
    file: Path, *, level: str, max_mb: int, keep_files: int, console: IO[str] | None = sys.stderr,
) -> RedactingFilter:
    """Logging as configured; the filter comes back so that the daemon can add the vault's net to it.

    Our own loggers log from level on; all others only warnings, because their lines were not written by our rules.
    Call again to change; the handlers before are closed. The file has mode 0600.
    """
    redact = RedactingFilter()
    handlers: list[logging.Handler] = [
        _PrivateFileHandler(file, maxBytes=max_mb * 1_000_000, backupCount=keep_files, encoding="utf-8"),
    ]
    handlers[0].setFormatter(JsonFormatter())
    if console is not None:
        stream = logging.StreamHandler(console)
        stream.setFormatter(ConsoleFormatter())
        handlers.append(stream)
    root = logging.getLogger()
    for old in list(root.handlers):
        if getattr(old, "made_here", False):
            root.removeHandler(old)
            old.close()
    for handler in handlers:
        handler.addFilter(redact)
        handler.made_here = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())
    logging.raiseExceptions = False  # a full disk must not print half lines over the owner's screen
    return redact


def scrub_with(scrub: Scrub | None) -> None:
    """Let one more net look at every line of the handlers that set_up() made; None: no more."""
    for handler in logging.getLogger().handlers:
        for redact in handler.filters if getattr(handler, "made_here", False) else ():
            if isinstance(redact, RedactingFilter):
                redact.scrub = scrub


class _PrivateFileHandler(logging.handlers.RotatingFileHandler):
    def _open(self) -> Any:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(fd, "a", encoding=self.encoding)


def _message(record: logging.LogRecord) -> str:
    args = record.args
    if isinstance(args, Mapping):
        return str(record.msg) % {name: _short(value) for name, value in args.items()}
    return str(record.msg) % tuple(_short(value) for value in args) if args else str(record.msg)


def _short(value: Any) -> Any:
    if isinstance(value, int | float | bool) or value is None:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, KithError):
        return value.text[:_VALUE_LIMIT_CHARS]
    if isinstance(value, BaseException):
        return type(value).__name__
    text = str(value)
    return text if len(text) <= _VALUE_LIMIT_CHARS else f"<{len(text)} characters>"
