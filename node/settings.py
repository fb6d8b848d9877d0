"""The owner's settings, section by section: each a field with its type, default, words and check.

To add a setting, add a field here: that is all there is. Must not know where a value comes from, nor act on one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import time
from typing import Any, Literal

from offload.upstream_errors import UpstreamMisconfigured
from offload.upstream_place import parse_place

__all__ = [
    "AgentConfig",
    "IntentsConfig",
    "LedgerConfig",
    "LogConfig",
    "MailConfig",
    "ModelsConfig",
    "ModesConfig",
    "NetConfig",
    "NodeConfig",
    "OffloadConfig",
    "PrivacyConfig",
    "RemindersConfig",
    "SearchConfig",
    "Settings",
    "SourcesConfig",
    "UpstreamConfig",
]

_STATED = re.compile(
    r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+:[0-9A-Fa-f.]*|[A-Za-z0-9.-]+)(?::([1-9][0-9]{0,4}))?")


def _setting(default: Any, words: str, check: Callable[[Any], str | None] | None = None) -> Any:
    """A field with a default, one line for the owner, and a check that returns what is wrong or None."""
    return field(default=default, metadata={"words": words, "check": check})


def _within(low: int, high: int) -> Callable[[Any], str | None]:
    return lambda value: None if low <= value <= high else f"must lie between {low} and {high}"


def _none_or_within(low: int, high: int) -> Callable[[Any], str | None]:
    return lambda value: None if value == 0 or low <= value <= high else f"must be 0 or lie between {low} and {high}"


def _folders(value: Any) -> str | None:
    wrong = [one for one in (value if isinstance(value, tuple) else (value,)) if one and not one.startswith(("/", "~"))]
    return f"needs full paths, and {wrong[0]!r} is none" if wrong else None


def _upstream_url(value: str) -> str | None:
    if not value:
        return None
    try:
        parse_place(value)
    except UpstreamMisconfigured as error:
        return f"can't be used: {str(error).rstrip('.')}"
    return None


def _hub_url(value: str) -> str | None:
    try:
        place = parse_place(value)
    except UpstreamMisconfigured as error:
        return f"can't be used: {str(error).rstrip('.')}"
    return "must be an https:// address" if place.socket_path else None


def _model_names(value: tuple[str, ...]) -> str | None:
    good = all(one.strip("=") == one and one.isprintable() for one in value)
    return None if good else "must be NAME, or NAME=NAME_THERE"


def _stated(value: tuple[str, ...]) -> str | None:
    for one in value:
        parts = _STATED.fullmatch(one)
        if parts is None or int(parts[2] or 1) > 65535:
            return f"must be HOST, HOST:PORT or [IPv6]:PORT, and {one!r} is not"
    return None


def _node_name(value: str) -> str | None:
    good = all("a" <= one <= "z" or "0" <= one <= "9" or one == "-" for one in value) and len(value) <= 32
    return None if good and value.strip("-") == value else "may hold a-z, 0-9 and inner dashes, up to 32"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """This node."""

    name: str = _setting("", "what peers see; chosen from words on the first run", _node_name)
    mode: Literal["offline", "lan", "online"] = _setting("lan", "offline, lan (peers nearby) or online (anywhere)")
    drain_s: int = _setting(
        20, "seconds that running answers for peers get to end when the node is stopped", _within(0, 600)
    )
    memory_max_mb: int = _setting(
        0, "memory that the service may take in all, models included; 0: no limit (kith service install writes it)",
        _within(0, 2**20),
    )
    keep_awake: bool = _setting(True, "keep this machine from falling asleep while it computes for peers")
    api_port: int = _setting(0, "local web and API port on 127.0.0.1; 0 is off", _within(0, 65535))


@dataclass(frozen=True, slots=True)
class NetConfig:
    """How peers reach this node."""

    listen: tuple[str, ...] = _setting(("127.0.0.1",), "addresses to listen on; pairing adds the local network")
    port: int = _setting(0, "TCP port for peers; 0 chooses one and keeps it", _within(0, 65535))
    pair_lan: bool = _setting(True, "listen on the local network while pairing, and from then on once paired")
    discovery: bool = _setting(False, "announce this node on the local network all the time, to peers that know it")
    pair_discovery: bool = _setting(True, "while pairing, announce and look for an open window on the local network")
    announce: tuple[str, ...] = _setting(
        (), "addresses that lead here from elsewhere, told to peers: HOST, HOST:PORT or [IPv6]:PORT", _stated)
    port_mapping: bool = _setting(False, "ask the router (UPnP, NAT-PMP) to pass calls from the internet to this node")
    relay: bool = _setting(True, "in mode online, carry sealed traffic between peers that were granted relay")


@dataclass(frozen=True, slots=True)
class ModesConfig:
    """What hints do to the mode that you chose."""

    metered: Literal["stay", "lan", "offline"] = _setting(
        "stay", "on a metered connection: stay, or go down to lan or offline")
    metered_interfaces: tuple[str, ...] = _setting(
        ("wwan*", "ppp*", "rmnet*"), "names of interfaces that cost by the byte")
    low_battery: Literal["stay", "lan", "offline"] = _setting(
        "stay", "on a low battery: stay, or go down to lan or offline")
    low_battery_percent: int = _setting(15, "what counts as low", _within(1, 99))


@dataclass(frozen=True, slots=True)
class IntentsConfig:
    """Requests that wait for a better answer (kith queue)."""

    queue: Literal["named", "away", "never"] = _setting(
        "named", "what is queued for an upgrade: what you sent --later or to a peer that is away (named), also what "
        "was answered here because every peer was away (away), or only --later (never)")
    keep_days: int = _setting(7, "how long a request waits for its better answer", _within(1, 365))
    notify: Literal["auto", "on", "off"] = _setting(
        "auto", "tell you on the desktop that an answer came, without its text; auto: where there is a display")


def _quiet(value: str) -> str | None:
    if not value:
        return None
    begin, dash, end = value.partition("-")
    try:
        good = bool(dash) and time.fromisoformat(begin.strip()) != time.fromisoformat(end.strip())
    except ValueError:
        good = False
    return None if good else "must be two times of day such as 22:00-07:00"


@dataclass(frozen=True, slots=True)
class RemindersConfig:
    """When you are told."""

    quiet: str = _setting("", "hours in which no reminder is told, such as 22:00-07:00; told right after", _quiet)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """How the agent behaves."""

    learn: bool = _setting(True, "learn your wording from actions that you confirmed, on this device (kith memory)")
    undo_days: int = _setting(
        365, "days that what the agent wrote for you stays recorded, and can be undone; 0: for ever",
        _none_or_within(30, 36_500))


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Models on this machine."""

    folders: tuple[str, ...] = _setting((), "more folders with .gguf files, besides kith's own", _folders)
    default: str = _setting("", "the model that answers here; empty: the first sound one, by file name")
    threads: int = _setting(0, "most processor threads for a model; 0: as many as there are cores", _within(0, 256))
    gpu_layers: int = _setting(
        -1, "layers of a model on a graphics card; -1: as many as fit there, 0: none", _within(-1, 1000))
    context_tokens: int = _setting(4096, "longest conversation a model here can hold", _within(512, 1_048_576))
    memory_mb: int = _setting(
        0, "most MiB of memory for a model's process; 0: what the model turns out to need", _within(0, 2**20))
    hub: str = _setting("https://huggingface.co", "where kith models add hf:... fetches from", _hub_url)


@dataclass(frozen=True, slots=True)
class OffloadConfig:
    """Work at other machines."""

    go_on_at_home: bool = _setting(
        True, "an answer that begins here while your other machine is away goes on there once it is back, if it has "
        "the same model and you need not be asked")


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    """Another program that serves models: llama.cpp's server, vLLM, Ollama. On another machine it counts as a peer."""

    url: str = _setting("", "http://127.0.0.1:8080, unix:/path or https://HOST; empty: none", _upstream_url)
    kind: Literal["llama.cpp", "vllm", "ollama", "other"] = _setting("other", "which program it is")
    models: tuple[str, ...] = _setting(
        (), "NAME or NAME=NAME_THERE; empty: all that it lists, which is asked on this machine only", _model_names)
    key: str = _setting("", "name of the key it wants, as stored by kith secrets add; empty: none")
    key_file: str = _setting("", "file of mode 0600 with that key instead; better: kith secrets add", _folders)
    ca_file: str = _setting("", "certificates to trust for https; empty: the system's", _folders)
    context_tokens: int = _setting(4096, "its context when it does not say", _within(512, 1_048_576))


@dataclass(frozen=True, slots=True)
class SourcesConfig:
    """The owner's own data."""

    calendar: str = _setting(
        "", "folder of .ics files, yours but for one named after a contact (dana.ics); empty: kith's own data folder",
        _folders)
    contacts: str = _setting("", "folder of .vcf files; empty: kith's own data folder", _folders)
    notes: str = _setting("", "folder of notes; empty: kith's own data folder", _folders)
    files: tuple[str, ...] = _setting((), "folders whose files the agent may read", _folders)
    time_zone: str = _setting("", "such as Europe/Berlin; empty: the system's")


@dataclass(frozen=True, slots=True)
class MailConfig:
    """Messages between nodes."""

    keep_days: int = _setting(14, "how long an undelivered message waits", _within(1, 365))
    history_days: int = _setting(
        365, "days that a message is kept once you read it, or once yours was delivered or expired; 0: for ever",
        _none_or_within(30, 36_500))


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Search."""

    max_peers: int = _setting(10, "most peers asked for one search", _within(0, 64))
    deadline_s: int = _setting(10, "how long to wait for peers", _within(1, 120))


@dataclass(frozen=True, slots=True)
class LedgerConfig:
    """How long the record of what left is kept."""

    texts_days: int = _setting(
        90, "days that the exact texts and bytes are kept; 0: for ever. Hashes stay", _within(0, 36_500))
    entries_days: int = _setting(
        730, "days that entries are kept at all; 0: for ever. A signed checkpoint stays", _within(0, 36_500))


@dataclass(frozen=True, slots=True)
class PrivacyConfig:
    """What is masked before a text leaves, and when the owner is asked."""

    ask_first: bool = _setting(
        False, "show every free text before it leaves for a peer's model, also when all nets have looked at it")
    public_names: tuple[str, ...] = _setting(
        (), "names that detectors may leave readable, such as your town; your contacts are masked all the same")


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The log file."""

    level: Literal["debug", "info", "warning", "error"] = _setting("info", "how much is logged; never personal text")
    max_mb: int = _setting(5, "size at which a new log file starts", _within(1, 1024))
    keep_files: int = _setting(3, "old log files kept", _within(0, 100))


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting."""

    node: NodeConfig = field(default_factory=NodeConfig)
    net: NetConfig = field(default_factory=NetConfig)
    modes: ModesConfig = field(default_factory=ModesConfig)
    intents: IntentsConfig = field(default_factory=IntentsConfig)
    reminders: RemindersConfig = field(default_factory=RemindersConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    offload: OffloadConfig = field(default_factory=OffloadConfig)
    upstream: UpstreamConfig = field(default_factory=UpstreamConfig)
    sources: SourcesConfig = field(default_factory=SourcesConfig)
    mail: MailConfig = field(default_factory=MailConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    ledger: LedgerConfig = field(default_factory=LedgerConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    log: LogConfig = field(default_factory=LogConfig)
