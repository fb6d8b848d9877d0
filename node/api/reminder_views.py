"""A reminder as the API tells it."""

import msgspec

__all__ = ["ReminderView"]


class ReminderView(msgspec.Struct, frozen=True, kw_only=True):
    """One reminder. state: waiting, told or cancelled; missed: told late; new: told and not looked at before; due in
    UTC."""

    schema: int = 1
    reminder_id: str
    text: str
    due: str
    state: str
    missed: bool
    new: bool
