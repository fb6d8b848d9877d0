"""The owner's time zone: the setting, or what this machine is set to. Must not know calendars."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from node.errors import ConfigError

__all__ = ["owner_zone"]

_LOCALTIME = Path("/etc/localtime")
_TIMEZONE = Path("/etc/timezone")


def owner_zone(setting: str) -> ZoneInfo:
    """The zone named by sources.time_zone; without one TZ, then the system's; UTC when nothing says. Raises
    ConfigError."""
    if setting:
        try:
            return ZoneInfo(setting)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ConfigError(f"sources.time_zone = {setting!r} is no time zone, such as Europe/Berlin.") from error
    for name in (os.environ.get("TZ", "").lstrip(":"), _from_link(), _from_file()):
        if name:
            try:
                return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError):
                continue
    return ZoneInfo("UTC")


def _from_link() -> str:
    target = str(_LOCALTIME.resolve()) if _LOCALTIME.exists() else ""
    return target.partition("zoneinfo/")[2]


def _from_file() -> str:
    try:
        return _TIMEZONE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
