"""A home router that maps ports, for tests: NAT-PMP and UPnP, in a namespace or on loopback.

As a program it really passes calls on, with nft in its namespace:

    python fake_router.py LISTEN_ADDRESS PUBLIC_ADDRESS WAN_PORT_NAME

Says "ready" and serves NAT-PMP until it is killed. As a module it is a set of answers that a test puts behind sockets.
"""

import socket
import struct
import subprocess
import sys

SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
DEVICE = "urn:schemas-upnp-org:device:InternetGatewayDevice:1"


def search_answer(host: str, port: int) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nST: {DEVICE}\r\nUSN: uuid:1::{DEVICE}\r\n"
        f"LOCATION: http://{host}:{port}/root.xml\r\nSERVER: test\r\n\r\n"
    ).encode()


DESCRIPTION = f"""<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0"><device>
<deviceType>{DEVICE}</deviceType><serviceList><service>
<serviceType>urn:schemas-upnp-org:service:Layer3Forwarding:1</serviceType><controlURL>/other</controlURL></service>
<service><serviceType>{SERVICE}</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<controlURL>/ctl/IPConn</controlURL><eventSubURL>/evt</eventSubURL></service></serviceList></device></root>"""


def soap(inner: str) -> str:
    return (
        '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
        f"{inner}</s:Body></s:Envelope>"
    )


def natpmp_answer(packet: bytes, public: str, uptime_s: int = 77) -> bytes:
    """The answer to one request, as RFC 6886 lays it out."""
    if packet == b"\x00\x00":
        return struct.pack("!BBHI", 0, 128, 0, uptime_s) + socket.inet_aton(public)
    _, operation, _, inside, wanted, lifetime_s = struct.unpack("!BBHHHI", packet)
    return struct.pack("!BBHIHHI", 0, 128 + operation, 0, uptime_s, inside, wanted or inside, lifetime_s)


def main() -> None:
    listen, public, wan = sys.argv[1:]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind((listen, 5351))
        print("ready", flush=True)
        while True:
            packet, asker = door.recvfrom(64)
            if len(packet) == 12:
                inside, _, lifetime_s = struct.unpack("!HHI", packet[4:12])
                pass_on(wan, asker[0], inside, on=lifetime_s > 0)
            door.sendto(natpmp_answer(packet, public), asker)


def pass_on(wan: str, host: str, port: int, *, on: bool) -> None:
    rules = "table ip mapped\ndelete table ip mapped\n"
    if on:
        rules += f"""
        table ip mapped {{
            chain inbound {{
                type nat hook prerouting priority -100
                iifname "{wan}" tcp dport {port} dnat to {host}:{port}
            }}
        }}
        insert rule ip filter through iifname "{wan}" ip daddr {host} tcp dport {port} accept
        """
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)


if __name__ == "__main__":
    main()
