"""The owner's settings: one frozen record, each value with where it came from. Defaults < file < KITH_* < flags.

The settings themselves are node.settings. Must not act on a setting.
"""

import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from node.config_file import read_file, set_in_file
from node.errors import ConfigError
from node.settings import Settings

__all__ = ["Config", "Explained", "Origin", "known_keys", "load", "parse", "set_value"]

ENV_PREFIX = "KITH_"
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NOT_SETTINGS = frozenset({
    "KITH_HOME", "KITH_PASSPHRASE_FILE", "KITH_GPU", "KITH_PYTHON", "KITH_SOAK",
})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: default, file, environment or flag, and the place in words."""

    kind: Literal["default", "file", "environment", "flag"]
    place: str


@dataclass(frozen=True, slots=True)
class Explained:
    """One line of kith config explain."""

    key: str
    value: Any
    origin: Origin
    words: str


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force, where each came from, and KITH_* names that are none."""

    settings: Settings
    origins: Mapping[str, Origin]
    unknown_env: tuple[str, ...]
    path: Path

    def explain(self) -> list[Explained]:
        """Every setting with its value, source and meaning, in the order of the sections."""
        return [
            Explained(key, _get(self.settings, key), self.origins[key], spec.metadata["words"])
            for key, (spec, _) in _SPECS.items()
        ]

    def get(self, key: str) -> Any:
        """One value by its dotted key. Raises ConfigError for an unknown key."""
        _spec(key, "")
        return _get(self.settings, key)


def load(path: Path, env: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Config:
    """The settings in force. flags: dotted key -> value or text, None for flags that were not given.

    Raises ConfigError that names the file and line, variable or flag, what is wrong, and the nearest known key.
    """
    values: dict[str, Any] = {}
    origins = {key: Origin("default", "built in") for key in _SPECS}
    unknown: list[str] = []
    for key, found in read_file(path).items():
        place = f"{path}:{found.line}" if found.line else str(path)
        values[key], origins[key] = _checked(key, found.value, place), Origin("file", place)
    for name, text in env.items():
        if not name.startswith(ENV_PREFIX) or name in _NOT_SETTINGS:
            continue
        known = _ENV_NAMES.get(name)
        if known is None:
            unknown.append(name)  # build and test variables share the prefix; doctor lists them
            continue
        values[known], origins[known] = parse(known, text, name), Origin("environment", name)
    for key, value in (flags or {}).items():
        if value is not None:
            place = f"--{key.rpartition('.')[2].replace('_', '-')}"
            values[key] = parse(key, value, place) if isinstance(value, str) else _checked(key, value, place)
            origins[key] = Origin("flag", place)
    return Config(_build(values), types.MappingProxyType(origins), tuple(sorted(unknown)), path)


def set_value(path: Path, key: str, text: str) -> Any:
    """The value now in the file, after checking it. Raises ConfigError; the file is then as it was."""
    value = parse(key, text, "the command line")
    set_in_file(path, key, list(value) if isinstance(value, tuple) else value)
    return value


def parse(key: str, text: str, place: str) -> Any:
    """The typed value for a key from text; lists are separated by commas. Raises ConfigError."""
    _, kind = _spec(key, place)
    if kind is bool:
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            raise _wrong(key, text, place, "must be true or false")
        return word in _TRUE
    if kind is int:
        try:
            return _checked(key, int(text.strip()), place)
        except ValueError as error:
            raise _wrong(key, text, place, "must be a whole number") from error
    if kind == tuple[str, ...]:
        return _checked(key, [part.strip() for part in text.split(",") if part.strip()], place)
    return _checked(key, text, place)


def known_keys() -> tuple[str, ...]:
    """Every dotted key."""
    return tuple(_SPECS)


def _checked(key: str, value: Any, place: str) -> Any:
    spec, kind = _spec(key, place)
    if kind == tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise _wrong(key, value, place, "must be a list of texts")
        value = tuple(value)
    elif typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise _wrong(key, value, place, f"must be one of {', '.join(choices)}")
    elif type(value) is not kind:
        raise _wrong(key, value, place, f"must be {_KINDS[kind]}")
    check = spec.metadata["check"]
    problem = check(value) if check else None
    if problem:
        raise _wrong(key, value, place, problem)
    return value


def _spec(key: str, place: str) -> tuple[Field[Any], Any]:
    found = _SPECS.get(key)
    if found is None:
        near = difflib.get_close_matches(key, _SPECS, n=1, cutoff=0.4)
        where = f"{place}: " if place else ""
        did_you_mean = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{where}there is no setting called {key}.{did_you_mean}")
    return found


def _wrong(key: str, value: Any, place: str, problem: str) -> ConfigError:
    return ConfigError(f"{place}: {key} = {value!r} {problem}.")


def _build(values: Mapping[str, Any]) -> Settings:
    sections = {}
    for section in fields(Settings):
        prefix = f"{section.name}."
        own = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}
        sections[section.name] = _SECTIONS[section.name](**own)
    return Settings(**sections)


def _get(settings: Settings, key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


_KINDS: Mapping[Any, str] = {str: "a text", int: "a whole number", bool: "true or false"}
_SECTIONS: dict[str, Any] = typing.get_type_hints(Settings)
_SPECS: dict[str, tuple[Field[Any], Any]] = {
    f"{section}.{spec.name}": (spec, typing.get_type_hints(kind)[spec.name])
    for section, kind in _SECTIONS.items() for spec in fields(kind)
}
_ENV_NAMES = {ENV_PREFIX + key.replace(".", "_").upper(): key for key in _SPECS}
