"""A node in a process of its own, for tests that measure its memory, freeze it or kill it.

    python net_child.py kith|hurried|stock|links NAME LISTEN ALLOWED_ID[@ADDRESS] ...

hurried: kith with no limit on how often it is called.
Prints one JSON line when it serves, and serves until it is killed or its standard input ends.
"""

import json
import sys
from typing import Any

import trio


async def kith(name: str, listen: str, allowed: list[str], limits: Any = None) -> None:
    from netpair import make, serving

    node = make(name, limits)
    for peer_id in allowed:
        node.gate.allow(peer_id)
    async with serving(node, listen=[listen]):
        await announce(node.peer_id, node.addresses)


async def hurried(name: str, listen: str, allowed: list[str]) -> None:
    from netpair import ANY_PACE

    from node.net.limits import NetLimits

    await kith(name, listen, allowed, NetLimits(pace=ANY_PACE))


async def links(name: str, listen: str, allowed: list[str]) -> None:
    from linknode import LinkNode

    node = LinkNode(name)
    async with trio.open_nursery() as nursery:
        await nursery.start(node.run, [listen])
        for peer in allowed:
            peer_id, _, address = peer.partition("@")
            node.gate.allow(peer_id)
            node.links.know(peer_id, [address] if address else [])
        await announce(node.peer_id, node.addresses)
        nursery.cancel_scope.cancel()


async def stock(name: str, listen: str, allowed: list[str]) -> None:
    from stockpeer import running, stock_host

    host = stock_host(name)
    async with running(host, listen) as address:
        await announce(str(host.get_id()), [address])


async def announce(peer_id: str, addresses: list[str]) -> None:
    print(json.dumps({"peer_id": peer_id, "addresses": addresses}), flush=True)
    await trio.to_thread.run_sync(sys.stdin.buffer.read)


if __name__ == "__main__":
    kind, own_name, where, *known = sys.argv[1:]
    trio.run({"kith": kith, "hurried": hurried, "links": links, "stock": stock}[kind], own_name, where, known)
