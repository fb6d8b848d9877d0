"""Stored passwords: sealed at rest, used by handle, refused in every text that would leave, in no line of a log."""

import base64
import codecs
import logging
from pathlib import Path

import pytest
from fixed import FixedClock
from guard_bench import HOME, guard_bench
from receipt_pair import InlineDatabase

from node.errors import StorageError, UsageError
from node.log import scrub_with, set_up
from node.privacy.credentials import CredentialsNet, CredentialStore, NoSuchSecret
from node.privacy.egress import Part, Purpose
from node.privacy.errors import GuardFailed, HoldsSecret
from node.privacy.inspector import Inspector
from node.privacy.known_secrets import KnownSecrets
from node.privacy.labels import owner_text
from node.privacy.nets import SecretsNet, VaultNet
from node.store.database import Database
from node.store.schema import KITH

VALUE = "blue-Heron 42 sails"       # no pattern of a secret: only the store knows it
KEY = b"w" * 32


async def store(database: object | None = None, key: bytes = KEY) -> CredentialStore:
    found = CredentialStore(database or InlineDatabase(), key, FixedClock())  # type: ignore[arg-type]
    await found.load()
    return found


async def test_a_value_is_given_to_its_purpose_by_name_only() -> None:
    kept = await store()
    assert not await kept.add("imap", "mail", f" {VALUE}\n")
    assert await kept.use("imap", "mail") == VALUE
    for name, purpose in (("imap", "upstream"), ("other", "mail")):
        with pytest.raises(NoSuchSecret) as caught:
            await kept.use(name, purpose)
        assert VALUE not in str(caught.value)
    (facts,) = kept.all()
    assert (facts.name, facts.purpose, facts.used_ms is not None) == ("imap", "mail", True)
    assert VALUE not in repr(kept) + repr(facts)
    assert await kept.add("imap", "mail", "another one")        # replaced
    assert await kept.use("imap", "mail") == "another one"


@pytest.mark.parametrize(("name", "purpose", "value"), [
    ("Imap", "mail", VALUE), ("", "mail", VALUE), ("a b", "mail", VALUE), ("x" * 65, "mail", VALUE),
    ("imap", "bank", VALUE), ("imap", "mail", "abc"), ("imap", "mail", "x" * 8193),
])
async def test_what_is_no_secret_is_refused(name: str, purpose: str, value: str) -> None:
    kept = await store()
    with pytest.raises(UsageError) as caught:
        await kept.add(name, purpose, value)
    assert VALUE not in caught.value.text
    assert kept.all() == []


def _holding(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if VALUE.encode() in path.read_bytes()]


async def test_the_file_does_not_hold_it_and_another_key_does_not_open_it(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "kith.db", b"d" * 32, KITH)
    try:
        kept = await store(database)
        await kept.add("imap", "mail", VALUE)
        rows = await database.read(lambda tx: tx.execute("SELECT * FROM credentials").fetchall())
        assert VALUE.encode() not in repr(rows).encode()        # sealed inside the encrypted file, too
        assert not _holding(tmp_path)
        other = CredentialStore(database, b"x" * 32, FixedClock())
        with pytest.raises(StorageError) as caught:
            await other.load()
        assert "kith secrets remove imap" in caught.value.hint
        await other.begin()                 # the node starts all the same, or nobody could remove it
        assert [facts.name for facts in other.all()] == ["imap"]
        with pytest.raises(GuardFailed):
            other.holds("hello")            # nobody can look for it, so nothing passes
        with pytest.raises(NoSuchSecret):
            await other.use("imap", "mail")
        await kept.remove("imap")
        with pytest.raises(NoSuchSecret):
            await kept.use("imap", "mail")
        assert (await store(database)).all() == []
        with pytest.raises(NoSuchSecret):
            await kept.remove("imap")
    finally:
        await database.close()


async def test_a_moved_row_does_not_open() -> None:
    database = InlineDatabase()
    kept = await store(database)
    await kept.add("imap", "mail", VALUE)
    await database.write(lambda tx: tx.execute("UPDATE credentials SET purpose = 'upstream'"))
    with pytest.raises(StorageError):
        await store(database)


def encodings(value: str) -> dict[str, str]:
    raw = value.encode()
    return {
        "as it is": value, "upper": value.upper(), "spaced": value.replace("-", " - "), "no spaces": "blueHeron42sails",
        "zero width": "\u200b".join(value),
        "full width": "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in value),
        "hex": raw.hex(), "base64": base64.b64encode(raw).decode(),
        "base64 inside": base64.b64encode(b"xy" + raw).decode(),
        "reversed": value[::-1], "url": "blue-Heron%2042%20sails", "base32": base64.b32encode(raw).decode(),
        "escaped": "".join(f"\\u{{{ord(char):x}}}" for char in value),
        "escaped twice": "".join(f"%25{byte:02x}" for byte in raw),
    }


@pytest.mark.parametrize("name", list(encodings(VALUE)))
def test_it_is_seen_in_other_clothes(name: str) -> None:
    known = KnownSecrets([VALUE])
    assert known.holds(f"please use {encodings(VALUE)[name]} for it")
    assert not known.holds("please use the blue heron for it")
    assert not KnownSecrets([]).holds(encodings(VALUE)[name])      # the control


def test_short_ones_count_as_words_only() -> None:
    known = KnownSecrets(["4921"])
    assert known.holds("my code: 4921.")
    assert not known.holds("in 49210 cases")
    assert not KnownSecrets(["abc"]).holds("abc")
    assert codecs.encode(VALUE, "rot13") not in VALUE      # not claimed: rot13 is not looked for


async def guarded(kept: CredentialStore | None) -> object:
    vault = VaultNet()
    await vault.load(())
    net = SecretsNet() if kept is None else CredentialsNet(SecretsNet(), kept)
    return await guard_bench(inspector=Inspector(vault=vault, secrets=net, detectors=None))


async def test_no_text_that_holds_one_leaves_for_any_purpose_or_level() -> None:
    kept = await store()
    await kept.add("imap", "mail", VALUE)
    guard = await guarded(kept)
    for purpose, part in ((Purpose.INFER, "user"), (Purpose.MAIL, "mail"), (Purpose.QUERY, "query")):
        with pytest.raises(HoldsSecret) as caught:
            await guard.clear(Part(part, owner_text(f"log in with {VALUE}")), purpose=purpose, peer=HOME)
        assert VALUE not in str(caught.value)
        with pytest.raises(HoldsSecret):
            await guard.clear(Part(part, owner_text(base64.b64encode(VALUE.encode()).decode())), purpose=purpose)
    assert guard.rows.rows == []            # and it stands in no ledger entry and no question
    assert guard.owner.questions == []
    # the negative control: without the store nothing about this value is suspicious, and it leaves
    blind = await guarded(None)
    clearance = await blind.clear(Part("mail", owner_text(f"log in with {VALUE}")), purpose=Purpose.MAIL)
    assert VALUE in clearance.texts[0]


async def test_an_unread_or_forgotten_store_lets_nothing_pass() -> None:
    kept = CredentialStore(InlineDatabase(), KEY, FixedClock())  # type: ignore[arg-type]
    guard = await guarded(kept)
    with pytest.raises(GuardFailed):
        await guard.clear(Part("user", owner_text("What is salt?")))
    await kept.load()
    await guard.clear(Part("user", owner_text("What is salt?")))
    kept.forget()
    with pytest.raises(GuardFailed):
        await guard.clear(Part("user", owner_text("What is salt?")))


async def test_what_is_stored_or_forgotten_during_a_test_of_the_guard_stays_so() -> None:
    kept = await store()
    with kept.also_known("planted canary"):
        await kept.add("imap", "mail", VALUE)
        assert kept.holds("a planted canary")
        assert kept.holds(VALUE)
    assert kept.holds(VALUE)
    assert not kept.holds("a planted canary")
    with kept.also_known("planted canary"):
        kept.forget()
        with pytest.raises(GuardFailed):
            kept.holds("a planted canary")
    with pytest.raises(GuardFailed):
        kept.holds(VALUE)


async def test_one_that_is_erased_while_it_is_used_is_told_in_nobodys_list() -> None:
    kept = await store()
    await kept.add("imap", "mail", VALUE)
    database, write = kept._database, kept._database.write

    async def erased_meanwhile(function: object, *args: object) -> object:
        found = await write(function, *args)  # type: ignore[arg-type]
        kept._values, kept._facts = {}, {}
        return found

    database.write = erased_meanwhile  # type: ignore[method-assign,assignment]
    assert await kept.use("imap", "mail") == VALUE      # it was there when it was asked for
    assert kept.all() == []


def test_one_that_begins_another_leaves_no_end_of_it_in_a_line() -> None:
    known = KnownSecrets(["swordfish", "swordfish-and-chips"])
    assert known.scrub("login swordfish-and-chips failed") == "login <secret> failed"


async def test_no_log_line_holds_one(tmp_path: Path) -> None:
    kept = await store()
    await kept.add("imap", "mail", VALUE)
    file = tmp_path / "kith.log"
    before = logging.getLogger().level
    log = logging.getLogger("node.test")
    try:
        set_up(file, level="debug", max_mb=1, keep_files=1, console=None)
        log.warning("control: %s", VALUE)
        assert VALUE in file.read_text()        # a careless line does hold it while nobody scrubs
        file.write_text("")
        scrub_with(kept.scrub)
        log.warning("trying %s", VALUE)
        try:
            raise UsageError(f"no login with {VALUE}")
        except UsageError as error:
            log.warning("failed", exc_info=error)
        text = file.read_text()
        assert VALUE not in text
        assert text.count("<secret>") == 2
    finally:
        for handler in list(logging.getLogger().handlers):
            if getattr(handler, "made_here", False):
                logging.getLogger().removeHandler(handler)
                handler.close()
        logging.getLogger().setLevel(before)
