"""Every refusal of the guard, drawn as a tree below the node's own.

    PolicyRefused
    +-- EgressDenied              nothing was sent
        +-- NeverForPeer          this trust may not get this at all, or trust or purpose is unknown
        +-- HoldsSecret           a key, password, PIN, one-time code, card or seed phrase is in the text
        +-- HoldsPersonal         the text must hold no personal value and holds one
        +-- ShareNotConsented     a passage that no share of the owner covers for this peer
        +-- ConsentRefused        the owner said no
        +-- DeniedAlways          the owner said no to this peer and purpose for good
        +-- ConsentUnanswered     the owner did not answer before the deadline
        +-- GuardFailed           a net is missing, raised, hung or returned nonsense
        +-- LedgerFailed          the entry could not be written durably
        +-- NotCleared            a frame without a clearance that covers it
    StorageError
    +-- LedgerBroken              the chain, its head or an entry was changed
    BugError
    +-- LabelLeak                 a labelled value was about to become plain text by formatting

Each leaf has `code` (stable), a docstring that is the text for the user, and `hint` (the next command). `detail` says
what exactly, in words that never hold the value itself. Must not know who raises or catches it.
"""

from node.errors import BugError, PolicyRefused, StorageError

__all__ = [
    "ConsentRefused", "ConsentUnanswered", "DeniedAlways", "EgressDenied", "GuardFailed", "HoldsPersonal",
    "HoldsSecret", "LabelLeak", "LedgerBroken", "LedgerFailed", "NeverForPeer", "NotCleared", "ShareNotConsented",
]


class EgressDenied(PolicyRefused):
    """The guard stopped this, so nothing was sent."""

    code = "egress_denied"
    can_wait = False
    """Whether the request is worth keeping and asking for again: nobody decided against it."""

    def __init__(self, detail: str = "") -> None:
        """detail: what exactly was found, never the found value."""
        self.detail = detail
        super().__init__()
        if detail:
            self.text = f"{self.text} ({detail})"
            self.args = (self.text,)


class NeverForPeer(EgressDenied):
    """This peer may not get this, so nothing was sent."""

    code = "never_for_peer"
    hint = "See what each peer may get: kith privacy. To stay here: kith ask --local"

    def __init__(self, detail: str = "", *, hint: str = "") -> None:
        """hint: the next command, where the owner's own setting stops it."""
        super().__init__(detail)
        if hint:
            self.hint = hint


class HoldsSecret(EgressDenied):
    """The text holds a password, key, PIN or code. Secrets never leave this device, so nothing was sent."""

    code = "holds_secret"
    hint = "Take the secret out; a question with it can be asked here only: kith ask --local"


class HoldsPersonal(EgressDenied):
    """The text holds personal data and would go out readable, so it stayed here."""

    code = "holds_personal"
    hint = "Ask without names, numbers and addresses, or stay here: kith ask --local"


class ShareNotConsented(EgressDenied):
    """This passage is in no folder that you share with this peer, so nothing was sent."""

    code = "share_not_consented"
    hint = "See what is shared: kith share list"


class ConsentRefused(EgressDenied):
    """You said no, so nothing was sent."""

    code = "consent_refused"
    hint = "Ask here instead: kith ask --local"


class DeniedAlways(EgressDenied):
    """You said that this may never leave for this peer, so nothing was sent."""

    code = "denied_always"
    hint = "See your refusals, and take one back: kith privacy denials"


class ConsentUnanswered(EgressDenied):
    """Nobody answered the question whether this may leave, so nothing was sent."""

    code = "consent_unanswered"
    can_wait = True
    hint = "Ask again and answer the question, or stay here: kith ask --local"


class GuardFailed(EgressDenied):
    """The check for personal data could not run, so nothing was sent."""

    code = "guard_failed"
    hint = "Run: kith doctor"


class LedgerFailed(EgressDenied):
    """What was about to leave could not be written to the ledger, so nothing was sent."""

    code = "ledger_failed"
    hint = "Check free disk space, then run: kith ledger verify"


class NotCleared(EgressDenied):
    """Kith tried to send something that had not passed its own guard; it was stopped. That is a bug in Kith."""

    code = "not_cleared"
    hint = "Please report it with the output of: kith doctor --json"


class LedgerBroken(StorageError):
    """The ledger was changed after it was written."""

    code = "ledger_broken"
    hint = "Keep the data folder as it is and run: kith ledger verify"


class LabelLeak(BugError):
    """A labelled value was about to be turned into plain text. That is a bug in Kith."""

    code = "label_leak"
