"""What the API tells of the agent itself: its skills."""

import msgspec

__all__ = ["SkillView"]


class SkillView(msgspec.Struct, frozen=True, kw_only=True):
    """One skill: what it does and a sentence or two that ask for it."""

    schema: int = 1
    name: str
    description: str
    examples: list[str]
