"""Every error of the queue, drawn as a tree below the node's own.

    KithError
    +-- UsageError
    |   +-- NoSuchIntent          nothing is queued under this name
    |   +-- IntentSettled         it is over and cannot be taken back
    |   +-- NothingToDecide       it waits with no question, or with another one than was answered
    +-- QueueFull                 too many requests wait already

Must not know who raises or catches them.
"""

from node.errors import KithError, UsageError

__all__ = ["IntentSettled", "NoSuchIntent", "NothingToDecide", "QueueFull"]


class NoSuchIntent(UsageError):
    """No queued request has this id."""

    code = "no_such_intent"
    hint = "See what is queued: kith queue"


class IntentSettled(UsageError):
    """This request is over, so there is nothing to take back."""

    code = "intent_settled"
    hint = "See how it ended: kith queue show ID"


class NothingToDecide(UsageError):
    """This request waits for no answer of yours, or its question has changed."""

    code = "nothing_to_decide"
    hint = "See what it waits for: kith queue show ID"


class QueueFull(KithError):
    """Too many requests wait for a better answer already."""

    code = "queue_full"
    hint = "Take some back: kith queue cancel ID"
