"""1,000 malformed inputs of every kind: the node lives, stays small, and an honest stream still echoes."""

import gc
import os

import malformed
import roguepeer
import trio
from netpair import ECHO, echoes, linked_pair, say, until
from netprocess import child


async def test_1000_malformed_inputs_harm_nobody() -> None:
    async with linked_pair() as (a, b):
        a.gate.allow(roguepeer.peer_id_of("rogue"))
        honest = await b.network.open(a.peer_id, ECHO, timeout_s=5)
        for round_number in range(4):
            thrown = await malformed.throw_at(a.addresses[0], count=250, name="rogue", seed=round_number)
            assert sum(thrown.values()) == 250
            assert set(thrown) == set(malformed.KINDS)
            assert await say(honest, b"%d" % round_number) == b"%d" % round_number
            assert await echoes(b, a.peer_id)
            session = a.network._session
            assert session is not None
            await until(lambda: a.network.connected() == {b.peer_id})
            await until(lambda: len(session.admission) == 0)  # noqa: B023
            if round_number == 0:
                await trio.sleep(0.3)  # libp2p's own closing takes 0.2 s per connection
                first = held()
            await until(lambda: held()[0] <= first[0] + 2 and held()[1] <= first[1] + 10)  # noqa: B023
        assert a.network.caught > 100


def held() -> tuple[int, int]:
    """Open files and living tasks of this process."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")), trio.lowlevel.current_statistics().tasks_living


async def test_a_strangers_malformed_inputs_reach_no_stream() -> None:
    async with linked_pair() as (a, b):
        await malformed.throw_at(a.addresses[0], count=60, name="stranger")
        assert a.network.caught == 0
        assert a.network.connected() == {b.peer_id}
        assert await echoes(b, a.peer_id)


async def test_malformed_inputs_do_not_grow_a_node() -> None:
    async with child("links", "a", roguepeer.peer_id_of("rogue")) as a:
        await malformed.throw_at(a.addresses[0], count=200, name="rogue")
        before = a.rss_mib
        await malformed.throw_at(a.addresses[0], count=400, name="rogue", seed=2)
        assert a.alive
        assert a.rss_mib - before < 8
