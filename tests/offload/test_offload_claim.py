"""A running request against the grant as it is now: it lapses, its hours end, it is narrowed, its day is used up."""

from datetime import date

import pytest
import trio

from offload.claim import BOOK_EVERY_TOKENS, Claim, Hindrance, Refusal, why_refused
from offload.ports import ModelInfo, Usage
from offload.quota import QuotaBook
from protocol.grants import Grant

ALICE = "alice"
MODEL = ModelInfo(name="big", digest="ab" * 32, size_bytes=1)


class UsagesByDay:
    def __init__(self):
        self.days = {}

    async def tokens_on(self, peer_id, day):
        return self.days.get((peer_id, day), 0)

    async def add_tokens(self, peer_id, day, *, prompt_tokens, output_tokens, requests):
        self.days[peer_id, day] = self.days.get((peer_id, day), 0) + prompt_tokens + output_tokens


def grant(**changes):
    given = {
        "services": ("infer",), "models": ("*",), "tokens_per_day": 100_000, "max_context": 4096, "max_concurrency": 2,
        "not_after_s": 2**40, "issued_by": "bob", "issued_to": "alice", "epoch": 1,
    }
    return Grant(**{**given, **changes})


class Book:
    """One grant, and why there is none."""

    def __init__(self):
        self.grant, self.expired, self.opens_in_s = grant(), False, None

    def grant_for(self, peer_id):
        return self.grant

    def ran_out(self, peer_id):
        return self.expired

    def reopens_in_s(self, peer_id):
        return self.opens_in_s


class Bench:
    def __init__(self, context_tokens=50, **given):
        self.book, self.usage = Book(), UsagesByDay()
        self.book.grant = grant(**given)
        self.quota = QuotaBook(self.usage, lambda: date(2026, 3, 1), day_left_s=lambda: 7200)
        self.claim = Claim(self.book, self.quota, ALICE, MODEL, context_tokens)


@pytest.mark.parametrize(("expired", "opens_in_s", "refusal"), [
    (False, None, Refusal("not_granted")), (True, None, Refusal("grant_expired")),
    (False, 900, Refusal("outside_hours", None, 900)),
])
def test_no_grant_is_told_apart(expired, opens_in_s, refusal):
    book = Book()
    book.expired, book.opens_in_s = expired, opens_in_s
    assert why_refused(book, ALICE) == refusal


async def test_what_is_running_ends_for_the_reason_that_its_grant_has():
    bench = Bench()
    assert await bench.claim.open(bench.book.grant) is None
    assert bench.claim.hindrance() is None
    bench.book.grant = grant(models=("other",))
    assert bench.claim.hindrance() == Hindrance("narrowed")
    bench.book.grant = grant(max_context=49)
    assert bench.claim.hindrance() == Hindrance("narrowed", 49)
    bench.book.grant = grant(services=("mail",))
    assert bench.claim.hindrance() == Hindrance("narrowed")
    bench.book.grant = None
    assert bench.claim.hindrance() == Hindrance("revoked")
    bench.book.expired = True
    assert await bench.claim.wrote(3) == Hindrance("grant_expired")
    bench.book.expired, bench.book.opens_in_s = False, 60
    assert await bench.claim.wrote(3) == Hindrance("outside_hours", None, 60)
    await bench.claim.close()
    assert bench.usage.days == {(ALICE, date(2026, 3, 1)): 6}  # what was computed counts, whatever ended it


async def test_each_limit_is_named_with_its_number_and_its_end():
    short = Bench(context_tokens=4097)
    assert await short.claim.open(short.book.grant) == Refusal("context_too_long", 4096)
    used = Bench(tokens_per_day=100)
    assert await used.claim.open(used.book.grant) is None
    assert await used.claim.read(99) is None
    assert await used.claim.wrote(1) == Hindrance("quota", 100, 7200)
    again = Claim(used.book, used.quota, ALICE, MODEL, 50)
    assert await again.open(used.book.grant) == Refusal("quota", 100, 7200)
    await used.claim.close()
    full = Bench(max_concurrency=1)
    assert await full.claim.open(full.book.grant) is None
    second = Claim(full.book, full.quota, ALICE, MODEL, 50)
    assert await second.open(full.book.grant) == Refusal("busy", 1)


async def test_a_node_that_is_killed_in_mid_answer_loses_little_of_the_count():
    bench = Bench(tokens_per_day=10_000)
    await bench.claim.open(bench.book.grant)
    await bench.claim.read(300)
    for _ in range(1000):
        await bench.claim.wrote(1)
    booked = bench.usage.days[ALICE, date(2026, 3, 1)]  # as a restarted node finds it
    assert 1300 - BOOK_EVERY_TOKENS < booked <= 1300
    assert await bench.quota.used_today(ALICE) == 1300
    await bench.claim.reconcile(Usage(320, 0, 1005))
    await bench.claim.close()
    assert (await bench.quota.used_today(ALICE), bench.usage.days[ALICE, date(2026, 3, 1)]) == (1325, 1325)


async def test_a_guess_that_was_too_high_is_given_back_also_once_it_was_booked():
    bench = Bench(tokens_per_day=10_000)
    other = Claim(bench.book, bench.quota, ALICE, MODEL, 50)
    for claim in (bench.claim, other):
        await claim.open(bench.book.grant)
    await other.read(30)
    await bench.claim.read(2 * BOOK_EVERY_TOKENS, guessed=True)     # booked at once
    await bench.claim.wrote(7, guessed=True)
    assert bench.usage.days[ALICE, date(2026, 3, 1)] == 2 * BOOK_EVERY_TOKENS
    await bench.claim.reconcile(Usage(200, 0, 4))
    assert await bench.quota.used_today(ALICE) == 204 + 30
    await bench.claim.close()
    assert (await bench.quota.used_today(ALICE), bench.usage.days[ALICE, date(2026, 3, 1)]) == (234, 204)
    await other.close()
    assert (await bench.quota.used_today(ALICE), bench.usage.days[ALICE, date(2026, 3, 1)]) == (234, 234)


@pytest.mark.parametrize("usage", [Usage(0, 0, 0), Usage(0, 0, 9)])
async def test_an_engine_that_counts_nothing_leaves_the_guess(usage):
    bench = Bench()
    await bench.claim.open(bench.book.grant)
    await bench.claim.read(40, guessed=True)
    await bench.claim.wrote(9, guessed=True)
    await bench.claim.reconcile(usage)
    await bench.claim.close()
    assert bench.usage.days[ALICE, date(2026, 3, 1)] == 49


async def test_the_devices_of_one_person_share_a_day():
    usage = UsagesByDay()
    hers = frozenset({"bea-phone", "bea-laptop"})
    devices = dict.fromkeys(hers, hers)
    quota = QuotaBook(
        usage, lambda: date(2026, 3, 1), devices_of=lambda peer_id: devices.get(peer_id, frozenset({peer_id})))
    book = Book()
    book.grant = grant(tokens_per_day=100)
    phone = Claim(book, quota, "bea-phone", MODEL, 50)
    await phone.open(book.grant)
    await phone.wrote(60)
    laptop = Claim(book, quota, "bea-laptop", MODEL, 50)
    assert await laptop.open(book.grant) is None
    assert await laptop.wrote(40) == Hindrance("quota", 100)
    await phone.close()
    await laptop.close()
    assert await quota.used_today("bea-phone") == await quota.used_today("bea-laptop") == 100
    assert await Claim(book, quota, "cara", MODEL, 50).open(book.grant) is None  # the control: somebody else's day
    assert quota.running("bea-phone") == quota.running("bea-laptop") == 0
    await trio.lowlevel.checkpoint()
