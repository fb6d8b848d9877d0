"""kith wake: start a sleeping machine of a paired peer over the local network (wake-on-LAN)."""

import click

from node.cli.client import named
from node.cli.failure import CommandFailure
from node.cli.options import json_option, session

UNREACHABLE = 5


@click.command("wake")
@click.argument("peer")
@click.option("--mac", "hardware", metavar="ADDRESS", help="Its hardware address (aa:bb:cc:dd:ee:ff); kept for later.")
@click.option("-w", "--wait", "wait_s", default=60.0, type=click.FloatRange(0, 600), metavar="SECONDS",
              show_default=True, help="How long to wait until it is here.")
@json_option
@click.pass_context
def command(ctx: click.Context, peer: str, hardware: str | None, wait_s: float) -> None:
    """Wake PEER's machine by wake-on-LAN, and wait until it is here.

    The machine must allow it in its firmware, and be on the same network. Its hardware address is remembered from when
    it was last seen there. Exit code 5 when it does not come.
    """
    at = session(ctx)
    if wait_s + 10 > at.timeout_s:
        at.timeout_s = wait_s + 10
    found = at.client().post(f"/v1/peers/{named(peer)}/wake", {"hardware": hardware, "wait_s": wait_s})
    if not found["awake"]:
        raise CommandFailure(
            f"{found['peer']} did not come within {wait_s:.0f} s; {found['packets']} packets were sent to "
            f"{found['hardware']}",
            hint="Is wake-on-LAN on in its firmware, and is it on this network? See: kith ping " + found["peer"],
            exit_code=UNREACHABLE, code="not_awake",
        )
    how = "was here already" if not found["packets"] else f"is here after {found['waited_s']:.0f} s"
    at.data(f"{found['peer']} {how}", found)
