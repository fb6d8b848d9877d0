"""kith completion: print shell completion."""

import click
from click.shell_completion import get_completion_class

from node.cli.failure import CommandFailure


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print completion for SHELL. Example: eval "$(kith completion bash)" """
    completion = get_completion_class(shell)
    if completion is None:
        raise CommandFailure(f"no completion for {shell}", exit_code=2, code="usage")
    root = ctx.find_root().command
    try:
        click.echo(completion(root, {}, "kith", "_KITH_COMPLETE").source())
    except RuntimeError as error:
        raise CommandFailure(str(error), hint="Install the shell first.") from None
