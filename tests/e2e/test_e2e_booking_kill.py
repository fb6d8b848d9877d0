"""A node that dies between the owner's approval and the end of the write: exactly one event stands there afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_model import models_folder
from icalendar import Calendar
from running_nodes import Household, composed, failing, household

from node.cli.demo.nodes import DemoNode
from node.cli.demo.steps import BOOKING

pytestmark = [pytest.mark.e2e, pytest.mark.model]


def uids(folder: Path) -> list[str]:
    """The UIDs of every event in every calendar file, in any order, doubles included."""
    return sorted(
        str(event["uid"])
        for path in folder.glob("*.ics")
        for event in Calendar.from_ical(path.read_bytes()).walk("VEVENT")
    )


def booking(house: Household) -> str:
    day = house.world.tuesday
    return BOOKING.format(date=f"{day.day} {day:%B}")


@pytest.fixture
def house(request: pytest.FixtureRequest) -> Iterator[Household]:
    """A phone that dies at the instant named by the parameter; no node runs yet."""
    models_folder()
    with household(phone=composed("daemon_dying_at_write.py", request.param), started=False) as built:
        yield built


@pytest.mark.parametrize(
    ("house", "written"), [("after-approved", 0), ("before-applied", 1)], indirect=["house"],
    ids=["before-the-write", "after-the-write"],
)
def test_an_approved_event_stands_there_once(house: Household, written: int) -> None:
    folder = house.world.calendar.parent
    before = uids(folder)
    house.start(house.phone)
    owner = house.owner
    died = failing(lambda: owner.ask(booking(house), expect={"title": "roof"}))
    assert died.hint
    assert owner.decisions == ["approval of calendar_create: shows what was asked for: approved"]
    assert house.phone.stop() == -9
    assert len(uids(folder)) == len(before) + written

    with DemoNode("phone", house.world.phone) as phone:
        phone.start()
        after = uids(folder)
        assert len(after) == len(before) + 1
        assert len(set(after)) == len(after)
        (new,) = set(after) - set(before)
        assert phone.stop() == 0

        # another start finds nothing left to finish, and the event can be taken back like any other
        phone.start()
        assert uids(folder) == after
        undone = phone.client().post("/v1/undo")
        assert undone["undone"]
        assert uids(folder) == before
        assert new not in uids(folder)
        assert phone.client().post("/v1/undo")["undone"] is False
