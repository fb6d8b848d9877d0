"""kith up: start the node in the foreground by becoming it."""

import os
import sys

import click


@click.command("up")
@click.option("--mode", type=click.Choice(["offline", "lan", "online"]), help="Start in this mode, this time.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port, this time.")
def command(mode: str | None, port: int | None) -> None:
    """Start the node in the foreground. The first run makes identity and settings, without questions."""
    arguments = [sys.executable, "-P", "-m", "node.daemon"]
    arguments += ["--mode", mode] if mode else []
    arguments += ["--port", str(port)] if port is not None else []
    os.execv(sys.executable, arguments)  # noqa: S606 - the node replaces this process; no shell is involved
