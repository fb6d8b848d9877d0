"""Every error of the owner's data on disk, drawn as a tree.

    SourceError
    +-- NotThere           no such file, note, event or person
    +-- PathRefused        a name that leaves its folder, or a symlink, or no plain file
    +-- FolderUnreadable   a whole folder that the system does not let be listed; never taken for an empty one
    +-- TooBig             above the size limit; nothing was read or written
    +-- NotText            no UTF-8 text
    +-- BrokenSource       a file that cannot be understood; it is never overwritten
    +-- BadValue           a value that cannot be written into this kind of file
    +-- SourceChanged      the file is not as it was when the change was planned
    +-- WriteFailed        the disk or its permissions did not allow it; nothing was written

Texts may hold names of the owner's files: for the owner's screen, never for a log. Must not know tools or labels.
"""

__all__ = [
    "BadValue", "BrokenSource", "FolderUnreadable", "NotText", "NotThere", "PathRefused", "SourceChanged",
    "SourceError", "TooBig", "WriteFailed",
]


class SourceError(Exception):
    """The owner's data could not be read or written."""

    code = "source"
    hint = "Run: kith doctor"


class NotThere(SourceError):
    """It is not there."""

    code = "not_there"
    hint = "Check the name; the data folders are shown by: kith config explain"


class PathRefused(SourceError):
    """The name leads out of its folder or to something that is no plain file."""

    code = "path_refused"
    hint = "Put a copy of the file into the folder; links are not followed."


class FolderUnreadable(SourceError, OSError):
    """The folder cannot be read. Also an OSError, for those who wait until the disk is well again."""

    code = "folder_unreadable"
    hint = "Give yourself access to it, or name another folder: kith config explain"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.strerror = text


class TooBig(SourceError):
    """The file is above the size limit."""

    code = "too_big"
    hint = "Split the file."


class NotText(SourceError):
    """The file holds no plain text."""

    code = "not_text"
    hint = "Save it as UTF-8 text (.txt or .md)."


class BrokenSource(SourceError):
    """The file cannot be understood and was left as it is."""

    code = "broken_source"
    hint = "Repair the file, or move it out of the folder."


class BadValue(SourceError):
    """The value cannot be written into this kind of file."""

    code = "bad_value"
    hint = "Say it another way."


class SourceChanged(SourceError):
    """The file changed since the change was planned; nothing was written."""

    code = "source_changed"
    hint = "Look at the file, then ask again."


class WriteFailed(SourceError):
    """The file could not be written; it is as it was."""

    code = "write_failed"
    hint = "Check free space and the folder's permissions."
