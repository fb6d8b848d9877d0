"""What one running request of a peer has taken, and whether its grant as it is now still covers it.

Asked for each piece and each second, so that a grant that ran out, was narrowed or was taken back ends what runs. Must
not know streams, frames' order or the engine.
"""

from dataclasses import dataclass
from typing import Protocol

import trio

from offload.ports import ModelInfo, Usage
from offload.quota import QuotaBook, QuotaExceeded
from protocol.grants import Grant, permits
from protocol.inference import ErrorCode, RefusalCode

__all__ = ["Claim", "GrantBook", "Hindrance", "Refusal", "why_refused"]

BOOK_EVERY_TOKENS = 256  # what a node that is killed in mid-answer may lose of the count


class GrantBook(Protocol):
    """The grants this node has given, as they are now."""

    def grant_for(self, peer_id: str) -> Grant | None:
        """The live grant of this peer, verified; None when there is none, it is revoked, ran out, or holds at another
        time of the day.
        """
        ...

    def ran_out(self, peer_id: str) -> bool:
        """Whether this peer has a grant whose time is over."""
        ...

    def reopens_in_s(self, peer_id: str) -> int | None:
        """In how many seconds the hours of this peer's grant begin; None when it is not the hours that hinder."""
        ...


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a running answer must end, as ErrorFrame says it."""

    code: ErrorCode
    limit: int | None = None
    resets_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not begun, as Refused says it."""

    code: RefusalCode
    limit: int | None = None
    resets_in_s: int | None = None


_OVER: dict[str, RefusalCode] = {"busy": "busy", "quota": "quota", "context_too_long": "context_too_long"}


def why_refused(grants: GrantBook, peer_id: str) -> Refusal:
    """Why a peer without a live grant may do nothing now."""
    if grants.ran_out(peer_id):
        return Refusal("grant_expired")
    opens_in_s = grants.reopens_in_s(peer_id)
    return Refusal("not_granted") if opens_in_s is None else Refusal("outside_hours", None, opens_in_s)


class Claim:
    """One request's hold on its peer's grant, from open() to close()."""

    def __init__(
        self, grants: GrantBook, quota: QuotaBook, peer_id: str, model: ModelInfo, context_tokens: int
    ) -> None:
        """context_tokens: prompt and answer together, at most."""
        self._grants = grants
        self._quota = quota
        self._peer_id = peer_id
        self._model = model
        self._context_tokens = context_tokens
        self.tokens_in = self.tokens_out = 0
        self._booked_in = self._booked_out = 0
        self._guessed_in = self._guessed_out = False

    async def open(self, grant: Grant) -> Refusal | None:
        """Take a place; the refusal when there is none."""
        try:
            await self._quota.open(self._peer_id, grant, context_tokens=self._context_tokens)
        except QuotaExceeded as over:
            return Refusal(_OVER.get(over.code, "quota"), over.limit, over.resets_in_s)
        return None

    async def close(self) -> None:
        """Give the place back and book what is not booked yet. For the end of open() without a refusal."""
        self._quota.close(self._peer_id)
        with trio.CancelScope(shield=True):
            await self._book(requests=1)

    def hindrance(self) -> Hindrance | None:
        """Why this must end now, whatever it has used; None: it may go on."""
        grant = self._grants.grant_for(self._peer_id)
        if grant is None:
            refusal = why_refused(self._grants, self._peer_id)
            if refusal.code == "grant_expired":
                return Hindrance("grant_expired")
            if refusal.code == "outside_hours":
                return Hindrance("outside_hours", None, refusal.resets_in_s)
            return Hindrance("revoked")
        if not permits(grant, "infer", model_name=self._model.name, model_digest=self._model.digest):
            return Hindrance("narrowed")
        if self._context_tokens > grant.max_context:
            return Hindrance("narrowed", grant.max_context)
        return None

    async def read(self, prompt_tokens: int, *, guessed: bool = False) -> Hindrance | None:
        """The prompt has this many tokens. Why the answer must end, if it must. guessed: the engine has not said it."""
        self._guessed_in = guessed
        more, self.tokens_in = max(0, prompt_tokens - self.tokens_in), max(prompt_tokens, self.tokens_in)
        return await self._spend(more)

    async def wrote(self, tokens: int, *, guessed: bool = False) -> Hindrance | None:
        """So many more tokens are written. Why the answer must end before they are sent, if it must."""
        self._guessed_out = self._guessed_out or guessed
        self.tokens_out += tokens
        return await self._spend(tokens)

    async def reconcile(self, usage: Usage) -> None:
        """Count what the engine says at the end beyond what was counted on the way, and give back what was guessed too
        high. The answer is whole by then; an engine that says nothing leaves the guess.
        """
        more_in = usage.prompt_tokens - self.tokens_in
        more_out = usage.output_tokens - self.tokens_out
        less_in = max(0, -more_in) if self._guessed_in and usage.prompt_tokens > 0 else 0
        less_out = max(0, -more_out) if self._guessed_out and usage.output_tokens > 0 else 0
        self.tokens_in += max(0, more_in)
        self.tokens_out += max(0, more_out)
        await self._spend(max(0, more_in) + max(0, more_out))
        if less_in or less_out:
            await self._book(requests=0)
            self.tokens_in, self._booked_in = self.tokens_in - less_in, self._booked_in - less_in
            self.tokens_out, self._booked_out = self.tokens_out - less_out, self._booked_out - less_out
            await self._quota.give_back(self._peer_id, less_in, less_out)

    async def _spend(self, tokens: int) -> Hindrance | None:
        hindered = self.hindrance()
        grant = self._grants.grant_for(self._peer_id)
        if hindered is None and grant is not None:
            try:
                await self._quota.spend(self._peer_id, grant, tokens)
            except QuotaExceeded as over:
                hindered = Hindrance("quota", over.limit, over.resets_in_s)
        else:
            self._quota.note(self._peer_id, tokens)
        if self.tokens_in + self.tokens_out - self._booked_in - self._booked_out >= BOOK_EVERY_TOKENS:
            await self._book(requests=0)
        return hindered

    async def _book(self, *, requests: int) -> None:
        more_in, more_out = self.tokens_in - self._booked_in, self.tokens_out - self._booked_out
        self._booked_in, self._booked_out = self.tokens_in, self.tokens_out
        await self._quota.charge(self._peer_id, more_in, more_out, requests=requests)
