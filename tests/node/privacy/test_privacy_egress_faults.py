"""clear(): every fault of a net, of the ledger or of the guard itself means that nothing is cleared."""

import pytest
import trio
from egress_bench import ASK, EVENT, VALUES, Shares, bench, fail, hang, truthy
from guard_bench import FRIEND, BlindInspector, MemoryLedgerRows, Owner

from node.privacy.egress import Part, Purpose
from node.privacy.errors import (
    ConsentRefused,
    EgressDenied,
    GuardFailed,
    HoldsPersonal,
    HoldsSecret,
    LedgerFailed,
)
from node.privacy.inspector import Inspected, Inspector
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.vault import Hit, Vault

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


FAULTS = [fail, hang, _garbage, truthy]


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
    guard = await bench(inspector=Inspector(vault=vault, secrets=SecretsNet(), detectors=BadNet(fail)))
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


def test_every_refusal_has_its_own_code_and_a_next_step() -> None:
    leaves = EgressDenied.__subclasses__()
    assert len({leaf.code for leaf in leaves}) == len(leaves) == 10
    assert all(leaf.hint and leaf("why").text.endswith("(why)") and leaf.exit_code == 4 for leaf in leaves)
