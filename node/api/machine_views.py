"""What the API tells about machines: waking one."""

import msgspec

__all__ = ["WakeView"]


class WakeView(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that was to be woken. awake: it is here now; packets: how many were sent for it, none when it was here."""

    schema: int = 1
    peer: str
    peer_id: str
    hardware: str
    packets: int
    awake: bool
    waited_s: float
