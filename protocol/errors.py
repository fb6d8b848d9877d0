"""Every error of the wire, drawn as a tree.

    ProtocolError
    +-- LocalProtocolError        we misused a machine: a bug of ours
    +-- RemoteProtocolError       the peer sent bytes or frames that break the rules
    |   +-- FrameTooLarge         a length prefix above the limit; refused before a byte of the body is read
    |   +-- BadEncoding           not canonical msgpack, too deep, duplicate keys, ext types, trailing bytes
    |   +-- BadFrame              well encoded, but no frame of this protocol
    |   +-- OutOfOrder            a frame that this state does not allow, a gap in sequence numbers, a wrong digest
    +-- GrantError                a grant that is not honoured
    |   +-- BadGrant              not a grant, or a wrong signature
    |   +-- GrantForSomeoneElse   issued by or to another node
    |   +-- GrantExpired          its time is over
    |   +-- GrantWithdrawn        a newer decision of the issuer took it back
    +-- ChannelError              the stream under the frames
        +-- ChannelClosed         the peer ended its side; not an END frame
        +-- ChannelLost           reset, crash or a dead link
        +-- DeadlinePassed        nothing came in time

Each leaf has `code` (stable, used in JSON and on the wire) and `hint` (what the user can do next).
Must not know who raises or catches it.
"""

__all__ = [
    "BadEncoding", "BadFrame", "BadGrant", "ChannelClosed", "ChannelError", "ChannelLost", "DeadlinePassed",
    "FrameTooLarge", "GrantError", "GrantExpired", "GrantForSomeoneElse", "GrantWithdrawn", "LocalProtocolError",
    "OutOfOrder", "ProtocolError", "RemoteProtocolError",
]


class ProtocolError(Exception):
    """Something went wrong on the wire."""

    code = "protocol"
    hint = "Run: kith doctor"


class LocalProtocolError(ProtocolError):
    """This node used its own protocol wrongly. That is a bug in Kith."""

    code = "local_protocol"
    hint = "Please report it with the output of: kith doctor --json"


class RemoteProtocolError(ProtocolError):
    """The peer sent something that breaks the protocol; the stream was dropped."""

    code = "remote_protocol"
    hint = "The peer may run another version: compare kith --version on both."


class FrameTooLarge(RemoteProtocolError):
    """The peer announced a frame above the size limit; nothing of it was read."""

    code = "frame_too_large"


class BadEncoding(RemoteProtocolError):
    """The peer's bytes are no canonical msgpack within the limits."""

    code = "bad_encoding"


class BadFrame(RemoteProtocolError):
    """The peer's message is no frame of this protocol."""

    code = "bad_frame"


class OutOfOrder(RemoteProtocolError):
    """The peer sent a frame that this point of the conversation does not allow."""

    code = "out_of_order"


class GrantError(ProtocolError):
    """The grant is not honoured."""

    code = "grant"
    hint = "Ask the peer's owner for a new grant."


class BadGrant(GrantError):
    """These bytes are no genuine grant."""

    code = "bad_grant"


class GrantForSomeoneElse(GrantError):
    """The grant was issued by or to another node."""

    code = "grant_for_someone_else"


class GrantExpired(GrantError):
    """The grant's time is over."""

    code = "grant_expired"


class GrantWithdrawn(GrantError):
    """The grant was taken back by its issuer."""

    code = "grant_withdrawn"


class ChannelError(ProtocolError):
    """The connection under the frames failed."""

    code = "channel"
    hint = "Check the peer with: kith status"


class ChannelClosed(ChannelError):
    """The peer ended its side of the stream."""

    code = "channel_closed"


class ChannelLost(ChannelError):
    """The connection to the peer broke."""

    code = "channel_lost"


class DeadlinePassed(ChannelError):
    """The peer did not answer in time."""

    code = "deadline"
