"""The kith command: global options, the list of commands, and the one place where failures are drawn.

Commands are loaded when used, so that --help loads none of them. Must not import the node.
"""

import importlib
import io
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from node.cli.failure import CommandFailure
from node.cli.output import Session, print_json
from node.cli.printable import printable
from node.errors import KithError

__all__ = ["COMMANDS", "kith", "main"]

COMMANDS = {
    "init": "Make this device's identity and settings",
    "up": "Start the node in the foreground",
    "down": "Stop the running node",
    "status": "The node and its peers on one screen",
    "pair": "Pair with another node, by code or link",
    "peers": "List paired peers",
    "ping": "Measure the way to a peer",
    "net": "Explain how this node and its peers reach each other",
    "wake": "Start a peer's sleeping machine over the local network",
    "trust": "Change the trust in a peer",
    "grant": "Show, change or revoke what a peer may do here",
    "forget": "Remove a peer and cut its connections",
    "ask": "Ask the agent",
    "queue": "Requests that wait for a better answer",
    "offload": "Explain where work would run, and why",
    "history": "List, show, export or delete conversations",
    "undo": "Take back the last thing the agent wrote",
    "memory": "What the agent has learnt from you, and how to make it forget",
    "skills": "What the agent can do in several steps, and how to ask for it",
    "reminders": "What you will be reminded of, and what you were",
    "search": "Search your notes and what peers share with you",
    "share": "Let named peers search a folder",
    "send": "Send a message to a peer",
    "inbox": "Read messages, or see those still on their way",
    "ledger": "What left this device, exactly",
    "privacy": "What may leave, for whom and in which form",
    "audit": "What may be reached and seen, and a test of the guard",
    "lock": "Close the data until it is unlocked",
    "unlock": "Open the data with the passphrase",
    "key": "The device's key: passphrase, rotation",
    "secrets": "Keep passwords and tokens for your own services",
    "mode": "Show or switch: offline, lan, online",
    "models": "List, show, add, choose or remove local models",
    "bench": "Measure how fast a model is on this machine",
    "eval": "Measure how well a model calls tools",
    "config": "Show, explain or change settings",
    "metrics": "The node's figures for a monitoring system",
    "logs": "Read the node's log",
    "service": "Keep the node running as a systemd user service",
    "doctor": "Check this node and say what to do",
    "demo": "Run two nodes on this machine through the main job",
    "completion": "Print shell completion",
}


class LazyGroup(click.Group):
    """A group whose commands live in cmd_NAME.py and are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"node.cli.cmd_{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            raise click.UsageError(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version  # a fifth of the time that --help takes

        click.echo(f"kith {version('kith-node')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print results only.")
@click.option("-v", "--verbose", is_flag=True, help="Say more.")
@click.option("--no-color", is_flag=True, help="No colours (NO_COLOR does the same).")
@click.option("--timeout", "timeout_s", default=300.0, type=click.FloatRange(0.1, 86_400), metavar="SECONDS",
              help="Longest wait for the node's next word.")
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
@click.pass_context
def kith(ctx: click.Context, as_json: bool, quiet: bool, verbose: bool, no_color: bool, timeout_s: float) -> None:
    """Kith: a private agent on your own devices.

    Start with:  kith up  ·  kith pair  ·  kith ask "..."
    """
    ctx.obj = Session(as_json=as_json, quiet=quiet, verbose=verbose, colour=not no_color, timeout_s=timeout_s)


def _fail(failure: CommandFailure, as_json: bool) -> NoReturn:
    if as_json and failure.shown:
        sys.exit(failure.exit_code)
    if as_json:
        error = {"code": failure.code, "message": str(failure), "hint": failure.hint, "exit_code": failure.exit_code}
        with suppress(BrokenPipeError):     # nobody reads it; the exit code tells
            print_json({"schema": 1, "error": error})
    else:
        print(printable(f"kith: {failure}"), file=sys.stderr)
        if failure.hint:
            print(printable(f"  {failure.hint}"), file=sys.stderr)
    sys.exit(failure.exit_code)


def _fail_usage(error: click.ClickException, as_json: bool) -> NoReturn:
    if as_json:
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f"Run: {context.command_path if context else 'kith'} --help"
        _fail(CommandFailure(error.format_message(), hint=hint, exit_code=error.exit_code, code="usage"), as_json)
    drawn = io.StringIO()
    error.show(drawn)
    print(printable(drawn.getvalue()), end="", file=sys.stderr)
    sys.exit(error.exit_code)


def _refuse_broken(given: list[str]) -> None:
    """Bytes that are no UTF-8 cannot go to the node, nor into a name. Raises CommandFailure."""
    for text in given:
        try:
            text.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(text).decode("utf-8", "backslashreplace")[:60]
            raise CommandFailure(
                f"this argument is not valid UTF-8: {shown}", exit_code=2, code="usage",
                hint="Type it in a terminal with a UTF-8 locale (see: locale), or rename the file.",
            ) from None


def main(args: list[str] | None = None) -> NoReturn:
    """Run one command and exit with its code."""
    given = sys.argv[1:] if args is None else args
    try:
        _refuse_broken(given)
        kith.main(args=given, prog_name="kith", standalone_mode=False)
    except CommandFailure as failure:
        _fail(failure, "--json" in given)
    except KithError as error:
        known = CommandFailure(error.text, hint=error.hint, exit_code=error.exit_code, code=error.code)
        _fail(known, "--json" in given)
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.Abort as stopped:  # click's word for Ctrl-C within a command, and for an end of input
        print("kith: stopped", file=sys.stderr)
        sys.exit(130 if isinstance(stopped.__context__, KeyboardInterrupt) else 1)
    except click.ClickException as error:
        _fail_usage(error, "--json" in given)
    except BrokenPipeError:
        sys.exit(1)
    except KeyboardInterrupt:
        print("kith: stopped", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)
