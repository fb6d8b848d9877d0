"""Every error of the node that a person can meet, drawn as a tree, with its exit code.

    KithError                       1   something failed
    +-- UsageError                  2   the command or a setting is wrong
    |   +-- ConfigError                 a configuration value or key
    |   +-- PathTooLong                 the socket's path exceeds what the kernel takes
    |   +-- AmbiguousPeer               several paired peers fit
    |   +-- NameTaken                   another paired peer has this name
    +-- NodeNotRunning              3   no daemon answers on the socket
    +-- NodeAlreadyRunning          1   another daemon holds this data folder
    +-- PolicyRefused               4   the owner's rules forbid it
    +-- PeerUnreachable             5   the peer does not answer
    +-- NotPaired                   6   the peer is not paired, or not trusted for this
    |   +-- UnknownPeer                 no paired peer has this name or id
    |   +-- PairingError                a pairing did not complete
    |       +-- PairingClosed               no window is open, or it ran out
    |       +-- PairingRefused              the other side refused, or the secret was wrong
    |       +-- PairingInterrupted          the connection broke before both sides confirmed
    +-- ModelMissing                7   no model is there to answer
    +-- StorageError                1   the data folder or a database
    |   +-- WrongKey                    the key does not open the database
    |   +-- NewerSchema                 the database was written by a newer kith
    |   +-- MigrationFailed             a schema step failed; nothing was changed
    |   +-- StoreClosed                 the database is closed
    |   +-- StoreConflict               a row breaks a rule of its table (a bug, or a replay)
    |   +-- LooseFileMode               others can read a private file
    +-- IdentityError               1   the device key
    |   +-- Locked                      the node runs, its data is closed until a passphrase is given
    |   +-- PassphraseNeeded            the key file is locked
    |   +-- WrongPassphrase             the passphrase does not open it
    |   +-- DamagedKeyFile              the key file cannot be understood
    |   +-- KeyMissing                  there is a database but no key file
    +-- BugError                   70   kith is at fault, or is installed wrongly
        +-- ForeignPackage              another package shadows one of ours

Sub-packages of node (net, privacy, agent ...) hang their own trees below these. Each leaf: `code` is stable and used in
JSON; the docstring is the default text for the user; `hint` is the next command. Must not know who raises or catches.
"""

from typing import Any

__all__ = [
    "EXIT_BUG", "EXIT_FAILED", "EXIT_MODEL_MISSING", "EXIT_NOT_PAIRED", "EXIT_NOT_RUNNING", "EXIT_OK", "EXIT_REFUSED",
    "EXIT_UNREACHABLE", "EXIT_USAGE",
    "AmbiguousPeer", "BugError", "ConfigError", "DamagedKeyFile", "ForeignPackage", "IdentityError", "KeyMissing",
    "KithError", "Locked", "LooseFileMode", "MigrationFailed", "ModelMissing", "NameTaken", "NewerSchema",
    "NodeAlreadyRunning",
    "NodeNotRunning", "NotPaired", "PairingClosed", "PairingError", "PairingInterrupted", "PairingRefused",
    "PassphraseNeeded", "PathTooLong", "PeerUnreachable", "PolicyRefused",
    "StorageError", "StoreClosed", "StoreConflict", "UnknownPeer", "UsageError",
    "WrongKey", "WrongPassphrase",
]

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_RUNNING = 3
EXIT_REFUSED = 4
EXIT_UNREACHABLE = 5
EXIT_NOT_PAIRED = 6
EXIT_MODEL_MISSING = 7
EXIT_BUG = 70


class KithError(Exception):
    """Something failed."""

    code: str = "failed"
    exit_code: int = EXIT_FAILED
    hint: str = "Run: kith doctor"

    def __init__(self, text: str | None = None, *, hint: str | None = None) -> None:
        """text replaces the class's own sentence; hint replaces the class's next step."""
        self.text = text or " ".join((type(self).__doc__ or "").split())
        if hint is not None:
            self.hint = hint
        super().__init__(self.text)

    def as_json(self) -> dict[str, Any]:
        """The error as the API and --json print it."""
        return {"code": self.code, "text": self.text, "hint": self.hint, "exit": self.exit_code}


class UsageError(KithError):
    """The command cannot be understood."""

    code = "usage"
    exit_code = EXIT_USAGE
    hint = "Run: kith --help"


class ConfigError(UsageError):
    """A setting is wrong."""

    code = "config"
    hint = "See every setting and where it comes from: kith config explain"


class PathTooLong(UsageError):
    """The path of the node's socket is longer than the kernel allows."""

    code = "path_too_long"
    hint = "Choose a shorter folder: KITH_HOME=/short/path kith up"


class AmbiguousPeer(UsageError):
    """More than one paired peer fits."""

    code = "ambiguous_peer"
    hint = "Give more letters of the name or id: kith peers"


class NameTaken(UsageError):
    """Another paired peer already has this name."""

    code = "name_taken"
    hint = "Choose another name."


class NodeNotRunning(KithError):
    """kith is not running."""

    code = "not_running"
    exit_code = EXIT_NOT_RUNNING
    hint = "Start it with: kith up"


class NodeAlreadyRunning(KithError):
    """Another kith is already running on this data folder."""

    code = "already_running"
    hint = "See it with: kith status"


class PolicyRefused(KithError):
    """Your rules do not allow this."""

    code = "refused"
    exit_code = EXIT_REFUSED
    hint = "See what was asked and why it was refused: kith ledger"


class PeerUnreachable(KithError):
    """The peer does not answer."""

    code = "unreachable"
    exit_code = EXIT_UNREACHABLE
    hint = "See which peers answer: kith status"


class NotPaired(KithError):
    """This peer is not paired with you, or not trusted for this."""

    code = "not_paired"
    exit_code = EXIT_NOT_PAIRED
    hint = "Pair with it: kith pair"


class UnknownPeer(NotPaired):
    """No paired peer has this name or id."""

    code = "unknown_peer"
    hint = "See who is paired: kith peers"


class PairingError(NotPaired):
    """The pairing did not complete; nothing was stored."""

    code = "pairing"
    hint = "Start again on both devices with a new code: kith pair"


class PairingClosed(PairingError):
    """No pairing window is open here, or it has run out."""

    code = "pairing_closed"
    hint = "Open one on the other device: kith pair"


class PairingRefused(PairingError):
    """The pairing was refused; nothing was stored."""

    code = "pairing_refused"


class PairingInterrupted(PairingError):
    """The connection broke before both devices had confirmed; nothing was stored."""

    code = "pairing_interrupted"


class ModelMissing(KithError):
    """There is no model on this device."""

    code = "model_missing"
    exit_code = EXIT_MODEL_MISSING
    hint = "Add one: kith models add FILE"


class StorageError(KithError):
    """Something is wrong with the data folder."""

    code = "storage"


class WrongKey(StorageError):
    """The database does not open with this device's key, or the file is damaged."""

    code = "wrong_key"
    hint = "Put back the identity file that belongs to this data folder, or move the database away and run: kith up"


class NewerSchema(StorageError):
    """The database was written by a newer version of kith; this version leaves it alone."""

    code = "newer_schema"
    hint = "Upgrade kith on this device, or use another data folder: KITH_HOME=... kith up"


class MigrationFailed(StorageError):
    """The database could not be brought up to date; it is unchanged."""

    code = "migration_failed"
    hint = "Please report it with the output of: kith doctor --json"


class StoreClosed(StorageError):
    """The database is closed because the node is stopping."""

    code = "store_closed"
    hint = "Start again with: kith up"


class StoreConflict(StorageError):
    """A record contradicts what is already stored; nothing was changed."""

    code = "store_conflict"


class LooseFileMode(StorageError):
    """Other users of this machine can read a private file."""

    code = "loose_mode"


class IdentityError(KithError):
    """Something is wrong with this device's key."""

    code = "identity"


class Locked(IdentityError):
    """This node is locked: its databases are closed and its keys are out of use."""

    code = "locked"
    hint = "Unlock it: kith unlock"


class PassphraseNeeded(IdentityError):
    """This device's key is locked by a passphrase."""

    code = "passphrase_needed"
    hint = "Run in a terminal so that you can be asked, or set KITH_PASSPHRASE_FILE"


class WrongPassphrase(IdentityError):
    """The passphrase does not open this device's key."""

    code = "wrong_passphrase"
    hint = "Try again. A forgotten passphrase cannot be recovered."


class DamagedKeyFile(IdentityError):
    """This device's key file cannot be understood."""

    code = "damaged_key_file"
    hint = "Restore it from a backup, or move it away to start as a new device: kith up"


class KeyMissing(IdentityError):
    """This data folder has a database but no key."""

    code = "key_missing"
    hint = "Put identity.json back from a backup, or move kith.db away to start as a new device: kith up"


class BugError(KithError):
    """kith made a mistake."""

    code = "bug"
    exit_code = EXIT_BUG
    hint = "Please report it with the output of: kith doctor --json"


class ForeignPackage(BugError):
    """Another package shadows one of kith's own."""

    code = "foreign_package"
    hint = "Install kith in an environment of its own: pipx install kith-node"
