"""Overhears multicast DNS on one address: python mdns_ear.py ADDRESS. Says "ready", then each packet in hex, until its
standard input has something."""

import select
import socket
import sys

GROUP, PORT = "224.0.0.251", 5353

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    ear.bind((GROUP, PORT))
    ear.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(sys.argv[1])
    )
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([ear, sys.stdin], [], [])
        if sys.stdin in readable:
            break
        print(ear.recv(9000).hex(), flush=True)
