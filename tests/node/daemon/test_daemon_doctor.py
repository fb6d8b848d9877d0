"""Doctor over a real database: what is missing is said, in words, and a check that fails hides no other."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fixed import FixedClock
from guard_bench import MemoryHeads

from node.api.views import Check
from node.daemon import doctor as doctor_module
from node.daemon.doctor import MISSING_KEY, Doctor
from node.daemon.life import Node
from node.errors import StorageError
from node.paths import Paths
from node.privacy.ledger import Draft, Ledger
from node.privacy.ledger_head import SeedSigner
from node.privacy.ledger_rows import StoredLedgerRows
from node.sources.event import Problem
from node.store import settings
from node.store.database import Database
from node.store.schema import KITH
from offload.errors import WorkerDied


class Bench:
    """A doctor whose parts the test can break, and the database of this life."""

    def __init__(self, database: Database, heads: MemoryHeads, paths: Paths) -> None:
        self.database = database
        self.ledger = Ledger(
            StoredLedgerRows(database), heads, SeedSigner(b"k" * 32), chain_key=b"c" * 32, seal_key=b"s" * 32,
            clock=FixedClock(),
        )
        self.calendars = SimpleNamespace(problems=lambda: [Problem("work.ics", "line 3 is no property")])
        self.engine = SimpleNamespace(health=self._dead, models=self._dead)
        vault = SimpleNamespace(refresh=self._nothing, size=3)
        self.detecting = SimpleNamespace(box={}, state="idle")
        self.doctor = Doctor(
            paths=paths, clock=FixedClock(), database=database, ledger=self.ledger, engine=cast("Any", self.engine),
            scan=cast("Any", SimpleNamespace(box={})), detecting=cast("Any", self.detecting),
            calendars=cast("Any", self.calendars),
            contacts=cast("Any", SimpleNamespace(problems=list)), vault=cast("Any", vault), unknown_env=(),
            waiting_writes=lambda: self.waiting_writes,
        )
        self.waiting_writes = 0

    async def _nothing(self) -> None:
        pass

    async def _dead(self) -> Any:
        raise WorkerDied

    async def start(self) -> None:
        """The part of a node's start that looks for a database that was emptied."""
        await object.__new__(Node)._note_missing(cast("Any", SimpleNamespace(ledger=self.ledger)), self.database)

    async def check(self, name: str) -> Check:
        (found,) = [check for check in (await self.doctor.look()).checks if check.name == name]
        return found


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.from_env({"KITH_HOME": str(tmp_path / "h")}, tmp_path)
    found.prepare()
    return found


@pytest.fixture
async def database(paths: Paths) -> AsyncIterator[Database]:
    opened = await Database.open(paths.database, b"d" * 32, KITH)
    yield opened
    await opened.close()


def entry(number: int) -> Draft:
    return Draft("12D3KooWHome", "infer", "masked", f"r{number}", ("Hi",), 0, "owner")


async def test_an_emptied_database_is_told_and_stays_told(
    paths: Paths, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    heads = MemoryHeads()
    old = Bench(database, heads, paths)
    for number in range(3):
        await old.ledger.append(entry(number))
    await old.start()
    assert await old.check("database") == Check(name="database", state="ok", text="every page is sound")    # control
    await database.close()
    for file in paths.data_dir.glob("kith.db*"):
        file.unlink()
    paths.database.touch()
    emptied = await Database.open(paths.database, b"d" * 32, KITH)
    try:
        new = Bench(emptied, heads, paths)
        await new.start()
        said = "the database was emptied or replaced: 3 ledger entries are missing"
        assert [record.getMessage() for record in caplog.records] == [said]
        await new.ledger.append(entry(9))       # moves the signed head: the chain alone looks whole now
        await new.start()
        found = await new.check("database")
        assert (found.state, found.text) == ("warning", said)
        assert await emptied.read(settings.get, MISSING_KEY) == "3"
    finally:
        await emptied.close()


async def test_a_file_with_a_problem_is_named_in_words(paths: Paths, database: Database) -> None:
    found = await Bench(database, MemoryHeads(), paths).check("sources")
    assert (found.state, found.text) == ("warning", "work.ics: line 3 is no property")


async def test_one_check_that_fails_hides_no_other(
    paths: Paths, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(database, MemoryHeads(), paths)

    async def full() -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr(bench.ledger, "verify", full)
    assert (await bench.check("ledger")).text == "The disk is full."
    assert (await bench.check("engine")).state == "problem"
    assert (await bench.check("vault")).state == "ok"


async def test_it_says_whether_the_detectors_are_there(
    paths: Paths, database: Database, monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(database, MemoryHeads(), paths)
    monkeypatch.setattr(doctor_module, "missing_parts", lambda: ())
    assert await bench.check("detectors") == Check(
        name="detectors", state="ok", text="installed, their process is idle")
    bench.detecting.state = "quarantined"
    assert (await bench.check("detectors")).state == "problem"
    monkeypatch.setattr(doctor_module, "missing_parts", lambda: ("spacy", "Rampart weights"))
    found = await bench.check("detectors")
    assert found.state == "warning"
    assert "not installed (spacy, Rampart weights): free text to a peer is shown to you" in found.text


async def test_a_write_that_waits_for_the_owner_is_named_with_what_to_do(database: Database, paths: Paths) -> None:
    bench = Bench(database, MemoryHeads(), paths)
    assert "writes" not in [one.name for one in (await bench.doctor.look()).checks]
    bench.waiting_writes = 2
    check = await bench.check("writes")
    assert (check.state, check.text.startswith("2 writes that you approved")) == ("warning", True)
    assert "Ask anything" in check.hint
