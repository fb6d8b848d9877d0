"""What peers may still take today, and how a limit is told on both sides."""

from datetime import date
from typing import get_args

import pytest

from offload.quota import QuotaBook, QuotaExceeded
from offload.refusals import break_in_words, limit_in_words, refusal_in_words
from protocol.grants import Grant
from protocol.inference import ErrorCode, RefusalCode

ALICE, BOB = "alice", "bob"


class UsagesByDay:
    def __init__(self):
        self.days = {}
        self.reads = 0

    async def tokens_on(self, peer_id, day):
        self.reads += 1
        return self.days.get((peer_id, day), 0)

    async def add_tokens(self, peer_id, day, *, prompt_tokens, output_tokens, requests=1):
        self.days[peer_id, day] = self.days.get((peer_id, day), 0) + prompt_tokens + output_tokens


def grant(**changes):
    given = {
        "services": ("infer",), "models": ("*",), "tokens_per_day": 100, "max_context": 4096, "max_concurrency": 2,
        "not_after_s": 2**40, "issued_by": "bob", "issued_to": "alice", "epoch": 1,
    }
    return Grant(**{**given, **changes})


async def test_running_requests_of_one_peer_share_the_days_tokens():
    book = QuotaBook(UsagesByDay(), lambda: date(2026, 3, 1))
    given = grant(tokens_per_day=100, max_concurrency=3)
    for _ in range(2):
        await book.open(ALICE, given, context_tokens=1)
    await book.spend(ALICE, given, 60)
    with pytest.raises(QuotaExceeded):
        await book.spend(ALICE, given, 40)  # neither is booked yet
    assert await book.used_today(ALICE) == 100
    with pytest.raises(QuotaExceeded):
        await book.open(ALICE, given, context_tokens=1)
    assert book.running(ALICE) == 2
    await book.charge(ALICE, 10, 50)
    await book.charge(ALICE, 0, 40)
    assert await book.used_today(ALICE) == 100 and await book.used_today(BOB) == 0


async def test_the_store_is_read_once_a_day_not_for_every_token():
    usage = UsagesByDay()
    book = QuotaBook(usage, lambda: date(2026, 3, 1))
    given = grant(tokens_per_day=1000)
    await book.open(ALICE, given, context_tokens=1)
    for _ in range(100):
        await book.spend(ALICE, given, 1)
    assert usage.reads == 1
    await book.charge(ALICE, 50, 50)
    assert (await book.used_today(ALICE), usage.reads) == (100, 2)


async def test_a_new_day_begins_at_zero():
    days, usage = [date(2026, 3, 1)], UsagesByDay()
    book = QuotaBook(usage, lambda: days[-1])
    given = grant(tokens_per_day=100)
    await book.open(ALICE, given, context_tokens=1)
    with pytest.raises(QuotaExceeded):
        await book.spend(ALICE, given, 100)
    await book.charge(ALICE, 0, 100)
    book.close(ALICE)
    days.append(date(2026, 3, 2))
    await book.open(ALICE, given, context_tokens=1)
    assert await book.used_today(ALICE) == 0


@pytest.mark.parametrize(("code", "limit", "asker", "issuer"), [
    ("quota", 10_000, "this device may use 10,000 tokens a day there (UTC), and they are used up",
     "quota: 10,000 tokens a day"),
    ("busy", 2, "it runs at most 2 of this device's requests at once", "busy: 2 requests at once"),
    ("busy", None, "it is busy with other requests", "busy"),
    ("context_too_long", 512, "the text and its answer are longer than the 512 tokens it allows this device",
     "context too long: 512 tokens of context"),
    ("not_granted", None, "it has not granted this device the use of its models", "not granted"),
    ("from_a_later_version", None, "it refused (from_a_later_version)", "from a later version"),
])
def test_a_limit_is_told_in_words_on_both_sides(code, limit, asker, issuer):
    assert (refusal_in_words(code, limit), limit_in_words(code, limit)) == (asker, issuer)


def test_every_code_of_the_wire_has_words():
    for code in get_args(RefusalCode):
        assert not refusal_in_words(code, None).startswith("it refused")
    for code in get_args(ErrorCode):
        assert break_in_words(code) != code
