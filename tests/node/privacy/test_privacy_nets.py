"""A net that is missing, raises, hangs or returns nonsense is a refusal, never an empty result."""

import pytest
import trio

from node.privacy.errors import GuardFailed
from node.privacy.inspector import Inspector, blank
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text
from node.privacy.nets import SecretsNet, VaultNet, run_net
from node.privacy.vault import Hit, Vault

NOTHING = Vault([])


class OddNet:
    """Does what it is told instead of scanning."""

    name = "odd"
    gaps = ()

    def __init__(self, act) -> None:
        self.act = act

    async def scan(self, text: str, returned: Vault):
        return await self.act(text)

    def holds(self, text: str) -> bool:
        return False


async def _raises(text: str):
    raise RuntimeError(f"could not read {text}")


async def _hangs(text: str):
    await trio.sleep_forever()


def _gives(value):
    async def act(text: str):
        return value
    return act


NONSENSE = [None, "hits", {}, 7, [1], [Hit(-1, 2, "X")], [Hit(0, 99, "X")], [Hit(3, 3, "X")], [Hit(0, 1, "")],
            [Hit("0", 1, "X")], [Hit(0, 1, None)], [(0, 1, "X")]]


@pytest.mark.parametrize("act", [_raises, _hangs, *map(_gives, NONSENSE)])
async def test_faults_become_guard_failed(act, autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(GuardFailed) as caught:
        await run_net(OddNet(act), "Zdravka", NOTHING, timeout_s=5.0)
    assert "Zdravka" not in str(caught.value)
    assert trio.current_time() <= 5.0


async def test_a_missing_net_is_a_fault() -> None:
    with pytest.raises(GuardFailed):
        await run_net(None, "text", NOTHING, timeout_s=5.0)


async def test_good_hits_pass() -> None:
    assert await run_net(OddNet(_gives((Hit(0, 4, "X"),))), "text", NOTHING, timeout_s=5.0) == [Hit(0, 4, "X")]


async def test_a_vault_that_is_not_loaded_fails_every_scan() -> None:
    net = VaultNet()
    assert net.size is None
    assert net.holds("anything")
    with pytest.raises(GuardFailed):
        await run_net(net, "text", NOTHING, timeout_s=5.0)


async def test_a_vault_whose_reload_fails_is_not_the_old_vault() -> None:
    net = VaultNet()
    await net.load([("Zdravka Korenjak", "PERSON")])
    assert net.size == 1
    assert net.holds("Zdravka") and not net.holds("Mara")
    with pytest.raises(TypeError):
        await net.load([(None, "PERSON")])  # type: ignore[list-item]
    with pytest.raises(GuardFailed):
        await net.scan("text", NOTHING)


async def test_long_texts_are_scanned_in_a_thread_with_the_same_result() -> None:
    net = VaultNet()
    await net.load([("Zdravka Korenjak", "PERSON")])
    long = "word " * 4000
    returned = Vault([("Alder Row", "PLACE")], strict=True)
    hits = await net.scan(f"{long}Zdravka {long}alder row", returned)
    assert [hit.type for hit in hits] == ["PERSON", "PLACE"]
    assert [hit.type for hit in await SecretsNet().scan(f"{long} my pin is 4921", NOTHING)] == ["PIN or one-time code"]
    assert [hit.type for hit in await SecretsNet().scan("my pin is 4921", NOTHING)] == ["PIN or one-time code"]


async def _inspector(**more) -> Inspector:
    net = VaultNet()
    await net.load([("Zdravka Korenjak", "PERSON")])
    return Inspector(vault=net, secrets=SecretsNet(), detectors=None, **more)


async def test_label_values_are_found_however_short() -> None:
    inspector = await _inspector()
    part = Labeled("room 3, code A, Zdravka", Confidentiality.PERSONAL, Integrity.LOCAL, "calendar",
                   (Value("3", "ID"), Value("A", "ID"), Value(" ", "ID"), Value("absent", "ID")))
    found = await inspector.inspect([part], NOTHING)
    assert [part.value[hit.start : hit.end] for hit in found.hits[0]] == ["3", "A", "Zdravka"]
    assert found.personal


async def test_an_unlisted_personal_text_is_one_hit_and_a_free_one_is_scanned() -> None:
    inspector = await _inspector()
    whole = Labeled("  blood group 0 \n", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")
    free = Labeled("blood group of Zdravka", Confidentiality.PERSONAL, Integrity.LOCAL, "notes", ())
    blank_one = Labeled("  ", Confidentiality.PERSONAL, Integrity.LOCAL, "notes")
    found = await inspector.inspect([whole, free, blank_one, owner_text("hi")], NOTHING)
    assert found.hits == ((Hit(2, 15, "PRIVATE"),), (Hit(15, 22, "PERSON"),), (), ())


async def test_a_secret_split_over_two_parts_is_found() -> None:
    inspector = await _inspector()
    found = await inspector.inspect([owner_text("the wifi password is"), owner_text("correct-horse-9")], NOTHING)
    assert found.secrets == ("password in words",)
    assert (await inspector.inspect([owner_text("correct-horse-9")], NOTHING)).secrets == ()


async def test_detectors_add_their_hits() -> None:
    net = VaultNet()
    await net.load([])
    detectors = OddNet(_gives([Hit(0, 4, "PERSON")]))
    inspector = Inspector(vault=net, secrets=SecretsNet(), detectors=detectors)
    assert inspector.nets == ("labels", "vault", "patterns", "secrets", "detectors")
    assert inspector.missing == ()
    assert (await inspector.inspect([owner_text("Mara came")], NOTHING)).hits == ((Hit(0, 4, "PERSON"),),)
    assert (await _inspector()).missing == ("detectors",)


async def test_an_inspector_without_a_vault_takes_every_name_for_real() -> None:
    assert Inspector(vault=None, secrets=None, detectors=None).is_real("Mara", NOTHING)
    inspector = await _inspector()
    assert not inspector.is_real("Mara", NOTHING)
    assert inspector.is_real("Mara", Vault([("Mara", "PERSON")]))


def test_blanking_overwrites_tokens_only() -> None:
    assert blank("Hi [PERSON_1] and [PERSON_11]", ["[PERSON_1]", "[PERSON_11]"]) == "Hi xxxxxxxxxx and xxxxxxxxxxx"
    assert blank("text", []) == "text"
    # whole words only: a stand-in hides nothing of somebody's longer name
    assert blank("Anna, Annabelle, Johanna; Anna's", ["Anna"]) == "xxxx, Annabelle, Johanna; xxxx's"
