"""One request at the two best places at once, because its owner asked for that: whoever writes first is read, the other
is stopped.

Costs both of them. Each place has its own clearance and its own ledger entry. Must not know how an answer is written,
or how places are ranked.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import trio

from node.agent.ports import LOCAL, ThinkJob, ThinkResult
from offload.router import Candidate

__all__ = ["best_places", "race"]


def best_places(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The two that would be done first of those that can; fewer when fewer can."""
    able = [one for one in candidates if one.able and one.score_s is not None]
    return sorted(able, key=lambda one: (one.score_s or 0.0, one.peer_id or ""))[:2]


async def race(
    job: ThinkJob, places: Sequence[Candidate], think: Callable[[ThinkJob], Awaitable[ThinkResult]]
) -> ThinkResult:
    """The answer of the place that writes first. Raises what the last one raised when none wrote anything."""
    scopes = [trio.CancelScope() for _ in places]
    winner: int | None = None
    results: dict[int, ThinkResult] = {}
    failures: list[Exception] = []

    async def run(number: int) -> None:
        async def on_text(text: str) -> bool:
            nonlocal winner
            if winner is None:
                winner = number
                for other, scope in enumerate(scopes):
                    if other != number:
                        scope.cancel()
            return winner == number and await job.on_text(text)

        place = places[number]
        part = replace(
            job, job_id=_part_id(job.job_id, number), place=place.peer_id or LOCAL, on_text=on_text, keep=False,
            hedge=False)
        with scopes[number]:
            try:
                results[number] = await think(part)
            except Exception as error:  # the other place may still answer; the last failure is raised below
                failures.append(error)

    async with trio.open_nursery() as nursery:
        for number in range(len(places)):
            nursery.start_soon(run, number)
    chosen = winner if winner in results else next(iter(results), None)
    if chosen is None:
        raise failures[-1]
    names = " and ".join(one.name for one in places)
    return replace(results[chosen], reason=f"asked {names} at once; {results[chosen].ran_on} wrote first")


def _part_id(job_id: str, number: int) -> str:
    """Each place's request has an id of its own."""
    if number == 0:
        return job_id
    return hashlib.blake2b(f"{job_id}/hedge/{number}".encode(), digest_size=16, person=b"kith-hedge").hexdigest()
