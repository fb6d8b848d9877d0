"""What a peer is charged when the engine tells no token ids and counts at the end only, as upstream engines do."""

from contextlib import asynccontextmanager
from datetime import date

import pytest
import trio
from memory_channel import ALICE, BOB, TestClearance, memory_channels

from offload.client import AnswerBroken, AnswerRefused, ask_peer
from offload.ports import Finished, ModelInfo, Piece, Started, Usage
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, Part, PromptParts
from protocol.names import INFER

DIGEST = "ab" * 32
PROMPT = "x" * 400      # estimated at 101 tokens


class Upstream:
    """Pieces without ids; the counts come last."""

    def __init__(self, pieces, usage):
        self.pieces, self.usage = pieces, usage

    async def models(self):
        return [ModelInfo(name="big", digest=DIGEST, size_bytes=1, context_tokens=2048)]

    async def play(self):
        yield Started(0, 0, DIGEST)
        for number in range(self.pieces):
            await trio.lowlevel.checkpoint()
            yield Piece(f"{number} ")
        yield Finished("stop", self.usage)

    @asynccontextmanager
    async def stream(self, request):
        events = self.play()
        try:
            yield events
        finally:
            await events.aclose()


class Usages:
    def __init__(self):
        self.booked = []

    async def tokens_on(self, peer_id, day):
        return sum(map(sum, self.booked))

    async def add_tokens(self, peer_id, day, *, prompt_tokens, output_tokens, requests=1):
        self.booked.append((prompt_tokens, output_tokens))


class Grants:
    def __init__(self, tokens_per_day):
        self.tokens_per_day = tokens_per_day

    def grant_for(self, peer_id):
        return Grant(
            services=("infer",), models=(ANY_MODEL,), tokens_per_day=self.tokens_per_day, max_context=4096,
            max_concurrency=2, not_after_s=2**40, issued_by=BOB, issued_to=ALICE, epoch=1)

    def reopens_in_s(self, peer_id):
        return None

    def ran_out(self, peer_id):
        return False


async def ask(engine, tokens_per_day=10_000, enough_after=None, leaves_after_s=60, sends_in_s=0):
    """What was booked, and how the request ended. sends_in_s: how long each of the server's frames takes."""
    usages, texts = Usages(), []
    server = InferenceServer(engine, Grants(tokens_per_day), QuotaBook(usages, lambda: date(2026, 3, 1)))
    near, far = memory_channels(INFER)
    send = far.send

    async def slow_send(frame):
        await trio.sleep(sends_in_s)
        await send(frame)

    far.send = slow_send
    request = InferRequest(
        request_id=bytes(16), prompt=PromptParts((Part("user", PROMPT),)), max_tokens=64, deadline_s=60)

    async def on_text(text):
        texts.append(text)
        return enough_after is None or len(texts) < enough_after

    ended = "whole"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve, far)
        try:
            with trio.move_on_after(leaves_after_s) as left:
                await ask_peer(near, request, TestClearance((PROMPT,)), on_text)
            ended = "left" if left.cancelled_caught else ended
        except (AnswerRefused, AnswerBroken) as error:
            ended = error.code
    return usages.booked, ended


@pytest.mark.parametrize(("usage", "booked"), [
    (Usage(120, 0, 9), (120, 9)),       # the engine's own counts, when they are higher than what was seen
    (Usage(0, 0, 0), (101, 5)),         # none: the estimate, and one token a piece
    (Usage(80, 0, 5), (80, 5)),         # what was guessed too high is given back,
    (Usage(80, 0, 3), (80, 3)),
    (Usage(0, 0, 3), (101, 3)),         # each on its own
])
async def test_an_answer_is_booked_with_the_engines_counts(autojump_clock, usage, booked):
    bookings, ended = await ask(Upstream(5, usage))
    assert (tuple(map(sum, zip(*bookings, strict=True))), ended) == (booked, "whole")


async def test_who_leaves_while_it_is_admitted_pays_for_the_prompt_that_was_begun(autojump_clock):
    """The engine reads already; the first frame takes its time, and the peer is gone when it is out."""
    class Reading(Upstream):
        async def play(self):
            yield Started(101, 0, DIGEST)
            await trio.sleep_forever()

    bookings, ended = await ask(Reading(0, Usage(0, 0, 0)), leaves_after_s=0.5, sends_in_s=1)
    assert (tuple(map(sum, zip(*bookings, strict=True))), ended) == ((101, 0), "left")


async def test_what_an_engine_told_on_the_way_is_not_given_back(autojump_clock):
    """The control: with ids and the prompt's length told, the last word lowers nothing."""
    class Telling(Upstream):
        async def play(self):
            yield Started(101, 0, DIGEST)
            for number in range(self.pieces):
                await trio.lowlevel.checkpoint()
                yield Piece(f"{number} ", (number,))
            yield Finished("stop", self.usage)

    bookings, _ = await ask(Telling(5, Usage(80, 0, 3)))
    assert tuple(map(sum, zip(*bookings, strict=True))) == (101, 5)


async def test_leaving_early_is_not_free(autojump_clock):
    ((prompt, output),), _ = await ask(Upstream(500, Usage(120, 0, 500)), enough_after=3)
    assert prompt == 101 and 3 <= output < 500


async def test_the_quota_ends_an_answer_that_tells_no_ids(autojump_clock):
    booked, ended = await ask(Upstream(60, Usage(120, 0, 60)), tokens_per_day=130)
    assert ended == "broken"
    assert 120 <= sum(booked[0]) <= 140
