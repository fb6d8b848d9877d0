"""How a command fails: what happened, why, the next command, and one of the stable exit codes.

Exit codes: 0 ok, 1 failed, 2 usage, 3 node not running, 4 refused by policy, 5 peer unreachable, 6 not paired or
trusted,
7 model missing, 70 bug or a foreign package. Must not know how failures are drawn.
"""

__all__ = ["CommandFailure", "NotRunning"]


class CommandFailure(Exception):
    """A command could not do what was asked. shown: the result that was printed already says so; only the exit code
    is left."""

    def __init__(
        self, message: str, *, hint: str = "", exit_code: int = 1, code: str = "failed", shown: bool = False
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code
        self.code = code
        self.shown = shown


class NotRunning(CommandFailure):
    """No node answers on the socket."""

    def __init__(self) -> None:
        super().__init__("kith is not running.", hint="Start it with: kith up", exit_code=3, code="not_running")
