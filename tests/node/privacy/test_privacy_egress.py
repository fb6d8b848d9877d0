"""clear(): labels, vault, secrets, level, consent, ledger; and every fault means that nothing is cleared."""

import pytest
import trio
from guard_bench import FRIEND, HOME, STRANGER, BlindInspector, Chosen, GuardBench, MemoryLedgerRows, Owner, guard_bench

from node.privacy.consent import ConsentAnswer, ConsentQuestion
from node.privacy.egress import Part, PeerView, Purpose
from node.privacy.errors import (
    ConsentRefused,
    ConsentUnanswered,
    EgressDenied,
    GuardFailed,
    HoldsPersonal,
    HoldsSecret,
    LedgerFailed,
    NeverForPeer,
    NotCleared,
    ShareNotConsented,
)
from node.privacy.inspector import Inspected, Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text, public_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.policy import Level
from node.privacy.vault import Hit, Vault

VALUES = [("Zdravka Korenjak", "PERSON"), ("zdravka@beispiel.example", "EMAIL"), ("+386 41 907 663", "PHONE")]
ASK = Part("user", owner_text("Write to Zdravka Korenjak (zdravka@beispiel.example) that I am late."))
EVENT = Labeled(
    "15:00 Checkup at Vrbnik clinic", Confidentiality.PERSONAL, Integrity.LOCAL, "calendar",
    (Value("Checkup", "EVENT"), Value("Vrbnik clinic", "PLACE")),
)


async def bench(**more) -> GuardBench:
    return await guard_bench(VALUES, **more)


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


# -- shares --------------------------------------------------------------------------------------------------------

class Shares:
    """The owner shares these sources with everybody asked about; may misbehave."""

    def __init__(self, sources, act=None) -> None:
        self.sources = sources
        self.act = act

    async def covers(self, source: str, peer_id: str) -> bool:
        if self.act is not None:
            return await self.act()
        return source in self.sources


PASSAGE = Part("passage", Labeled("Zdravka's soup", Confidentiality.PUBLIC, Integrity.LOCAL, "share:notes"))


async def test_a_shared_passage_goes_clear_by_the_share() -> None:
    guard = await bench(shares=Shares({"share:notes"}))
    clearance = await guard.clear(PASSAGE, purpose=Purpose.ANSWER, peer=FRIEND)
    assert clearance.texts == ("Zdravka's soup",)
    assert guard.owner.questions == []


async def _hang():
    await trio.sleep_forever()


async def _truthy():
    return "yes"


async def _raise():
    raise OSError("disk")


@pytest.mark.parametrize(("shares", "error"), [
    (None, ShareNotConsented), (Shares(set()), ShareNotConsented), (Shares(set(), _truthy), ShareNotConsented),
    (Shares(set(), _hang), GuardFailed), (Shares(set(), _raise), GuardFailed),
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


# -- faults: nothing is cleared, nothing is in the ledger ----------------------------------------------------------

class BadNet:
    name = "bad"
    gaps = ()

    def __init__(self, act) -> None:
        self.act = act

    async def scan(self, text: str, returned: Vault):
        return await self.act()

    def holds(self, text: str) -> bool:
        return False


async def _garbage():
    return "nothing found, honest"


FAULTS = [_raise, _hang, _garbage, _truthy]


@pytest.mark.parametrize("act", FAULTS)
@pytest.mark.parametrize("which", ["vault", "secrets", "detectors"])
@pytest.mark.parametrize("purpose", [Purpose.INFER, Purpose.QUERY, Purpose.MAIL])
async def test_a_faulty_net_means_nothing(act, which: str, purpose: Purpose, autojump_clock) -> None:
    vault = VaultNet()
    await vault.load(VALUES)
    nets = {"vault": vault, "secrets": SecretsNet(), "detectors": None, which: BadNet(act)}
    guard = await bench(inspector=Inspector(**nets))
    composed = Labeled("hello", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    with pytest.raises(GuardFailed):
        await guard.clear(Part("user", composed if which == "detectors" else owner_text("hello")), purpose=purpose)
    assert guard.rows.rows == []
    assert guard.owner.questions == []


@pytest.mark.parametrize("purpose", [Purpose.QUERY, Purpose.MAIL])
async def test_what_the_owner_typed_for_its_receiver_is_not_guessed_at(purpose: Purpose) -> None:
    vault = VaultNet()
    await vault.load(VALUES)
    guard = await bench(inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=BadNet(_raise)))
    clearance = await guard.clear(Part("mail", owner_text("greetings to Ebenezer")), purpose=purpose)
    assert clearance.texts == ("greetings to Ebenezer",)
    with pytest.raises(HoldsSecret):
        await guard.clear(Part("mail", owner_text("my pin is 4921")), purpose=purpose)


async def test_what_only_detectors_suspect_is_asked_before_an_agent_says_it_openly() -> None:
    class Suspicious:
        name = "detectors"

        async def scan(self, text: str, returned: Vault):
            return [Hit(0, 8, "PERSON")]

    vault = VaultNet()
    await vault.load(VALUES)
    guard = await bench(inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=Suspicious()))
    composed = Labeled("Ebenezer comes", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    await guard.clear(Part("mail", composed), purpose=Purpose.MAIL)
    [question] = guard.owner.questions
    assert [one.original for one in question.texts[0].substitutions] == ["Ebenezer"]
    guard.owner.allows = False
    with pytest.raises(ConsentRefused):
        await guard.clear(Part("mail", composed), purpose=Purpose.MAIL)


@pytest.mark.parametrize("act", FAULTS)
async def test_a_faulty_pattern_net_means_nothing(act, autojump_clock) -> None:
    vault = VaultNet()
    await vault.load(VALUES)
    inspector = Inspector(vault=vault, secrets=SecretsNet(), detectors=None)
    inspector._patterns = BadNet(act)
    guard = await bench(inspector=inspector)
    with pytest.raises(GuardFailed):
        await guard.clear(Part("user", owner_text("hello")))
    assert guard.rows.rows == []


async def test_addresses_and_numbers_of_unknown_people_are_masked_and_stay_out_of_queries() -> None:
    guard = await bench()
    text = "mail bob@unknown.example or ring +43 660 1234567"
    assert (await guard.clear(Part("user", owner_text(text)))).texts == ("mail [EMAIL_1] or ring [PHONE_1]",)
    with pytest.raises(HoldsPersonal):
        await guard.clear(Part("query", owner_text(text)), purpose=Purpose.QUERY)


@pytest.mark.parametrize("which", ["vault", "secrets"])
async def test_a_missing_net_means_nothing(which: str) -> None:
    vault = VaultNet()
    await vault.load(VALUES)
    nets = {"vault": vault, "secrets": SecretsNet(), "detectors": None, which: None}
    guard = await bench(inspector=Inspector(**nets))
    with pytest.raises(GuardFailed):
        await guard.clear(ASK)


async def test_a_vault_that_is_not_loaded_yet_means_nothing() -> None:
    guard = await bench(inspector=Inspector(vault=VaultNet(), secrets=SecretsNet(), detectors=None))
    with pytest.raises(GuardFailed):
        await guard.clear(ASK)


async def test_an_inspection_of_other_texts_means_nothing() -> None:
    class Short(BlindInspector):
        async def inspect(self, parts, returned, *, guess=True):
            return Inspected((), ())

    guard = await bench(inspector=Short())
    with pytest.raises(GuardFailed):
        await guard.clear(ASK)


async def test_a_bug_in_the_guard_is_no_open_door() -> None:
    class Broken(BlindInspector):
        async def inspect(self, parts, returned, *, guess=True):
            raise KeyError("oops")

    guard = await bench(inspector=Broken())
    with pytest.raises(GuardFailed):
        await guard.clear(ASK)
    assert guard.rows.rows == []


def _refuse():
    raise OSError("disk full")


@pytest.mark.parametrize("fault", [_refuse, trio.sleep_forever])
async def test_a_ledger_that_cannot_be_written_means_nothing(fault, autojump_clock) -> None:
    guard = await bench()
    guard.rows.before_append = fault
    with pytest.raises(LedgerFailed):
        await guard.clear(ASK)
    assert guard.egress._live == {}


async def test_a_ledger_that_returns_nonsense_means_nothing() -> None:
    class Odd(MemoryLedgerRows):
        pass

    guard = await bench()

    async def append(draft, also=None):
        return 7

    guard.ledger.append = append
    with pytest.raises(LedgerFailed):
        await guard.clear(ASK)


async def test_too_many_values_mean_nothing() -> None:
    guard = await bench()
    many = Labeled("x", Confidentiality.PERSONAL, Integrity.LOCAL, "contacts",
                   tuple(Value(f"person number {n}", "PERSON") for n in range(20_001)))
    with pytest.raises(GuardFailed):
        await guard.clear(Part("tool", many))


async def test_too_many_open_requests_mean_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.privacy.egress._LIVE_LIMIT", 2)
    guard = await bench()
    first = await guard.clear(ASK)
    await guard.clear(ASK)
    with pytest.raises(GuardFailed):
        await guard.clear(ASK)
    assert len(guard.rows.rows) == 2        # no entry stands open for what was refused
    await first.close("end")
    await guard.clear(ASK)


async def test_messages_that_wait_for_weeks_block_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.privacy.egress._LIVE_LIMIT", 2)
    guard = await bench()
    for number in range(4):
        await guard.clear(
            Part("mail", owner_text("hi")), purpose=Purpose.MAIL, peer=FRIEND, request_id=f"{number:032x}",
            conversation=f"m{number}",
        )
    assert len(guard.egress._mail) == 2
    first = await guard.egress.reopen(peer=FRIEND, request_id=f"{0:032x}")
    assert (first.entry, first.texts) == (1, ("hi",))


async def test_queries_messages_and_passages_leave_no_memory_behind() -> None:
    guard = await bench(shares=Shares({"share:notes"}))
    await guard.clear(Part("query", owner_text("soup")), purpose=Purpose.QUERY, conversation="q")
    await guard.clear(Part("mail", owner_text("hi Zdravka")), purpose=Purpose.MAIL, conversation="m")
    composed = Labeled("dinner is ready", Confidentiality.PUBLIC, Integrity.LOCAL, "agent")
    await guard.clear(Part("mail", composed), purpose=Purpose.MAIL, conversation="n")
    notes = Labeled("soup", Confidentiality.PERSONAL, Integrity.LOCAL, "share:notes", ())
    await guard.clear(Part("passage", notes), purpose=Purpose.ANSWER, peer=FRIEND, conversation="a")
    assert len(guard.egress._memories) == 0
    await guard.clear(Part("user", owner_text("soup")), conversation="c")
    guard.egress.absorb("d", EVENT)
    assert len(guard.egress._memories) == 2


async def test_conversations_unused_for_longest_are_dropped_as_at_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.privacy.memory._CONVERSATIONS_LIMIT", 2)
    guard = await bench()
    guard.egress.absorb("old", EVENT)
    guard.egress.absorb("used", EVENT)
    await guard.clear(Part("user", owner_text("soup")), conversation="old")
    await guard.clear(Part("user", owner_text("soup")), conversation="new")
    assert list(guard.egress._memories._all) == ["old", "new"]
    again = await guard.clear(Part("tool", EVENT), Part("user", owner_text("and then?")), conversation="used")
    assert again.substitutions > 0      # its turns bring the values back


async def test_a_cancelled_question_clears_nothing(autojump_clock) -> None:
    guard = await bench(owner=Owner(silent=True))
    with trio.move_on_after(1):
        await guard.clear(ASK)
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


def test_every_refusal_has_its_own_code_and_a_next_step() -> None:
    leaves = EgressDenied.__subclasses__()
    assert len({leaf.code for leaf in leaves}) == len(leaves) == 10
    assert all(leaf.hint and leaf("why").text.endswith("(why)") and leaf.exit_code == 4 for leaf in leaves)
