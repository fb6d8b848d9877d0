"""kith metrics: the node's figures for a monitoring system, in Prometheus' text form."""

import click

from node.cli.options import session


@click.command("metrics")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print the node's figures in Prometheus' text form.

    The same as GET /metrics on the node's socket. Counts and states only: no names, ids, addresses or texts.
    """
    at = session(ctx)
    text = at.client().text("/metrics")
    at.data(text.rstrip(), {"text": text})
