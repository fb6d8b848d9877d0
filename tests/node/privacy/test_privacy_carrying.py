"""A request that goes on elsewhere: the very same bytes, judged anew for every peer, or that peer is no candidate."""

from typing import Any

import msgspec
import pytest
from frame_samples import DIGEST, ID, PEER_A, PEER_B
from guard_bench import BlindInspector, Chosen, GuardBench, MemoryStream, Owner, guard_bench

from node.privacy.carrying import HERE, Carried, may_carry, spans_of
from node.privacy.egress import EgressClearance, Part, PeerView
from node.privacy.errors import ConsentRefused, HoldsPersonal, HoldsSecret, NeverForPeer, NotCleared
from node.privacy.inspector import Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import Level
from node.privacy.vault import Hit, Vault
from protocol import names
from protocol.frames import inference

VALUES = [("Zdravka Korenjak", "PERSON"), ("Jure Potokar", "PERSON")]
ASK = Part("user", owner_text("Write to Zdravka Korenjak that I am late."))
STOP = Part("stop", owner_text("END"))
HOME = PeerView(PEER_A, "home-pc", "home")
LAPTOP = PeerView(PEER_B, "laptop", "self", style="surrogates")
FRIEND = PeerView(PEER_B, "dana", "friend")
STRANGER = PeerView(PEER_B, "who", "none")
SO_FAR = "Dear [PERSON_1], I am"


async def bench(**more: Any) -> GuardBench:
    return await guard_bench(VALUES, **more)


async def begun(guard: GuardBench, *, text: str = SO_FAR, by: str = PEER_A, **more: Any) -> Carried:
    """A request that home-pc was sent, and what it, or another one, wrote."""
    clearance = await guard.clear(ASK, STOP, peer=more.pop("peer", HOME), request_id=ID.hex())
    await clearance.close("broken")
    return msgspec.structs.replace(clearance.carried(), text=text, written_by=(by,), **more)


async def again(guard: GuardBench, carried: Carried, peer: PeerView, **more: Any) -> EgressClearance:
    return await guard.clear(ASK, STOP, peer=peer, request_id=ID.hex(), like=carried, **more)


def request(carried: Carried, **more: Any) -> inference.InferRequest:
    fields: dict[str, Any] = {
        "request_id": ID, "prompt": inference.PromptParts((inference.Part("user", carried.texts[0]),)),
        "stop": carried.texts[1:], "max_tokens": 8, "deadline_s": 5, "text_so_far": carried.text, "resume_cursor": 4,
        "token_ids_so_far": carried.token_ids, "model_digest": DIGEST,
    }
    return inference.InferRequest(**(fields | more))


async def sent(guard: GuardBench, clearance: EgressClearance, frame: inference.InferRequest) -> list[bytes]:
    stream = MemoryStream(clearance.peer_id, names.INFER)
    await guard.egress.channel(stream).send_cleared(frame, clearance)
    return stream.written


async def test_the_next_peer_gets_the_same_words_under_its_own_entry_and_its_own_question() -> None:
    guard = await bench()
    carried = await begun(guard)
    clearance = await again(guard, carried, LAPTOP)
    assert clearance.texts == ("Write to [PERSON_1] that I am late.", "END", SO_FAR)
    assert (clearance.level, clearance.entry) == (Level.MASKED, 2)
    first, second = guard.owner.questions
    assert (first.peer_name, second.peer_name) == ("home-pc", "laptop")
    assert [text.text for text in second.texts] == list(clearance.texts)
    assert [(s.token, s.original) for s in second.texts[2].substitutions] == [("[PERSON_1]", "Zdravka Korenjak")]
    view = await guard.ledger.view(2)
    assert view is not None
    assert (view.entry.peer_id, view.texts, view.entry.substitutions) == (PEER_B, clearance.texts, 2)
    assert clearance.restore(f"{SO_FAR} sorry, [PERSON_1]") == "Dear Zdravka Korenjak, I am sorry, Zdravka Korenjak"
    assert len(await sent(guard, clearance, request(carried))) == 1
    assert all(b"Zdravka" not in data for _, _, data in guard.tapped)


async def test_the_same_peer_is_not_asked_about_again_for_its_own_words_only() -> None:
    guard = await bench()
    carried = await begun(guard)
    clearance = await again(guard, carried, HOME)
    assert len(guard.owner.questions) == 1
    view = await guard.ledger.view(2)
    assert view is not None
    assert view.entry.approved_by == "owner, question q0"
    assert len(await sent(guard, clearance, request(carried))) == 1
    mixed = msgspec.structs.replace(carried, written_by=(PEER_A, HERE))
    await again(guard, mixed, HOME)
    assert len(guard.owner.questions) == 2


async def test_a_no_for_the_next_peer_is_a_no() -> None:
    guard = await bench()
    carried = await begun(guard)
    with pytest.raises(ConsentRefused):
        await again(guard, carried, LAPTOP, ask=Owner(allows=False))
    assert await guard.ledger.view(2) is None


async def test_what_left_in_clear_does_not_go_to_who_may_only_get_it_masked() -> None:
    decisions = Chosen(Level.CLEAR)
    guard = await bench(decisions=decisions)
    carried = await begun(guard, text="Dear Zdravka")
    assert (carried.level, carried.texts[0]) == (Level.CLEAR, ASK.text.value)
    decisions.level = None
    for peer in (FRIEND, STRANGER, HOME):
        with pytest.raises(NeverForPeer):
            await again(guard, carried, peer)
    masked = await begun(guard)     # and masked words stay masked for who might read it in clear
    decisions.level = Level.CLEAR
    assert (await again(guard, masked, HOME)).level is Level.MASKED
    decisions.level = Level.NEVER
    with pytest.raises(NeverForPeer):
        await again(guard, masked, HOME)


@pytest.mark.parametrize(
    ("text", "denial"),
    [("Dear Jure Potokar, I", HoldsPersonal), ("The key is AKIAIOSFODNN7EXAMPLE", HoldsSecret)],
)
async def test_what_another_machine_made_up_is_looked_at_before_it_goes_on(text: str, denial: type[Exception]) -> None:
    """A name that the first model happened to write is a name all the same; so is a secret."""
    guard = await bench()
    carried = await begun(guard, text=text)
    with pytest.raises(denial):
        await again(guard, carried, LAPTOP)
    if denial is HoldsPersonal:     # to whom it wrote it, it tells nothing
        assert len(await sent(guard, await again(guard, carried, HOME), request(carried))) == 1
    else:
        with pytest.raises(denial):
            await again(guard, carried, HOME)


async def test_a_blind_guard_would_let_it_pass() -> None:
    """The negative control of the test above."""
    guard = await guard_bench(inspector=BlindInspector())
    carried = await begun(guard, text="Dear Jure Potokar, the key is AKIAIOSFODNN7EXAMPLE")
    assert "Jure Potokar" in (await again(guard, carried, LAPTOP)).texts[2]


async def test_a_name_that_became_known_meanwhile_stops_it() -> None:
    guard = await guard_bench()
    carried = await begun(guard)
    assert "Zdravka" in carried.texts[0]
    await guard.vault.load(VALUES)
    for peer in (LAPTOP, HOME):
        with pytest.raises(HoldsPersonal):
            await again(guard, carried, peer)


async def test_a_secret_label_stops_it() -> None:
    guard = await bench()
    carried = await begun(guard)
    secret = Part("user", Labeled(ASK.text.value, Confidentiality.SECRET, Integrity.OWNER, "owner"))
    with pytest.raises(HoldsSecret):
        await guard.clear(secret, STOP, peer=LAPTOP, request_id=ID.hex(), like=carried)


async def test_token_ids_go_along_with_exactly_their_text() -> None:
    guard = await bench()
    carried = await begun(guard, token_ids=(5, 6, 7))
    clearance = await again(guard, carried, LAPTOP)
    assert len(await sent(guard, clearance, request(carried))) == 1
    for other in ({"token_ids_so_far": (5, 6)}, {"token_ids_so_far": (5, 6, 8)}, {"text_so_far": "END"}):
        fresh = await again(guard, carried, LAPTOP)
        with pytest.raises(NotCleared):
            await sent(guard, fresh, request(carried, **other))


async def test_a_model_here_can_begin_what_a_peer_may_go_on_with() -> None:
    """Prepared like for the peer: nothing left, nobody was asked; the question comes when it leaves."""
    guard = await bench()
    carried = await guard.egress.prepare(peer=HOME, conversation="c1", parts=(ASK, STOP))
    assert (carried.texts, carried.approved) == (("Write to [PERSON_1] that I am late.", "END"), {})
    assert (guard.owner.questions, guard.tapped, await guard.ledger.view(1)) == ([], [], None)
    carried = msgspec.structs.replace(carried, text=SO_FAR, token_ids=(1, 2))
    assert len(await sent(guard, await again(guard, carried, HOME), request(carried))) == 1
    assert len(guard.owner.questions) == 1
    with pytest.raises(HoldsSecret):
        await guard.egress.prepare(
            peer=HOME, conversation="c1", parts=(Part("user", owner_text("AKIAIOSFODNN7EXAMPLE")),))


async def test_it_survives_a_restart_whole() -> None:
    guard = await bench()
    carried = await begun(guard, token_ids=(1, 2), thought="hm")
    back = Carried.decoded(carried.encoded())
    assert back == carried
    fresh = await bench()       # nothing is remembered of the conversation
    clearance = await again(fresh, back, HOME)
    assert fresh.owner.questions == []
    assert clearance.texts == (*carried.texts, SO_FAR, "hm")
    assert back.rehydrator().feed("[PERSON_1] ") == "Zdravka Korenjak "


def test_levels_only_ever_get_stricter() -> None:
    masked = Carried((), Level.MASKED, "brackets", {}, {})
    clear = msgspec.structs.replace(masked, level=Level.CLEAR)
    assert [may_carry(masked, level) for level in (Level.MASKED, Level.CLEAR)] == [Level.MASKED, Level.MASKED]
    assert may_carry(clear, Level.CLEAR) is Level.CLEAR
    for carried, level in ((clear, Level.MASKED), (clear, Level.PUBLIC), (masked, Level.NEVER), (masked, Level.PUBLIC)):
        with pytest.raises(NeverForPeer):
            may_carry(carried, level)


def test_placeholders_are_shown_where_they_stand() -> None:
    spans = spans_of("[PERSON_1] and Mara Lunt, [PERSON_1]", {"[PERSON_1]": "Zdravka", "Mara Lunt": "Jure"})
    assert [(one.start, one.token, one.type) for one in spans] == [
        (0, "[PERSON_1]", "PERSON"), (15, "Mara Lunt", "PRIVATE"), (26, "[PERSON_1]", "PERSON")]


class Quiet:
    """Detectors that find nothing."""

    name = "detectors"

    async def scan(self, text: str, returned: Vault) -> list[Hit]:
        return []


GERMAN = "Schreib bitte einen Brief an die Hausverwaltung, dass die Heizung seit gestern nicht mehr funktioniert."


@pytest.mark.parametrize(("text", "questions"), [(ASK.text.value, 0), (GERMAN, 2)])
async def test_what_the_nets_cannot_judge_is_asked_about_for_each_peer(text: str, questions: int) -> None:
    vault = VaultNet()
    await vault.load(VALUES)
    guard = await guard_bench(inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=Quiet()))
    part = Part("user", owner_text(text))
    first = await guard.clear(part, peer=HOME, request_id=ID.hex())
    carried = msgspec.structs.replace(first.carried(), text=SO_FAR, written_by=(PEER_A,))
    await guard.clear(part, peer=LAPTOP, request_id=ID.hex(), like=carried)
    assert len(guard.owner.questions) == questions
