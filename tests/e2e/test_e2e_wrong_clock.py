"""A node whose machine's date went wrong, in processes of their own: nothing goes, status and doctor say why and what
next, and a right date or the owner's word ends it.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from running_nodes import cli, composed

from node.cli.demo.nodes import DemoNode
from node.cli.demo.world import make_world

pytestmark = pytest.mark.e2e


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kw-") as folder:
        yield make_world(Path(folder), datetime.now(UTC)).phone


@contextmanager
def started(home: Path, *, days_ahead: int) -> Iterator[DemoNode]:
    with DemoNode("phone", home, composed("daemon_wrong_clock.py", str(days_ahead))) as node:
        node.start()
        yield node


def test_a_wrong_date_holds_back_what_is_old_until_it_is_right_or_confirmed(home: Path) -> None:
    with started(home, days_ahead=0) as node:
        assert "DATE" not in cli(node, "status").stdout
    with started(home, days_ahead=200) as node:
        status = cli(node, "status").stdout
        assert "200 days ahead of what this node saw pass" in status
        assert "kith doctor" in status
        doctor = cli(node, "doctor").stdout
        assert "!  date: the clock shows" in doctor
        assert "kith doctor --clock-is-right" in doctor
    with started(home, days_ahead=0) as node:
        assert "DATE" not in cli(node, "status").stdout
    with started(home, days_ahead=-200) as node:
        assert "200 days behind" in cli(node, "status").stdout
        assert "date:" not in cli(node, "doctor", "--clock-is-right").stdout
        assert "DATE" not in cli(node, "status").stdout
