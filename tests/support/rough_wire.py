"""A wire between two namespaces that delays, reorders and doubles packets: two TUN devices and this process between.

    python rough_wire.py NAMESPACE_ONE ADDRESS_ONE NAMESPACE_TWO ADDRESS_TWO DELAY_MS SPREAD_MS DOUBLED_PERCENT SEED

Every packet waits DELAY_MS plus up to SPREAD_MS, so that later ones overtake earlier ones; some arrive twice. Not every
kernel has netem. Says "ready" once both ends are up; ends with its standard input. Linux, root.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 1400


def enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"entering {namespace} failed")


def open_tun(namespace: str, name: str, address: str) -> int:
    """A point-to-point device in this namespace, up and addressed."""
    enter(namespace)
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for command in (
        ["ip", "addr", "add", f"{address}/30", "dev", name],
        ["ip", "link", "set", name, "mtu", str(MTU), "up"],
    ):
        subprocess.run(command, check=True)
    return tun


def main() -> None:
    one, address_one, two, address_two, delay_ms, spread_ms, doubled, seed = sys.argv[1:]
    ends = [open_tun(one, "rough", address_one), open_tun(two, "rough", address_two)]
    chance = random.Random(int(seed))
    waiting: list[tuple[float, int, int, bytes]] = []
    count = passed = 0
    print("ready", flush=True)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select([*ends, sys.stdin], [], [], pause)
        if sys.stdin in readable:
            print(passed, flush=True)
            return
        for end in (one for one in readable if one in ends):
            packet = os.read(end, 4096)
            copies = 2 if chance.random() * 100 < float(doubled) else 1
            for _ in range(copies):
                count += 1
                due = time.monotonic() + (float(delay_ms) + chance.random() * float(spread_ms)) / 1000
                heapq.heappush(waiting, (due, count, ends[1 - ends.index(end)], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, out, packet = heapq.heappop(waiting)
            passed += 1
            try:
                os.write(out, packet)
            except BlockingIOError:
                continue  # a full queue drops, as a real one does


if __name__ == "__main__":
    main()
