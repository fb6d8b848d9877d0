"""Asks a running engine's worker how many decodes it has done and what is at work: counts instead of times."""

import trio

from offload.local_engine import LocalEngine
from offload.worker_frames import Ping, Pong, decode_report, encode

__all__ = ["Pongs"]


class Pongs:
    """Of the one worker of an engine."""

    def __init__(self, engine: LocalEngine) -> None:
        ((self._host, _),) = engine._hosts.values()
        self._seen: list[Pong] = []
        received = self._host.received

        def note(payload: bytes) -> None:
            report = decode_report(payload)
            if isinstance(report, Pong):
                self._seen.append(report)
            received(payload)

        self._host.received = note  # type: ignore[method-assign]

    async def ask(self) -> Pong:
        """As it is now."""
        child, before = self._host.supervisor.child, len(self._seen)
        assert child is not None
        await child.send(encode(Ping()))
        with trio.fail_after(30):
            while len(self._seen) == before:
                await trio.sleep(0.002)
        return self._seen[-1]
