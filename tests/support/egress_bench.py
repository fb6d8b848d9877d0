"""What the tests of the exit share: a guard that knows one person, an ask that names her, and callables that fail."""

import trio
from guard_bench import GuardBench, guard_bench

from node.privacy.egress import Part
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text

__all__ = ["ASK", "EVENT", "VALUES", "Shares", "bench", "fail", "hang", "truthy"]


VALUES = [("Zdravka Korenjak", "PERSON"), ("zdravka@beispiel.example", "EMAIL"), ("+386 41 907 663", "PHONE")]

ASK = Part("user", owner_text("Write to Zdravka Korenjak (zdravka@beispiel.example) that I am late."))

EVENT = Labeled(
    "15:00 Checkup at Vrbnik clinic", Confidentiality.PERSONAL, Integrity.LOCAL, "calendar",
    (Value("Checkup", "EVENT"), Value("Vrbnik clinic", "PLACE")),
)


async def bench(**more) -> GuardBench:
    return await guard_bench(VALUES, **more)


class Shares:
    """The owner shares these sources with everybody asked about; may misbehave."""

    def __init__(self, sources, act=None) -> None:
        self.sources = sources
        self.act = act

    async def covers(self, source: str, peer_id: str) -> bool:
        if self.act is not None:
            return await self.act()
        return source in self.sources


async def hang():
    await trio.sleep_forever()


async def truthy():
    return "yes"


async def fail():
    raise OSError("disk")
