"""kith init: make this device's identity and settings without starting the node."""

import os
from pathlib import Path

import click

from node.cli.options import json_option, session
from node.clock import SystemEntropy
from node.config import load
from node.first_run import prepare
from node.paths import Paths


@click.command("init")
@click.option("--name", metavar="NAME", help="What peers see; chosen from words if you give none.")
@click.option(
    "--passphrase", is_flag=True, help="Lock the identity with a passphrase, asked for now and at each start."
)
@json_option
@click.pass_context
def command(ctx: click.Context, name: str | None, passphrase: bool) -> None:
    """Make this device's identity and settings. Safe to run again: nothing that is there is changed."""
    at = session(ctx)
    secret = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True) if passphrase else None
    paths = Paths.from_env(os.environ, Path.home())
    made = prepare(paths, SystemEntropy(), name=name, passphrase=secret)
    config = load(paths.config_file, os.environ)
    at.data(
        f"{config.settings.node.name}   id {made.peer_id}\n"
        f"settings {paths.config_file}\ndata     {paths.data_dir}\nStart it with: kith up",
        {"name": config.settings.node.name, "peer_id": made.peer_id, "data": str(paths.data_dir)},
    )
