"""clear(): levels, shares and consent; whatever is not allowed, shared or answered with yes is not cleared."""

import pytest
import trio
from egress_bench import ASK, EVENT, VALUES, Shares, bench, fail, hang, truthy
from guard_bench import FRIEND, STRANGER, BlindInspector, Chosen, Owner

from node.privacy.consent import ConsentAnswer, ConsentQuestion
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import (
    ConsentRefused,
    ConsentUnanswered,
    GuardFailed,
    HoldsPersonal,
    HoldsSecret,
    NeverForPeer,
    ShareNotConsented,
)
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import Level
from node.privacy.vault import Hit, Vault

# -- levels --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("purpose", list(Purpose))
async def test_a_stranger_never_gets_anything(purpose: Purpose) -> None:
    guard = await bench()
    with pytest.raises(NeverForPeer):
        await guard.clear(Part("user", owner_text("hi")), peer=STRANGER, purpose=purpose)
    assert guard.rows.rows == []


async def test_nothing_to_send_is_refused() -> None:
    with pytest.raises(NeverForPeer):
        await (await bench()).clear()


@pytest.mark.parametrize("text", [
    "who is zdravka", "call 041 907 663", "mail for ZDRAVKA@BEISPIEL.EXAMPLE", "Korenjak family",
])
async def test_a_query_with_a_personal_value_stays_here(text: str) -> None:
    guard = await bench()
    with pytest.raises(HoldsPersonal) as caught:
        await guard.clear(Part("query", owner_text(text)), purpose=Purpose.QUERY)
    assert caught.value.code == "holds_personal"
    assert guard.rows.rows == []
    blind = await bench(inspector=BlindInspector())
    assert (await blind.clear(Part("query", owner_text(text)), purpose=Purpose.QUERY)).texts == (text,)


async def test_a_labelled_query_stays_here() -> None:
    guard = await bench()
    with pytest.raises(HoldsPersonal):
        await guard.clear(Part("query", EVENT), purpose=Purpose.QUERY)


async def test_an_owners_query_without_values_goes_unasked() -> None:
    guard = await bench()
    clearance = await guard.clear(Part("query", owner_text("sourdough hydration")), purpose=Purpose.QUERY, peer=FRIEND)
    assert clearance.level is Level.PUBLIC
    assert guard.owner.questions == []
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.entry.approved_by == "owner, typed it for this"


async def test_an_agents_query_is_asked_about_and_stays_once_personal_data_was_read() -> None:
    guard = await bench()
    query = Part("query", Labeled("sourdough", Confidentiality.PUBLIC, Integrity.LOCAL, "agent"))
    await guard.clear(query, purpose=Purpose.QUERY)
    assert len(guard.owner.questions) == 1
    guard.egress.absorb("c1", EVENT)
    with pytest.raises(HoldsPersonal):
        await guard.clear(query, purpose=Purpose.QUERY)
    await guard.clear(Part("query", owner_text("sourdough")), purpose=Purpose.QUERY)    # the owner may still ask


async def test_mail_that_the_owner_typed_goes_clear_and_an_agents_must_be_public() -> None:
    guard = await bench()
    text = "Zdravka Korenjak is on 041 907 663"
    clearance = await guard.clear(Part("mail", owner_text(text)), purpose=Purpose.MAIL, peer=FRIEND)
    assert (clearance.texts, clearance.level, clearance.substitutions) == ((text,), Level.CLEAR, 0)
    assert guard.owner.questions == []
    with pytest.raises(HoldsPersonal):
        await guard.clear(Part("mail", Labeled(text, Confidentiality.PUBLIC, Integrity.LOCAL, "agent")),
                          purpose=Purpose.MAIL, peer=FRIEND)


async def test_clear_for_an_own_device_is_asked_about_with_the_values_marked() -> None:
    guard = await bench(decisions=Chosen(Level.CLEAR))
    mine = PeerView("12D3KooWMine", "laptop", "self")
    clearance = await guard.clear(ASK, peer=mine)
    assert clearance.texts == (ASK.text.value,)
    assert clearance.level is Level.CLEAR
    [question] = guard.owner.questions
    assert [s.original for s in question.texts[0].substitutions] == ["Zdravka Korenjak", "zdravka@beispiel.example"]


@pytest.mark.parametrize("purpose", [Purpose.INFER, Purpose.QUERY, Purpose.MAIL, Purpose.ANSWER])
async def test_secrets_never_leave_for_any_purpose(purpose: Purpose) -> None:
    guard = await bench(shares=Shares({"owner", "share:notes"}), decisions=Chosen(Level.CLEAR))
    mine = PeerView("12D3KooWMine", "laptop", "self")
    for text in (owner_text("the wifi password is correct-horse-9"),
                 Labeled("x", Confidentiality.SECRET, Integrity.OWNER, "share:notes")):
        with pytest.raises(HoldsSecret) as caught:
            await guard.clear(Part("user", text), purpose=purpose, peer=mine)
        assert "horse" not in str(caught.value)
    assert guard.rows.rows == []
    assert guard.owner.questions == []


PASSAGE = Part("passage", Labeled("Zdravka's soup", Confidentiality.PUBLIC, Integrity.LOCAL, "share:notes"))


async def test_a_shared_passage_goes_clear_by_the_share() -> None:
    guard = await bench(shares=Shares({"share:notes"}))
    clearance = await guard.clear(PASSAGE, purpose=Purpose.ANSWER, peer=FRIEND)
    assert clearance.texts == ("Zdravka's soup",)
    assert guard.owner.questions == []


@pytest.mark.parametrize(("shares", "error"), [
    (None, ShareNotConsented), (Shares(set()), ShareNotConsented), (Shares(set(), truthy), ShareNotConsented),
    (Shares(set(), hang), GuardFailed), (Shares(set(), fail), GuardFailed),
])
async def test_anything_but_a_share_is_a_refusal(shares, error, autojump_clock) -> None:
    guard = await bench(shares=shares)
    with pytest.raises(error):
        await guard.clear(PASSAGE, purpose=Purpose.ANSWER, peer=FRIEND)
    assert guard.rows.rows == []


# -- consent -------------------------------------------------------------------------------------------------------

class OddOwner(Owner):
    def __init__(self, act) -> None:
        super().__init__()
        self.act = act

    async def ask(self, question: ConsentQuestion):
        self.questions.append(question)
        return await self.act(question)


async def test_no_means_nothing() -> None:
    guard = await bench(owner=Owner(allows=False))
    with pytest.raises(ConsentRefused):
        await guard.clear(ASK)
    assert guard.rows.rows == []


async def test_silence_means_nothing_at_the_deadline(autojump_clock) -> None:
    guard = await bench(owner=Owner(silent=True))
    start = trio.current_time()
    with pytest.raises(ConsentUnanswered):
        await guard.clear(ASK)
    assert trio.current_time() - start == pytest.approx(120.0)
    assert guard.owner.questions[0].deadline_s == 120.0
    assert guard.rows.rows == []


def _answer(make):
    async def act(question):
        return make(question)
    return act


@pytest.mark.parametrize(("act", "error"), [
    (_answer(lambda q: None), GuardFailed),
    (_answer(lambda q: True), GuardFailed),
    (_answer(lambda q: ConsentAnswer("yes", q.digest)), ConsentRefused),
    (_answer(lambda q: ConsentAnswer(1, q.digest)), ConsentRefused),
    (_answer(lambda q: ConsentAnswer(True, "0" * 32)), ConsentRefused),
    (_answer(lambda q: 1 / 0), GuardFailed),
])
async def test_an_answer_that_is_none_means_nothing(act, error) -> None:
    guard = await bench(owner=OddOwner(act))
    with pytest.raises(error):
        await guard.clear(ASK)
    assert guard.rows.rows == []


async def test_yes_holds_for_one_request_only() -> None:
    guard = await bench()
    for number in range(3):
        await guard.clear(ASK, request_id=f"{number:032x}")
    assert len({question.digest for question in guard.owner.questions}) == 3


async def test_with_all_nets_a_masked_prompt_needs_no_question() -> None:
    class Detectors:
        name = "detectors"

        async def scan(self, text: str, returned: Vault):
            at = text.find("Maruša")
            return [] if at < 0 else [Hit(at, at + 6, "PERSON")]

    vault = VaultNet()
    await vault.load(VALUES)
    guard = await bench(inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=Detectors()))
    clearance = await guard.clear(
        Part("system", public_text("x", source="prompt")), Part("user", owner_text("ask Maruša")),
    )
    assert clearance.texts[1] == "ask [PERSON_1]"
    assert guard.owner.questions == []
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.entry.approved_by == "policy, all nets ran"
