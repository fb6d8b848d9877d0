"""What can go wrong with a message, below node.errors.KithError.

    MailError
    +-- MessageTooLong      the text is above the limit of one message
    +-- NothingToSend       the text is empty

A peer that is away is no error: the message waits. Must not know who raises or catches.
"""

from node.errors import UsageError

__all__ = ["MailError", "MessageTooLong", "NothingToSend"]


class MailError(UsageError):
    """The message cannot be sent as it is."""

    code = "mail"


class MessageTooLong(MailError):
    """The message is longer than one message may be."""

    code = "message_too_long"
    hint = "Send it in parts."


class NothingToSend(MailError):
    """The message is empty."""

    code = "nothing_to_send"
    hint = 'Say what to send: kith send PEER "..."'
