"""Why a request to the agent fails, drawn as a tree. What a tool refuses is in node.agent.tools.errors.

    UsageError
    +-- NoSuchConversation    the conversation to continue is not there
    +-- EmptyRequest          nothing was asked
    +-- RequestTooLong        more text than a request may hold

Must not know who shows it.
"""

from node.errors import UsageError

__all__ = ["EmptyRequest", "NoSuchConversation", "RequestTooLong"]


class NoSuchConversation(UsageError):
    """There is no such conversation to continue."""

    code = "no_such_conversation"
    hint = "See them: kith history"


class EmptyRequest(UsageError):
    """Nothing was asked."""

    code = "empty_request"
    hint = 'Ask something: kith ask "what is on my calendar tomorrow"'


class RequestTooLong(UsageError):
    """The request is too long; long text belongs into a file that is given along."""

    code = "request_too_long"
    hint = "Give the text as a file: kith ask 'summarise this' FILE"
