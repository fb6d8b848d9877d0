"""The systemd user unit that keeps this environment's node running: its text, its place, and systemd's own commands.

Text and process calls only. Must not ask anybody, nor know the node.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from node.cli.failure import CommandFailure

__all__ = ["Outcome", "find_kith", "systemctl", "unit_path", "unit_text"]

PASSED_ON = ("KITH_HOME", "KITH_PASSPHRASE_FILE")
SYSTEMCTL_S = 90.0

# What is not here, and why: RestrictNamespaces and SystemCallFilter would keep the node from boxing its model workers
# (network namespace, Landlock, seccomp); MemoryDenyWriteExecute is untried with cffi and GPU libraries; the Protect*
# settings need a mount namespace of their own, in which a user manager can't give the workers theirs.
_UNIT = """\
[Unit]
Description=Kith: private agent network node
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={command} up
{environment}# SIGTERM lets running answers for peers end first (node.drain_s), then the node leaves; a crash is mended.
KillMode=mixed
TimeoutStopSec={stop_s}
Restart=on-failure
RestartSec=3
# 2: a setting is wrong, 70: a bug or a foreign package. Starting again would change nothing.
RestartPreventExitStatus=2 70
# A model that outgrows the memory is killed and started again; the node lives on.
OOMPolicy=continue
{memory}TasksMax=4096
LimitCORE=0
UMask=0077
NoNewPrivileges=true
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command of systemd said. code None: it is not there, or it did not end in time."""

    code: int | None
    text: str

    @property
    def done(self) -> bool:
        """True when it did what was asked."""
        return self.code == 0


def find_kith() -> Path:
    """The kith command of the environment that runs this. Raises CommandFailure."""
    found = Path(sys.executable).with_name("kith")
    if not found.is_file():
        raise CommandFailure(
            f"there is no kith command beside {sys.executable}",
            hint="Install it there: make install, or pipx install .",
        )
    return found


def unit_text(kith: Path, environ: Mapping[str, str], *, stop_s: int = 60, memory_max_mb: int = 0) -> str:
    """The unit's text. The variables that say where this node lives are passed on; memory_max_mb 0 is no limit."""
    lines = [f"Environment={_quoted(f'{name}={environ[name]}')}\n" for name in PASSED_ON if environ.get(name)]
    memory = f"MemoryMax={memory_max_mb}M\n" if memory_max_mb else ""
    if "$" in str(kith):  # the one word of a command in which systemd has no way to write it
        raise CommandFailure(f"the path {kith} holds a $", hint="Install kith under another path.")
    return _UNIT.format(command=_quoted(str(kith)), environment="".join(lines), stop_s=stop_s, memory=memory)


def unit_path(name: str, environ: Mapping[str, str], home: Path) -> Path:
    """Where the unit of this name belongs."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "systemd" / "user" / f"{name}.service"


def systemctl(*arguments: str, program: str = "systemctl") -> Outcome:
    """One command to the user's systemd, bounded in time."""
    command = [program, "--user", *arguments] if program == "systemctl" else [program, *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False,
            env={**os.environ, "LC_ALL": "C", "SYSTEMD_PAGER": ""},
        )
    except FileNotFoundError:
        return Outcome(None, f"{program} is not on this machine")
    except subprocess.TimeoutExpired:
        return Outcome(None, f"{program} did not end within {SYSTEMCTL_S:.0f} s")
    return Outcome(done.returncode, (done.stdout.strip() or done.stderr.strip()))


def _quoted(text: str) -> str:
    """One word in a unit file: systemd expands % and splits at spaces. Raises CommandFailure for what can't be said."""
    if not text.isprintable():
        raise CommandFailure(f"{text!r} can't stand in a unit file", hint="Choose a path without it.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
