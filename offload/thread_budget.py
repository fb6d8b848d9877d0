"""How the processor's cores are split between the workers that have something to do. Pure.

Must not know processes, models or requests.
"""

from collections.abc import Mapping
from typing import Literal

__all__ = ["Demand", "split_threads"]

Demand = Literal["owner", "guests", "idle"]     # for whom a worker is at work


def split_threads(total: int, demands: Mapping[str, Demand]) -> dict[str, int]:
    """Threads for each worker, at least one. Guests' workers get one each while the owner waits for another one.

    An idle worker may have all of them: it uses none.
    """
    owners = [name for name, demand in demands.items() if demand == "owner"]
    guests = [name for name, demand in demands.items() if demand == "guests"]
    shares = dict.fromkeys(demands, max(1, total))
    if owners:
        shares |= dict.fromkeys(guests, 1)
        shares |= _evenly(owners, total - len(guests))
    else:
        shares |= _evenly(guests, total)
    return shares


def _evenly(names: list[str], total: int) -> dict[str, int]:
    whole, rest = divmod(max(total, len(names)), len(names)) if names else (0, 0)
    return {name: whole + (place < rest) for place, name in enumerate(names)}
