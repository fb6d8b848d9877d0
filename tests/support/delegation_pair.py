"""An asker and a provider of /kith/infer/1 in one process: both drivers, a channel in memory, a scripted engine."""

from contextlib import asynccontextmanager
from datetime import date

import trio
from memory_channel import ALICE, BOB, TestClearance, memory_channels

from offload.client import AnswerBroken, AnswerRefused, ask_peer
from offload.ports import (
    Finished,
    ModelInfo,
    Piece,
    Started,
    Usage,
)
from offload.quota import QuotaBook
from offload.server import InferenceServer
from protocol.content import content_texts
from protocol.grants import ANY_MODEL, Grant
from protocol.inference import InferRequest, Part, PromptParts
from protocol.names import INFER

__all__ = ["ANSWER", "DIGEST", "PROMPT", "SLOW", "Grants", "Pair", "ScriptedEngine", "Usages", "grant", "request"]


DIGEST = "ab" * 32
PROMPT = "Write a letter to [PERSON_1]."


class ScriptedEngine:
    """Plays events with pauses; counts the pieces it was made to produce."""

    def __init__(self, script):
        self.script = script
        self.produced = 0
        self.requests = []

    async def models(self):
        return [ModelInfo(name="smollm2", digest=DIGEST, size_bytes=1, context_tokens=2048)]

    @asynccontextmanager
    async def stream(self, request):
        self.requests.append(request)

        async def play():
            for item in self.script:
                if isinstance(item, float):
                    await trio.sleep(item)
                    continue
                if isinstance(item, Piece):
                    self.produced += 1
                yield item

        events = play()
        try:
            yield events
        finally:
            await events.aclose()


class Usages:
    def __init__(self):
        self.used = 0

    async def tokens_on(self, peer_id, day):
        return self.used

    async def add_tokens(self, peer_id, day, *, prompt_tokens, output_tokens, requests=1):
        self.used += prompt_tokens + output_tokens


class Grants:
    expired = False

    def __init__(self, grant):
        self.grant = grant

    def grant_for(self, peer_id):
        assert peer_id == ALICE
        return self.grant

    def reopens_in_s(self, peer_id):
        return None

    def ran_out(self, peer_id):
        return self.grant is None and self.expired


def grant(**changes):
    given = {
        "services": ("infer",),
        "models": (ANY_MODEL,),
        "tokens_per_day": 10_000,
        "max_context": 4096,
        "max_concurrency": 2,
        "not_after_s": 2**40,
        "issued_by": BOB,
        "issued_to": ALICE,
        "epoch": 1,
    }
    return Grant(**{**given, **changes})


def request(**changes):
    given = {
        "request_id": bytes(16),
        "prompt": PromptParts((Part("user", PROMPT),)),
        "max_tokens": 64,
        "deadline_s": 120,
    }
    return InferRequest(**{**given, **changes})


ANSWER = [
    Started(10, 0, DIGEST),
    Piece("Dear ", (1,)),
    Piece("[PERSON_1]", (2, 3)),
    Piece("!", (4,)),
    Finished("stop", Usage(10, 0, 4)),
]


class Pair:
    """A server task and what the asker got."""

    def __init__(self, script, given=None, usage=None):
        self.engine = ScriptedEngine(script)
        self.grants = Grants(grant() if given is None else given)
        self.usage = usage or Usages()
        self.refused = []
        self.server = InferenceServer(
            self.engine, self.grants, QuotaBook(self.usage, lambda: date(2026, 3, 1)),
            lambda *refusal: self.refused.append(refusal),
        )
        self.near, self.far = memory_channels(INFER)
        self.texts = []
        self.asides = []

    async def on_aside(self, aside):
        self.asides.append(aside)

    async def on_text(self, text):
        self.texts.append(text)
        return True

    async def ask(self, req=None, on_text=None):
        answer = failure = None
        asked = req or request()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.server.serve, self.far)
            try:
                answer = await ask_peer(
                    self.near, asked, TestClearance(content_texts(asked)), on_text or self.on_text,
                    on_aside=self.on_aside)
            except (AnswerRefused, AnswerBroken) as error:
                failure = error  # raised outside the nursery, which would wrap it in a group
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(5):
                    while self.server.active:
                        await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer


SLOW = [Started(1, 0, DIGEST), *[item for n in range(100) for item in (Piece(f"{n} ", (n,)), 0.1)]]
