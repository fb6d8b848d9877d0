"""kith service: keep the node running as a systemd user service. Shows what it will write, and asks before it acts."""

import os
from pathlib import Path
from typing import Any

import click

from node.cli.failure import CommandFailure, NotRunning
from node.cli.options import json_option, session
from node.cli.output import Session
from node.cli.service_unit import Outcome, find_kith, systemctl, unit_path, unit_text
from node.cli.terminal import confirm
from node.config import load
from node.paths import Paths

NOT_CONFIRMED = 4
LEAVING_S = 40


def _confirm(at: Session, question: str, given: bool) -> bool:
    """The owner's yes: given on the command line, or typed. Without a terminal it is no."""
    if given:
        return True
    return at.interactive() and confirm(question)


def _path(name: str) -> Path:
    return unit_path(name, os.environ, Path.home())


def _text() -> str:
    """The unit for this environment; systemd waits longer than the node lets answers end."""
    node = load(Paths.from_env(os.environ, Path.home()).config_file, os.environ).settings.node
    return unit_text(
        find_kith(), os.environ, stop_s=node.drain_s + LEAVING_S, memory_max_mb=node.memory_max_mb
    )


def _runs(at: Session) -> bool:
    """Whether a node of this home answers."""
    try:
        at.client().look("/v1/health")
    except NotRunning:
        return False
    return True


def _must(outcome: Outcome, what: str, hint: str) -> None:
    if not outcome.done:
        raise CommandFailure(f"{what} did not work: {outcome.text or outcome.code}", hint=hint, code="systemd")


_name_option = click.option("--name", default="kith", show_default=True, help="Name of the unit.")
_yes_option = click.option("-y", "--yes", is_flag=True, help="Don't ask.")


@click.group("service")
def command() -> None:
    """Keep the node running as a systemd user service."""


@command.command("install")
@_name_option
@click.option("--print", "only_print", is_flag=True, help="Print the unit and do nothing else.")
@click.option("--no-start", is_flag=True, help="Write the unit; don't enable or start it.")
@click.option("--linger", is_flag=True, help="Also start it at boot, before you log in.")
@_yes_option
@json_option
@click.pass_context
def install(ctx: click.Context, name: str, only_print: bool, no_start: bool, linger: bool, yes: bool) -> None:
    """Write a user unit that runs this environment's kith, and enable it.

    The unit is printed first. Each step is asked for; without a terminal nothing is done unless --yes is given.
    """
    at = session(ctx)
    text, path = _text(), _path(name)
    result: dict[str, Any] = {"path": str(path), "unit": text, "written": False, "enabled": False, "linger": False}
    if not at.as_json:
        at.data(text.rstrip())
    if only_print:
        at.data("", result)
        return
    same = path.is_file() and path.read_text(encoding="utf-8") == text
    if not same:
        word = "Replace" if path.exists() else "Write"
        if not _confirm(at, f"{word} {path}?", yes):
            raise CommandFailure(
                "nothing was written", hint="Agree on a terminal, or give --yes.", exit_code=NOT_CONFIRMED,
                code="not_confirmed",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        at.say(f"Wrote {path}")
    result["written"] = True
    if not no_start and _confirm(at, "Enable and start it now?", yes):
        if _runs(at) and not systemctl("is-active", f"{name}.service").done:
            raise CommandFailure(
                "a node runs already, and not as this service", hint="Stop it, then install again: kith down",
                code="already_running",
            )
        by_hand = f"The unit is in place. By hand: systemctl --user enable --now {name}"
        _must(systemctl("daemon-reload"), "systemctl --user daemon-reload", by_hand)
        _must(systemctl("enable", f"{name}.service"), f"systemctl --user enable {name}", by_hand)
        _must(systemctl("restart", f"{name}.service"), f"systemctl --user restart {name}", by_hand)
        result["enabled"] = True
        at.say(f"{name} is enabled and started. See: kith service status")
        if linger or (not yes and _confirm(at, "Start it at boot too, before you log in?", False)):
            _must(systemctl("enable-linger", program="loginctl"), "loginctl enable-linger",
                  "By hand: loginctl enable-linger")
            result["linger"] = True
    at.data("", result)


@command.command("status")
@_name_option
@json_option
@click.pass_context
def status(ctx: click.Context, name: str) -> None:
    """Whether the unit is there, up to date, enabled and running, and whether the node is ready.

    Exit code 1 when it is not installed, not running, or the node is not ready.
    """
    at = session(ctx)
    path = _path(name)
    unit = "absent"
    if path.is_file():
        unit = "current" if path.read_text(encoding="utf-8") == _text() else "different"
    enabled, active = systemctl("is-enabled", f"{name}.service"), systemctl("is-active", f"{name}.service")
    try:
        health = at.client().look("/v1/health?probe=1")
    except NotRunning:
        health = {"state": "not running", "ready": False, "detail": ""}
    view = {
        "path": str(path), "unit": unit, "enabled": enabled.text, "active": active.text, "node": health,
    }
    age_s = health.get("last_token_age_s")
    words = [health["state"], health["detail"], "" if age_s is None else f"last token {age_s:.0f} s ago"]
    notes = {"absent": "not installed: kith service install",
             "different": "differs from what kith would write now: kith service install", "current": "up to date"}
    at.data("\n".join([
        f"unit     {path}  ({notes[unit]})",
        f"enabled  {enabled.text or enabled.code}",
        f"active   {active.text or active.code}",
        f"node     {'; '.join(word for word in words if word)}",
    ]), view)
    if unit == "absent" or not active.done or not health["ready"]:
        raise CommandFailure("the service is not all there", hint="Each line above says what is missing.",
                             code="service", shown=True)


@command.command("remove")
@_name_option
@_yes_option
@json_option
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> None:
    """Stop and disable the service and delete its unit. The node's data stays."""
    at = session(ctx)
    path = _path(name)
    if not path.exists():
        at.data(f"There is no {path}.", {"path": str(path), "removed": False, "stopped": False})
        return
    if not _confirm(at, f"Stop {name} and delete {path}?", yes):
        raise CommandFailure(
            "nothing was removed", hint="Agree on a terminal, or give --yes.", exit_code=NOT_CONFIRMED,
            code="not_confirmed",
        )
    stopped = systemctl("disable", "--now", f"{name}.service")
    path.unlink()
    systemctl("daemon-reload")
    if not stopped.done:
        at.say(f"systemd did not stop it: {stopped.text or stopped.code}. If it still runs: kith down")
    at.data(f"Removed {path}.", {"path": str(path), "removed": True, "stopped": stopped.done})
