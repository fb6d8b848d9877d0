"""kith demo: run two nodes on this machine through the main job and print what really happened."""

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from node.cli.demo.nodes import DAEMON, DemoNode
from node.cli.demo.owner import Owner
from node.cli.demo.steps import Stage, Step, run_steps
from node.cli.demo.world import make_world
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session
from node.cli.output import Session, print_json, table

__all__ = ["command", "run_demo"]

ZONE = "Europe/London"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_demo(root: Path, at: Session, command: tuple[str, ...] = DAEMON) -> Stage:
    """Play the whole demonstration below root; the stage holds every step's result."""
    world = make_world(root, datetime.now(ZoneInfo(ZONE)))
    with DemoNode("phone", world.phone, command) as phone, DemoNode("home-pc", world.home_pc, command) as home_pc:
        at.say("Starting two nodes, phone and home-pc, each in its own process ...")
        phone.start()
        home_pc.start()
        stage = Stage(world, phone, home_pc, Owner(phone.client()))

        def report(step: Step) -> None:
            mark = "ok" if step.ok else "FAILED"
            at.say(f"{mark:<7}{step.name}  ({step.ran_on}, {step.seconds} s)\n       {step.detail}")
            for line in stage.owner.decisions:
                at.say(f"       owner: {line}")
            stage.owner.decisions.clear()

        run_steps(stage, report)
        if not at.as_json:
            _print_account(stage, at)
        return stage


def _print_account(stage: Stage, at: Session) -> None:
    client = stage.phone.client()
    entries = client.get("/v1/ledger", limit=1000)
    rows = [
        [
            str(entry["entry_id"]),
            entry["peer"],
            entry["purpose"],
            f"{entry['size_bytes']} B",
            str(entry["substitutions"]),
            entry["outcome"],
        ]
        for entry in reversed(entries)
    ]
    peers = ", ".join(f"{peer['name']} ({peer['trust']}, {peer['route']})" for peer in client.get("/v1/peers"))
    at.data("\nWhat left the phone:")
    at.data(table(rows, ["ENTRY", "PEER", "PURPOSE", "SIZE", "REPLACED", "OUTCOME"]))
    at.data(f"Peers: {peers}")
    at.data(f"{stage.bytes_out} bytes in all; {stage.masked} personal values kept back; {stage.leaked} leaked.")


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Within the block, the signals that end a process leave it through its context managers, which stop the nodes."""

    def leave(number: int, _: object) -> None:
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)  # a second one would cut the clearing up short
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    before = {one: signal.getsignal(one) for one in ENDING}
    for one, handler in before.items():
        if handler != signal.SIG_IGN:  # as nohup sets it
            signal.signal(one, leave)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)


def _play(root: Path, at: Session, keep: bool) -> tuple[Stage, bool]:
    """The stage, and whether all went well. What went wrong is kept for a look, what was cut off is not."""
    done = cut = False
    try:
        stage = run_demo(root, at)
        done = all(step.ok for step in stage.steps)
        return stage, done
    except (KeyboardInterrupt, SystemExit):
        cut = True
        raise
    finally:
        if not keep and (done or cut):
            shutil.rmtree(root, ignore_errors=cut)
        elif not done:
            print(f"The demonstration's folders are kept for a look: {root}", file=sys.stderr)


@click.command("demo")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Play in DIR and leave everything there.")
@json_option
@click.pass_context
def command(ctx: click.Context, keep: Path | None) -> None:
    """Run two nodes on this machine, phone and home-pc, through the main job. Offline; every line is checked."""
    at = session(ctx)
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise CommandFailure(f"{keep} is not empty", hint="Choose a new folder.", exit_code=2, code="usage")
    root = (keep or Path(tempfile.mkdtemp(prefix="kith-demo-"))).resolve()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _ending_in_order():
        stage, done = _play(root, at, keep is not None)
    if at.as_json:
        report = {
            "schema": 1,
            "ok": done,
            "steps": [asdict(step) for step in stage.steps],
            "bytes_out": stage.bytes_out,
            "masked": stage.masked,
            "leaked": stage.leaked,
        }
        print_json(report)
    if not done:
        failed = [step.name for step in stage.steps if not step.ok]
        raise CommandFailure(
            f"these steps did not go well: {', '.join(failed)}", hint="See the folders above.", code="demo", shown=True
        )
    at.say("All steps went well.")
