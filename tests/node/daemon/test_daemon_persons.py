"""Devices of one person: own ones by trust, others by the owner's word, kept over restarts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from node.daemon.persons import Persons
from node.store.database import Database
from node.store.schema import KITH


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "kith.db", bytes(32), KITH)
    yield opened
    await opened.close()


def owned() -> frozenset[str]:
    return frozenset({"phone", "laptop"})


async def test_own_devices_and_those_the_owner_named(database: Database) -> None:
    persons = Persons(database, owned)
    assert persons.devices_of("phone") == {"phone", "laptop"}
    assert persons.devices_of("bea-phone") == {"bea-phone"}
    await persons.join("bea-laptop", "bea-phone")
    await persons.join("bea-tablet", "bea-laptop")
    together = {"bea-phone", "bea-laptop", "bea-tablet"}
    assert all(persons.devices_of(one) == together for one in together)
    assert persons.devices_of("cara") == {"cara"} and persons.devices_of("phone") == {"phone", "laptop"}
    again = Persons(database, owned)
    await again.load([*together, "cara"])
    assert all(again.devices_of(one) == together for one in together)


async def test_parting_leaves_the_others_together(database: Database) -> None:
    persons = Persons(database, owned)
    await persons.join("b", "a")
    await persons.join("c", "a")
    await persons.join("a", None)
    assert persons.devices_of("a") == {"a"}
    assert persons.devices_of("b") == persons.devices_of("c") == {"b", "c"}
    await persons.join("b", None)
    assert (persons.devices_of("b"), persons.devices_of("c")) == ({"b"}, {"c"})


async def test_an_own_device_counts_with_no_friend(database: Database) -> None:
    persons = Persons(database, owned)
    await persons.join("bea", "phone")
    assert persons.devices_of("phone") == {"phone", "laptop"}
    assert "phone" not in persons.devices_of("bea")
    await persons.forget("bea")
    again = Persons(database, owned)
    await again.load(["bea"])
    assert persons.devices_of("bea") == again.devices_of("bea") == {"bea"}
