"""The owner's word: once, no, never again, in clear this once; levels that narrow, and the one that widens."""

import pytest
from fixed import FixedClock
from guard_bench import FRIEND, HOME, Chosen, Owner, guard_bench
from receipt_pair import InlineDatabase

from node.privacy.consent import Choice, ConsentAnswer, ConsentQuestion
from node.privacy.decisions import CHOICES, Decisions
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import (
    ConsentRefused,
    ConsentUnanswered,
    DeniedAlways,
    HoldsPersonal,
    HoldsSecret,
    NeverForPeer,
)
from node.privacy.labels import owner_text
from node.privacy.policy import Level

VALUES = (("Zdravka Korenjak", "PERSON"),)
ASK = Part("user", owner_text("Write to Zdravka Korenjak that I am late."))
PLAIN = Part("user", owner_text("What is salt?"))


async def test_never_again_is_kept_and_nothing_is_asked_twice() -> None:
    decisions, owner = Chosen(), Owner(choices=[Choice.DENY_ALWAYS])
    guard = await guard_bench(VALUES, owner=owner, decisions=decisions)
    with pytest.raises(DeniedAlways):
        await guard.clear(ASK)
    with pytest.raises(DeniedAlways) as caught:
        await guard.clear(PLAIN)
    assert (len(owner.questions), guard.rows.rows, caught.value.exit_code) == (1, [], 4)
    assert "kith privacy" in caught.value.hint
    await guard.clear(PLAIN, peer=FRIEND)               # it names one peer
    decisions.refused.clear()                           # taken back: asked again
    await guard.clear(ASK)
    assert len(owner.questions) == 3


async def test_in_clear_this_once_shows_the_exact_text_and_asks_again() -> None:
    owner = Owner(choices=[Choice.CLEAR, Choice.ONCE])
    guard = await guard_bench(VALUES, owner=owner)
    clearance = await guard.clear(ASK)
    masked, clear = owner.questions
    assert [question.level for question in owner.questions] == [Level.MASKED, Level.CLEAR]
    assert masked.texts[0].text == "Write to [PERSON_1] that I am late."
    assert clear.texts[0].text == ASK.text.value == clearance.texts[0]
    assert [mark.original for mark in clear.texts[0].substitutions] == ["Zdravka Korenjak"]
    assert masked.digest != clear.digest
    assert (clearance.level, clearance.substitutions) == (Level.CLEAR, 0)
    entry = await guard.ledger.view(1)
    assert entry is not None
    assert (entry.entry.level, entry.texts) == ("clear", (ASK.text.value,))
    assert "in clear this once" in entry.entry.approved_by
    again = await guard.clear(ASK, request_id="11" * 16)        # it was this once
    assert again.texts == ("Write to [PERSON_1] that I am late.",)


@pytest.mark.parametrize("choices", [
    [Choice.CLEAR, Choice.CLEAR], [Choice.CLEAR, Choice.DENY_ALWAYS],
])
async def test_only_a_plain_yes_to_the_clear_text_counts(choices: list[Choice]) -> None:
    guard = await guard_bench(VALUES, owner=Owner(choices=choices))
    with pytest.raises(ConsentRefused):
        await guard.clear(ASK)
    assert guard.rows.rows == []


async def test_a_yes_to_the_masked_text_is_none_to_the_clear_one() -> None:
    class Replaying(Owner):
        async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
            self.questions.append(question)
            first = self.questions[0].digest
            return ConsentAnswer(True, first, choice=Choice.CLEAR if len(self.questions) == 1 else Choice.ONCE)

    guard = await guard_bench(VALUES, owner=Replaying())
    with pytest.raises(ConsentRefused):
        await guard.clear(ASK)


async def test_asking_for_clear_asks_once_and_secrets_are_refused_all_the_same() -> None:
    guard = await guard_bench(VALUES)
    clearance = await guard.clear(ASK, in_clear=True)
    assert [question.level for question in guard.owner.questions] == [Level.CLEAR]
    assert clearance.level is Level.CLEAR
    with pytest.raises(HoldsSecret):
        await guard.clear(Part("user", owner_text("the wifi password is correct-horse-9")), in_clear=True)
    with pytest.raises(NeverForPeer):
        await guard.clear(ASK, in_clear=True, peer=PeerView("12D3KooWStranger", "who", "none"))


async def test_silence_is_no_and_says_that_it_can_wait(autojump_clock) -> None:
    guard = await guard_bench(VALUES, owner=Owner(silent=True))
    with pytest.raises(ConsentUnanswered) as caught:
        await guard.clear(ASK)
    assert caught.value.can_wait
    assert not ConsentRefused.can_wait
    assert guard.rows.rows == []

    class Away(Owner):
        async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
            return ConsentAnswer(False, question.digest, "deadline", unanswered=True)

    guard = await guard_bench(VALUES, owner=Away())
    with pytest.raises(ConsentUnanswered):
        await guard.clear(ASK)


# -- levels ----------------------------------------------------------------------------------------------------------

async def decisions() -> Decisions:
    found = Decisions(InlineDatabase(), FixedClock())  # type: ignore[arg-type]
    await found.load()
    return found


async def test_clear_for_one_device_and_conversation_is_stored_and_holds_there_only() -> None:
    chosen = await decisions()
    await chosen.choose(HOME.peer_id, Purpose.INFER, "c1", Level.CLEAR)
    guard = await guard_bench(VALUES, decisions=chosen)
    assert (await guard.clear(ASK, conversation="c1")).texts == (ASK.text.value,)
    assert "Zdravka" not in (await guard.clear(ASK, conversation="c2", request_id="22" * 16)).texts[0]
    other = await guard.clear(ASK, conversation="c1", peer=FRIEND, request_id="33" * 16)
    assert "Zdravka" not in other.texts[0]
    rows, _ = await chosen.rows()
    assert [(row.peer_id, row.conversation, row.level) for row in rows] == [(HOME.peer_id, "c1", "clear")]
    await chosen.forget_conversation("c1")
    assert (await chosen.rows())[0] == []
    assert "Zdravka" not in (await guard.clear(ASK, conversation="c1", request_id="44" * 16)).texts[0]


async def test_a_friends_machine_gets_no_clear_whatever_is_stored() -> None:
    chosen = await decisions()
    await chosen.choose(FRIEND.peer_id, Purpose.INFER, "", Level.CLEAR)     # the desk refuses it; a row may say so
    guard = await guard_bench(VALUES, decisions=chosen)
    assert "Zdravka" not in (await guard.clear(ASK, peer=FRIEND)).texts[0]


async def test_narrower_levels_hold() -> None:
    chosen = await decisions()
    guard = await guard_bench(VALUES, decisions=chosen)
    await chosen.choose(HOME.peer_id, Purpose.INFER, "", Level.PUBLIC)
    with pytest.raises(HoldsPersonal):
        await guard.clear(ASK, conversation="p1")
    await guard.clear(PLAIN, conversation="p2")
    await chosen.choose(HOME.peer_id, Purpose.INFER, "", Level.NEVER)
    with pytest.raises(NeverForPeer, match="you set infer to never for it") as refused:
        await guard.clear(PLAIN, conversation="p3")
    assert f"kith privacy set {HOME.name} default --for infer. " in refused.value.hint
    await chosen.choose(HOME.peer_id, Purpose.INFER, "p5", Level.NEVER)
    with pytest.raises(NeverForPeer, match="in this conversation") as refused:
        await guard.clear(PLAIN, conversation="p5", request_id="56" * 16)
    assert "default --for infer --conversation p5. " in refused.value.hint
    await chosen.choose(HOME.peer_id, Purpose.MAIL, "", Level.NEVER)
    with pytest.raises(NeverForPeer) as refused:
        await guard.clear(Part("mail", owner_text("hi")), purpose=Purpose.MAIL)
    assert f"kith privacy set {HOME.name} default --for mail. " in refused.value.hint
    with pytest.raises(NeverForPeer, match="trust none") as refused:      # that is no setting of the owner's
        await guard.clear(PLAIN, peer=PeerView("12D3KooWStranger", "who", "none"))
    assert refused.value.hint == NeverForPeer.hint
    await chosen.choose(HOME.peer_id, Purpose.INFER, "", None)
    await guard.clear(PLAIN, conversation="p4", request_id="55" * 16)


async def test_the_choice_of_a_place_is_told_what_the_guard_would_refuse_anyway() -> None:
    chosen = await decisions()
    assert chosen.keeps_prompts_from(HOME.peer_id) == ""
    for level, words in (
        (Level.NEVER, "its level for prompts is never (to change it: kith privacy set PEER default)"),
        (Level.PUBLIC, ""), (Level.MASKED, ""), (None, ""),
    ):
        await chosen.choose(HOME.peer_id, Purpose.INFER, "", level)
        assert chosen.keeps_prompts_from(HOME.peer_id) == words
    await chosen.choose(HOME.peer_id, Purpose.MAIL, "", Level.NEVER)
    assert chosen.keeps_prompts_from(HOME.peer_id) == ""    # another purpose
    await chosen.deny_always(HOME.peer_id, Purpose.INFER)
    assert chosen.keeps_prompts_from(HOME.peer_id) == (
        "you said that nothing leaves for it (to take that back: kith privacy denials)")


async def test_before_the_decisions_are_read_everything_is_refused() -> None:
    unread = Decisions(InlineDatabase(), FixedClock())  # type: ignore[arg-type]
    guard = await guard_bench(VALUES, decisions=unread)
    with pytest.raises(DeniedAlways):
        await guard.clear(PLAIN)


async def test_refusals_are_listed_and_can_be_taken_back() -> None:
    chosen = await decisions()
    await chosen.deny_always(HOME.peer_id, Purpose.INFER)
    await chosen.deny_always(HOME.peer_id, Purpose.INFER)
    _, denials = await chosen.rows()
    assert [(row.peer_id, row.purpose) for row in denials] == [(HOME.peer_id, "infer")]
    assert chosen.denied(HOME.peer_id, Purpose.INFER)
    assert not chosen.denied(HOME.peer_id, Purpose.MAIL)
    assert await chosen.allow_again(denials[0].number)
    assert not await chosen.allow_again(denials[0].number)
    assert not chosen.denied(HOME.peer_id, Purpose.INFER)


def test_every_purpose_can_be_forbidden() -> None:
    assert all(levels[0] is Level.NEVER for levels in CHOICES.values())
