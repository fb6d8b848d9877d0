"""The door: locked means no identity in reach, a wrong passphrase opens nothing, lives end before it answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from fixed import SeededEntropy

from node.daemon.door import Door, Ending
from node.errors import Locked, PassphraseNeeded, UsageError, WrongPassphrase
from node.identity import keystore
from node.identity.keystore import Identity
from node.paths import Paths

PASSPHRASE = "seven geese fly south"


@pytest.fixture
def cheap_argon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystore.argon2id, "OPSLIMIT_MODERATE", keystore.argon2id.OPSLIMIT_MIN)
    monkeypatch.setattr(keystore.argon2id, "MEMLIMIT_MODERATE", keystore.argon2id.MEMLIMIT_MIN)


class Life:
    """Lives of a node without any data: what the door told, and which identities were let in."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.identities: list[Identity] = []
        self.endings: list[Ending] = []
        self.data_open = False

    async def run(self) -> None:
        while True:
            self.identities.append(await self.door.enter())
            ended = trio.Event()

            def end(why: Ending, ended: trio.Event = ended) -> None:
                self.endings.append(why)
                ended.set()

            self.data_open = True
            self.door.begun(end)
            await ended.wait()
            await trio.lowlevel.checkpoint()
            self.data_open = False
            self.door.over()


@asynccontextmanager
async def living(folder: Path, passphrase: str | None, *, locked: bool = False) -> AsyncIterator[tuple[Door, Life]]:
    paths = Paths.from_env({"KITH_HOME": str(folder)}, folder)
    paths.prepare()
    identity = keystore.create(paths.identity_file, SeededEntropy(1))
    keystore.save(paths.identity_file, identity, passphrase, SeededEntropy(2))
    door = Door(paths, None if locked else identity, SeededEntropy(3))
    life = Life(door)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await trio.testing.wait_all_tasks_blocked()
        yield door, life
        nursery.cancel_scope.cancel()


async def test_it_locks_only_when_there_is_a_way_back(tmp_path: Path, cheap_argon: None) -> None:
    async with living(tmp_path, None) as (door, life):
        with pytest.raises(UsageError) as caught:
            await door.lock()
        assert "kith key passphrase" in caught.value.hint
        assert life.data_open
        await door.set_passphrase(None, PASSPHRASE)
        assert (await door.lock()).locked
        assert life.endings == [Ending.LOCK]
        assert not life.data_open                       # closed before the answer
        assert door.identity is None
        assert (await door.lock()).locked               # again changes nothing


async def test_only_the_passphrase_opens(tmp_path: Path, cheap_argon: None) -> None:
    async with living(tmp_path, PASSPHRASE, locked=True) as (door, life):
        state = await door.state()
        assert (state.locked, state.passphrase) == (True, True)
        assert state.peer_id.startswith("12D3KooW")     # known while locked
        for wrong in ("", "seven geese fly north"):
            with pytest.raises((WrongPassphrase, PassphraseNeeded)):
                await door.unlock(wrong)
        with pytest.raises(Locked):
            await door.rotate(PASSPHRASE)
        assert life.identities == []
        assert not (await door.unlock(PASSPHRASE)).locked
        assert life.data_open                           # open before the answer
        assert [identity.peer_id for identity in life.identities] == [door.peer_id]


async def test_a_rotation_is_one_life_after_the_other(tmp_path: Path, cheap_argon: None) -> None:
    async with living(tmp_path, PASSPHRASE) as (door, life):
        with pytest.raises(WrongPassphrase):
            await door.rotate("seven geese fly north")
        assert life.endings == []
        await door.rotate(PASSPHRASE)
        first, second = life.identities
        assert life.endings == [Ending.ROTATE]
        assert first.storage_key("database") != second.storage_key("database")
        assert first.seed == second.seed
        assert keystore.load(tmp_path / "data" / "identity.json", PASSPHRASE) == second
        assert door._passphrase is None                 # not kept beyond its use


async def test_a_rotation_that_a_stop_interrupted_goes_on_when_unlocked(tmp_path: Path, cheap_argon: None) -> None:
    async with living(tmp_path, PASSPHRASE, locked=True) as (door, life):
        file = tmp_path / "data" / "identity.json"
        begun = keystore.load(file, PASSPHRASE)
        keystore.save(
            file, Identity.from_seed(begun.seed, begun.storage, b"n" * 32), PASSPHRASE, SeededEntropy(4))
        await door.unlock(PASSPHRASE)
        (identity,) = life.identities
        assert (identity.storage, identity.next_storage) == (b"n" * 32, None)
        assert keystore.load(file, PASSPHRASE) == identity


async def test_the_passphrase_is_changed_with_the_old_one_only(tmp_path: Path, cheap_argon: None) -> None:
    async with living(tmp_path, PASSPHRASE) as (door, _):
        for old in (None, "seven geese fly north"):
            with pytest.raises((WrongPassphrase, PassphraseNeeded)):
                await door.set_passphrase(old, "another passphrase")
        assert (await door.set_passphrase(PASSPHRASE, None)).passphrase is False
        assert (await door.set_passphrase(None, "another passphrase")).passphrase is True
        assert (await door.set_passphrase("another passphrase", PASSPHRASE)).passphrase is True
