"""Agreeing on a protocol: bounded, byte-exact, and understood by libp2p's own implementation in both roles."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import roguepeer
import trio
from hypothesis import given
from hypothesis import strategies as st
from libp2p.protocol_muxer.multiselect import Multiselect
from libp2p.protocol_muxer.multiselect_client import MultiselectClient
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator

from node.net import negotiate
from node.net.errors import NegotiationFailed


class Pipe:
    """One end of a byte pipe, read in pieces of at most `piece` bytes."""

    def __init__(self, stream: Any, piece: int = 1 << 16) -> None:
        self._stream, self._piece = stream, piece

    async def read(self, n: int | None = None) -> bytes:
        data: bytes = await self._stream.receive_some(min(n or self._piece, self._piece))
        return data

    async def write(self, data: bytes) -> None:
        await self._stream.send_all(data)


def pipes() -> tuple[Pipe, Pipe]:
    left, right = trio.testing.memory_stream_pair()
    return Pipe(left), Pipe(right, piece=3)


async def both(ours: Callable[[Pipe], Any], theirs: Callable[[Pipe], Any]) -> tuple[Any, Any]:
    results: list[Any] = [None, None]
    ends = pipes()

    async def run(index: int, side: Callable[[Pipe], Any]) -> None:
        results[index] = await side(ends[index])

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, 0, ours)
            nursery.start_soon(run, 1, theirs)
    return results[0], results[1]


async def test_both_ours() -> None:
    _, agreed = await both(lambda pipe: negotiate.ask(pipe, "/a/1"), lambda pipe: negotiate.answer(pipe, "/a/1".__eq__))
    assert agreed == "/a/1"


async def test_libp2p_asks() -> None:
    agreed, _ = await both(
        lambda pipe: negotiate.answer(pipe, "/b/1".__eq__),
        lambda pipe: MultiselectClient().select_one_of(["/a/1", "/b/1"], MultiselectCommunicator(pipe)))
    assert agreed == "/b/1"


async def test_libp2p_answers() -> None:
    _, (protocol, _handler) = await both(
        lambda pipe: negotiate.ask(pipe, "/b/1"),
        lambda pipe: Multiselect({"/b/1": None}).negotiate(MultiselectCommunicator(pipe)))
    assert protocol == "/b/1"


async def test_a_refusal_is_named() -> None:
    async def answer(pipe: Pipe) -> None:
        with pytest.raises(NegotiationFailed):
            await negotiate.answer(pipe, lambda _name: False)

    async def ask(pipe: Pipe) -> None:
        with pytest.raises(NegotiationFailed, match="does not serve /b/1"):
            await negotiate.ask(pipe, "/b/1")
        await pipe._stream.aclose()

    await both(ask, answer)


class Given:
    """A peer that has said all it will say."""

    def __init__(self, data: bytes) -> None:
        self.data, self.largest_read = data, 0

    async def read(self, n: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        assert n is not None
        self.largest_read = max(self.largest_read, n)
        piece, self.data = self.data[:n], self.data[n:]
        return piece

    async def write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda tail: roguepeer.HELLO + tail)))
def test_any_bytes_are_an_agreement_or_a_named_error(data: bytes) -> None:
    async def main() -> None:
        for act in (lambda peer: negotiate.answer(peer, "/a/1".__eq__), lambda peer: negotiate.ask(peer, "/a/1")):
            peer = Given(data)
            with suppress(NegotiationFailed):
                await act(peer)
            assert peer.largest_read <= 1024

    trio.run(main)


@pytest.mark.parametrize("name", [b"/\xff\xfe/1", b"/a/1\x00", b"", b"na", b"ls"])
async def test_a_name_that_is_no_text_or_a_command_is_not_available(name: bytes) -> None:
    peer = Given(roguepeer.HELLO + roguepeer.token(name) + roguepeer.token(b"/a/1"))
    assert await negotiate.answer(peer, lambda asked: asked in ("/a/1", "na")) == "/a/1"


async def test_an_endless_asker_is_left_after_eight_tries() -> None:
    with pytest.raises(NegotiationFailed, match="nothing that is served"):
        await negotiate.answer(Given(roguepeer.HELLO + roguepeer.token(b"/x/1") * 100), "/a/1".__eq__)


def test_a_name_that_does_not_fit_is_our_bug() -> None:
    async def main() -> None:
        with pytest.raises(NegotiationFailed):
            await negotiate.ask(Given(b""), "/" + "a" * 2000)

    trio.run(main)
