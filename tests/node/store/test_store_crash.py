"""kill -9 while rows are being written: every committed transaction is whole and there, nothing half is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from node.store import settings
from node.store.database import Database
from node.store.schema import KITH

KEY = bytes(range(32))
ROWS_PER_WRITE = 5

# Writes numbered groups of rows for ever and says on stdout which group is committed.
CHILD = """
import sys, trio
from pathlib import Path
from node.store import settings
from node.store.database import Database
from node.store.schema import KITH

async def main():
    db = await Database.open(Path(sys.argv[1]), bytes(range(32)), KITH)
    number = int(await db.read(settings.get, "last") or 0)
    def group(tx):
        for part in range(5):
            settings.put(tx, f"row/{number:06}/{part}", "x" * 300)
        settings.put(tx, "last", str(number))
    while True:
        number += 1
        await db.write(group)
        print(number, flush=True)

trio.run(main)
"""


def run_and_kill(path: Path, after_lines: int) -> int:
    """The last group that the child said was committed before it was killed."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        last = 0
        for line in child.stdout:
            last = int(line)
            after_lines -= 1
            if after_lines == 0:
                os.kill(child.pid, signal.SIGKILL)  # at whatever it is doing now
        return last


@pytest.mark.parametrize("kills", [[1, 7, 23, 40, 2]])
async def test_committed_rows_survive_kill_9_and_no_group_is_partial(tmp_path, kills):
    path = tmp_path / "kith.db"
    for after_lines in kills:
        told = await trio.to_thread.run_sync(run_and_kill, path, after_lines)
        db = await Database.open(path, KEY, KITH)
        rows = await db.read(settings.items, "row/")
        last = int(await db.read(settings.get, "last") or 0)
        assert await db.check() == []
        await db.close()
        assert last in (told, told + 1)  # one more may have been committed before it could be said
        assert sorted(rows) == [
            f"row/{number:06}/{part}" for number in range(1, last + 1) for part in range(ROWS_PER_WRITE)
        ]
