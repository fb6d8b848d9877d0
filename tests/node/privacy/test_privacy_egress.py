"""clear(): what is masked, for whom, and that it stays so over turns, peers and answers; ending and reopening."""

import pytest
import trio
from egress_bench import ASK, EVENT, VALUES, bench
from guard_bench import FRIEND, HOME, BlindInspector, MemoryLedgerRows

from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import (
    HoldsPersonal,
    HoldsSecret,
    NeverForPeer,
    NotCleared,
)
from node.privacy.inspector import Inspected, Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import Level

# -- masking -------------------------------------------------------------------------------------------------------

async def test_a_delegated_prompt_is_masked_shown_and_entered() -> None:
    guard = await bench()
    clearance = await guard.clear(Part("system", public_text("Be brief.", source="prompt")), ASK)
    assert clearance.texts == ("Be brief.", "Write to [PERSON_1] ([EMAIL_1]) that I am late.")
    assert (clearance.level, clearance.substitutions, clearance.entry) == (Level.MASKED, 2, 1)
    [question] = guard.owner.questions
    assert [text.text for text in question.texts] == list(clearance.texts)
    assert [(s.token, s.original) for s in question.texts[1].substitutions] == [
        ("[PERSON_1]", "Zdravka Korenjak"), ("[EMAIL_1]", "zdravka@beispiel.example"),
    ]
    for text in question.texts:
        assert all(text.text[s.start : s.end] == s.token for s in text.substitutions)
    assert (question.peer_name, question.purpose, question.nets_missing) == ("home-pc", "infer", ("detectors",))
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.texts == clearance.texts
    assert view.entry.approved_by == "owner, question q0"
    assert view.entry.substitutions == 2
    assert "Zdravka" not in repr(clearance)


async def test_a_blind_guard_lets_it_through() -> None:
    # the negative control: the same check fails when the nets are off
    guard = await bench(inspector=BlindInspector())
    clearance = await guard.clear(ASK)
    assert "Zdravka" in clearance.texts[0]
    assert guard.owner.questions == []


async def test_what_a_tool_returned_is_masked_here_and_in_later_turns() -> None:
    guard = await bench()
    clearance = await guard.clear(ASK, Part("tool", EVENT))
    assert clearance.texts[1] == "15:00 [EVENT_1] at [PLACE_1]"
    later = await guard.clear(Part("user", owner_text("move the checkup at vrbnik clinic")), request_id="01" * 16)
    assert later.texts == ("move the [EVENT_1] at [PLACE_1]",)
    other = await guard.clear(Part("user", owner_text("move the checkup")), conversation="c2", request_id="02" * 16)
    assert other.texts == ("move the checkup",)     # another conversation knows nothing of it


async def test_absorbed_values_are_masked_and_forgotten_with_the_conversation() -> None:
    guard = await bench()
    guard.egress.absorb("c1", EVENT)
    assert (await guard.clear(Part("user", owner_text("my checkup")))).texts == ("my [EVENT_1]",)
    guard.egress.forget("c1")
    assert (await guard.clear(Part("user", owner_text("my checkup")))).texts == ("my checkup",)


async def test_an_unlisted_personal_text_leaves_as_one_placeholder() -> None:
    guard = await bench()
    note = Labeled("blood group 0 negative", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")
    assert (await guard.clear(Part("tool", note))).texts == ("[PRIVATE_1]",)


async def test_two_peers_never_share_a_map_and_one_peer_keeps_its_own() -> None:
    guard = await bench()
    first = await guard.clear(ASK)
    again = await guard.clear(Part("user", owner_text("and zdravka korenjak?")))
    friend = await guard.clear(Part("user", owner_text("zdravka@beispiel.example")), peer=FRIEND)
    assert again.texts == ("and [PERSON_1]?",)
    assert friend.texts == ("[EMAIL_1]",)
    assert friend.placeholders is not first.placeholders
    assert again.placeholders is first.placeholders


async def test_a_rehydrated_answer_is_masked_again() -> None:
    guard = await bench()
    clearance = await guard.clear(ASK)
    shown = clearance.restore("Dear [PERSON_1], and [PERSON_7]")
    assert shown == "Dear Zdravka Korenjak, and [PERSON_7]"
    answer = Part("assistant", Labeled(shown, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "answer", ()))
    assert (await guard.clear(answer)).texts == ("Dear [PERSON_1], and [PERSON_7]",)
    stream = clearance.rehydrator()
    assert stream.feed("Dear [PER") + stream.feed("SON_1]") + stream.end() == "Dear Zdravka Korenjak"


async def test_a_number_that_the_peer_made_up_is_not_given_out() -> None:
    guard = await bench()
    told = Labeled("ask [PERSON_1]", Confidentiality.PUBLIC, Integrity.UNTRUSTED, "peer")
    clearance = await guard.clear(Part("assistant", told), ASK)
    assert clearance.texts[1].startswith("Write to [PERSON_2]")


async def test_a_small_model_gets_surrogates_that_are_nobody() -> None:
    guard = await bench()
    tiny = PeerView("12D3KooWTiny", "phone", "self", style="surrogates")
    clearance = await guard.clear(ASK, peer=tiny)
    assert "[" not in clearance.texts[0]
    assert "Zdravka" not in clearance.texts[0]
    assert clearance.restore(clearance.texts[0]) == ASK.text.value


async def test_a_value_that_masking_left_is_a_refusal() -> None:
    class Slips(Inspector):
        async def inspect(self, parts, returned, *, guess=True):
            return Inspected(tuple(() for _ in parts), ())

    vault = VaultNet()
    await vault.load(VALUES)
    guard = await bench(inspector=Slips(vault=vault, secrets=SecretsNet(), detectors=None))
    with pytest.raises(HoldsPersonal):
        await guard.clear(ASK)
    with pytest.raises(HoldsSecret):
        await guard.clear(Part("user", owner_text("my pin is 4921")))
    assert guard.rows.rows == []


# -- ending and reopening ------------------------------------------------------------------------------------------

async def test_closing_is_idempotent_and_survives_cancelling() -> None:
    guard = await bench()
    clearance = await guard.clear(ASK)
    clearance.count(b"12345")
    with trio.CancelScope() as scope:
        scope.cancel()
        await clearance.close("cancelled")
    await clearance.close("end")
    view = await guard.ledger.view(1)
    assert view is not None
    assert view.close is not None
    assert (view.close.outcome, view.close.sent_bytes) == ("cancelled", 5)
    assert clearance.closed


async def test_a_message_rides_in_the_outbox_transaction_and_is_reopened_after_a_restart() -> None:
    rows = MemoryLedgerRows()
    guard = await bench(rows=rows)
    await guard.clear(
        Part("mail", owner_text("see you, Zdravka Korenjak")), purpose=Purpose.MAIL, peer=FRIEND,
        request_id="aa" * 16, together_with=lambda tx: tx.append("outbox row"),
    )
    assert rows.transactions == ["outbox row"]
    restarted = await bench(rows=rows)
    clearance = await restarted.egress.reopen(peer=FRIEND, request_id="aa" * 16)
    assert clearance.texts == ("see you, Zdravka Korenjak",)
    assert clearance.level is Level.CLEAR
    assert await restarted.egress.reopen(peer=FRIEND, request_id="aa" * 16) is clearance
    closing = clearance.closing("delivered")
    closing(None)
    with pytest.raises(NotCleared):
        await restarted.egress.reopen(peer=FRIEND, request_id="aa" * 16)


async def test_only_open_messages_of_trusted_peers_are_reopened() -> None:
    guard = await bench()
    await guard.clear(ASK, request_id="bb" * 16)
    await guard.clear(Part("mail", owner_text("hi")), purpose=Purpose.MAIL, peer=FRIEND, request_id="cc" * 16)
    guard.egress._mail.clear()      # as after a restart
    for peer, request_id, error in (
        (HOME, "bb" * 16, NotCleared),                              # a prompt is asked about again
        (FRIEND, "dd" * 16, NotCleared),                            # unknown
        (HOME, "cc" * 16, NotCleared),                              # another peer's
        (PeerView(FRIEND.peer_id, "dana", "none"), "cc" * 16, NeverForPeer),
    ):
        with pytest.raises(error):
            await guard.egress.reopen(peer=peer, request_id=request_id)
