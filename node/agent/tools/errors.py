"""Every error that a tool raises on purpose, drawn as a tree.

    ToolError
    +-- BadArgument        an argument is missing, unknown, of the wrong kind or out of bounds
    +-- NothingFound       what was asked for is not there
    +-- AmbiguousName      more than one thing fits; the error lists them
    +-- EffectRefused      the effect cannot be applied or undone as planned: the data changed, or the file is broken
    +-- CannotUndo         what was done is out of hand, such as a message that was sent

Texts may hold the owner's own data: they go to the owner's screen, never to a log or a peer. Must not know who shows
them.
"""

__all__ = ["AmbiguousName", "BadArgument", "CannotUndo", "EffectRefused", "NothingFound", "ToolError"]


class ToolError(Exception):
    """A tool could not do what it was asked."""

    code = "tool"
    hint = "Say it another way, or run: kith doctor"


class BadArgument(ToolError):
    """A tool was given something it cannot use."""

    code = "bad_argument"
    hint = "Say it another way."

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class NothingFound(ToolError):
    """Nothing here fits."""

    code = "nothing_found"
    hint = "Check the spelling, or put the file into the data folder."


class AmbiguousName(ToolError):
    """More than one entry fits; choose one."""

    code = "ambiguous"
    hint = "Say which one."

    def __init__(self, text: str, choices: tuple[str, ...]) -> None:
        super().__init__(text)
        self.choices = choices


class EffectRefused(ToolError):
    """The change was not made, because the data is no longer as it was when it was planned."""

    code = "effect_refused"
    hint = "Look at the file, then ask again."


class CannotUndo(ToolError):
    """What was done can't be taken back."""

    code = "cannot_undo"
    hint = "Correct it in another message: kith send PEER TEXT"
