"""Many askers of the real worker, by counts: a long prompt beside chats, a cancel while it is read, a full house."""

from typing import Any

import pytest
import trio
from embedded_model import models_folder
from engine_asks import asked, collect, running_engine, text_of
from worker_pongs import Pongs

from offload.model_host import HostLimits
from offload.ports import Failed, Finished, GenerateRequest, Piece, Queued, Started, TextPrompt

pytestmark = pytest.mark.model

LIMITS = HostLimits(context_tokens=4096, slots=4, queue_limit=16)


def long_prompt(words: int = 900, **more: Any) -> GenerateRequest:
    return asked("", **({"prompt": TextPrompt("one two three four five six " * (words // 6)), "max_tokens": 2} | more))


class Chat:
    """An answer that streams until it is left."""

    def __init__(self) -> None:
        self.pieces = 0
        self.begun = trio.Event()

    async def run(self, engine: Any, question: str, who: str = "owner") -> None:
        """Count its pieces."""
        endless = 'root ::= ("a" [0-9]){300}'      # drawn, so that it never goes in circles
        async with engine.stream(asked(
                question, max_tokens=400, principal=who, grammar=endless, temperature=1.0)) as answer:
            async for event in answer:
                assert not isinstance(event, Failed)
                self.pieces += isinstance(event, Piece)
                if self.pieces > 3:
                    self.begun.set()


async def test_while_a_long_prompt_is_read_every_decode_moves_every_chat() -> None:
    """S11 by counts: as many pieces as decodes, but for those that hold back half a character or an end."""
    async with running_engine([models_folder()], limits=LIMITS) as engine, trio.open_nursery() as nursery:
        chats = [Chat() for _ in range(3)]
        for number, chat in enumerate(chats):
            nursery.start_soon(chat.run, engine, f"Tell me a very long story about {number + 3} foxes.")
        for chat in chats:
            await chat.begun.wait()
        pongs = Pongs(engine)
        async with engine.stream(long_prompt()) as answer:
            async for event in answer:
                if isinstance(event, Started):
                    before, pieces = (await pongs.ask()).decodes, [chat.pieces for chat in chats]
                if isinstance(event, Piece):
                    break
            decodes = (await pongs.ask()).decodes - before
        moved = [chat.pieces - was for chat, was in zip(chats, pieces, strict=True)]
        assert decodes >= 2
        assert all(count >= decodes - 3 for count in moved)
        nursery.cancel_scope.cancel()


async def test_a_prompt_that_nobody_wants_any_more_is_read_no_further() -> None:
    """S6: the chunk that is under way may end. The chat beside it goes on, so the chunks are small."""
    async with running_engine([models_folder()], limits=LIMITS, threads=1) as engine, trio.open_nursery() as nursery:
        chat = Chat()
        nursery.start_soon(chat.run, engine, "Tell me a very long story about a fox.")
        await chat.begun.wait()
        pongs = Pongs(engine)
        async with engine.stream(long_prompt(1200, principal="peer-1")) as answer:
            async for event in answer:
                if isinstance(event, Started):
                    break
            assert (await pongs.ask()).running == 2
        at_cancel = await pongs.ask()       # read by the worker behind the cancel
        after = await pongs.ask()
        while after.running > 1:
            after = await pongs.ask()
        assert after.decodes - at_cancel.decodes <= 2
        nursery.cancel_scope.cancel()


async def test_more_askers_than_slots_each_get_their_own_answer_and_the_line_empties() -> None:
    """S12: each once, the place in the line only falls until it begins, and the engine takes more afterwards."""
    async with running_engine([models_folder()], limits=LIMITS) as engine:
        ends: dict[int, str] = {}

        async def ask(number: int) -> None:
            letter = chr(97 + number)
            events = await collect(engine, asked(
                f"Say {letter}.", grammar=f'root ::= ("{letter}" [0-9]){{4}}', max_tokens=30,
                principal="owner" if number % 3 else f"peer-{number}"))
            (start,) = [place for place, event in enumerate(events) if isinstance(event, Started)]
            # a guest's answer that has begun may have to leave its slot to the owner, and then waits once more
            for part in (events[:start], events[start:] if number % 3 else []):
                places = [event.position for event in part if isinstance(event, Queued)]
                assert places == sorted(places, reverse=True)
            assert isinstance(events[-1], Finished)
            ends[number] = text_of(events)

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(ask, number)
        assert {number: set(text[::2]) for number, text in ends.items()} == {
            number: {chr(97 + number)} for number in range(12)}
        last = await Pongs(engine).ask()
        assert (last.running, last.queued) == (0, 0)
        assert isinstance((await collect(engine, asked("Hi", max_tokens=2)))[-1], Finished)


async def test_the_owner_is_served_at_once_though_guests_have_every_slot() -> None:
    limits = HostLimits(context_tokens=2048, slots=2, queue_limit=8)
    async with running_engine([models_folder()], limits=limits) as engine, trio.open_nursery() as nursery:
        guests = [Chat(), Chat()]
        for number, guest in enumerate(guests):
            nursery.start_soon(guest.run, engine, f"Tell me of {number + 3} foxes.", f"peer-{number}")
        for guest in guests:
            await guest.begun.wait()
        events = await collect(engine, asked("Name a colour.", max_tokens=5))
        assert isinstance(events[-1], Finished)
        now = await Pongs(engine).ask()     # one look: between two a guest may change from waiting to running
        assert now.running + now.queued == 2
        before = [guest.pieces for guest in guests]
        with trio.fail_after(30):
            while any(guest.pieces <= was for guest, was in zip(guests, before, strict=True)):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
