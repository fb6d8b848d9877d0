"""kith ping: round trips to a peer over the link that is there, and the way they take. Stops by itself."""

import statistics
import time
from typing import Any

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session

UNREACHABLE = 5


def endpoint(address: str) -> str:
    """host:port of /ip4/HOST/tcp/PORT; anything else as it is."""
    parts = address.split("/")
    if len(parts) < 5:
        return address
    return f"[{parts[2]}]:{parts[4]}" if parts[1] == "ip6" else f"{parts[2]}:{parts[4]}"


def _way(pong: dict[str, Any]) -> str:
    if pong["transport"] == "circuit":
        return f"{pong['route']}"
    return f"via {pong['route']} {pong['transport']} {endpoint(pong['address'])}"


@click.command("ping")
@click.argument("peer")
@click.option("-n", "--count", default=4, type=click.IntRange(1, 1000), show_default=True, help="How many round trips.")
@click.option("-i", "--interval", "interval_s", default=0.5, type=click.FloatRange(0, 60), metavar="SECONDS",
              show_default=True, help="Pause between two.")
@click.option("-w", "--wait", "wait_s", default=5.0, type=click.FloatRange(0.1, 60), metavar="SECONDS",
              show_default=True, help="How long to wait for one.")
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str, count: int, interval_s: float, wait_s: float) -> None:
    """Measure the way to PEER. A peer that is away is called first.

    Exit code 5 when not one answer came back; the last one's reason is shown.
    """
    at = session(ctx)
    client = at.client()
    replies: list[dict[str, Any]] = []
    failure: CommandFailure | None = None
    for number in range(count):
        if number:
            time.sleep(interval_s)
        try:
            pong = client.post(f"/v1/peers/{named(peer)}/ping", {"timeout_s": wait_s})
        except CommandFailure as caught:
            if caught.exit_code != UNREACHABLE:
                raise
            failure = caught
            replies.append({"rtt_ms": None})
            at.say(f"{number + 1}: {caught}")
            continue
        replies.append({key: pong[key] for key in ("rtt_ms", "route", "transport", "address")})
        if not at.as_json:
            at.data(f"pong {pong['rtt_ms']:.1f} ms {_way(pong)}")
    times = [reply["rtt_ms"] for reply in replies if reply["rtt_ms"] is not None]
    if not times:
        assert failure is not None
        raise failure
    summary = {"min_ms": min(times), "median_ms": round(statistics.median(times), 3), "max_ms": max(times)}
    at.say(f"{len(times)} of {count} came back; "
           f"{summary['min_ms']:.1f} / {summary['median_ms']:.1f} / {summary['max_ms']:.1f} ms (min/median/max)")
    if at.as_json:
        at.data("", {"peer": peer, "sent": count, "received": len(times), **summary, "replies": replies})
