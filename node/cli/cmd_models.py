"""kith models: list, add or choose local models."""

from pathlib import Path
from typing import Any

import click

from node.cli.options import json_option, session
from node.cli.output import table


def _row(model: dict[str, Any]) -> list[str]:
    return [
        ("* " if model["default"] else "  ") + model["name"],
        model["quantisation"],
        f"{model['size_bytes'] / 1e6:.0f} MB",
        str(model["context_tokens"]),
        model["licence"] or "not stated",
        "loaded" if model["loaded"] else "cold",
        model["digest"][:12],
    ]


@click.group("models", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, add or choose local models."""
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


@command.command("add")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
@click.pass_context
def add(ctx: click.Context, file: Path) -> None:
    """Copy FILE (GGUF) into the models folder after checking it."""
    at = session(ctx)
    at.say(f"Copying and checking {file.name} ...")
    model = at.client().post("/v1/models", {"path": str(file.resolve())})
    at.data(f"Added {model['name']}  sha256 {model['digest'][:16]}", model)


@command.command("use")
@click.argument("name")
@json_option
@click.pass_context
def use(ctx: click.Context, name: str) -> None:
    """Make NAME the default model."""
    at = session(ctx)
    model = at.client().post(f"/v1/models/{name}/use")
    at.data(f"Default model: {model['name']}", model)
