"""Availability, a free slot, an invitation: the whole errand by the embedded model's node while no network is there.

The other one's calendar file lies on the phone, her own node is away. What stands in the calendar is read by another
library; the invitation waits and goes out once, when both are back.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import psutil
import pytest
from embedded_model import models_folder
from icalendar import Calendar
from running_nodes import Household, household, until, workers_of

from node.cli.demo.owner import Owner

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONDON = ZoneInfo("Europe/London")
DANAS = "dana-phone"


@pytest.fixture
def house() -> Iterator[Household]:
    """The phone paired with Dana's, whose calendar it has; hers is busy from 14 to 16 on Tuesday."""
    models_folder()
    with household(started=False) as built:
        settings = built.world.home_pc / "config" / "config.toml"
        settings.write_text(settings.read_text().replace('"home-pc"', f'"{DANAS}"'))
        day = built.world.tuesday
        busy = [f"DT{edge};TZID=Europe/London:{day:%Y%m%d}T{hour}0000" for edge, hour in (("START", 14), ("END", 16))]
        lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VEVENT", "UID:dana@example.org",
                 "DTSTAMP:20260101T000000Z", *busy, "SUMMARY:Dentist", "END:VEVENT", "END:VCALENDAR", ""]
        (built.world.calendar.parent / "dana.ics").write_text("\r\n".join(lines), newline="")
        built.start()
        built.pair()
        yield built


def sockets(pid: int) -> list[str]:
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return [str(one.laddr) for process in processes for one in process.net_connections("inet")]


def test_availability_then_a_free_slot_then_an_invitation_without_a_network(house: Household) -> None:
    phone, day = house.phone, house.world.tuesday
    house.home_pc.stop()
    client = phone.client()
    client.put("/v1/mode", {"mode": "offline"})
    owner, said = Owner(client), f"Tuesday {day.day} {day:%B}"

    free = owner.ask(f"Is Dana free on {said} in the afternoon?")
    assert free["ran_on"] == "phone" and "12:00-14:00" in free["text"] and "16:00-18:00" in free["text"]

    booked = owner.ask(f"Book 30 minutes with Dana on {said} between 2pm and 5pm about the roof",
                       expect={"title": "roof", "attendees": "Dana Whitfield", "start": "16:00"})
    assert booked["ran_on"] == "phone"
    found = [event for event in Calendar.from_ical(house.world.calendar.read_bytes()).walk("VEVENT")
             if "roof" in str(event["SUMMARY"]).lower()]
    assert [event["DTSTART"].dt.astimezone(UTC) for event in found] == [
        datetime.combine(day, time(16), LONDON).astimezone(UTC)]        # the first that suits both
    assert found[0]["DTEND"].dt - found[0]["DTSTART"].dt == datetime(1, 1, 1, 0, 30) - datetime(1, 1, 1)

    invitation = "we meet on Tuesday at 4pm"
    sent = owner.ask(f"Send Dana a message saying that {invitation}", expect={"to": DANAS, "text": invitation})
    assert sent["ran_on"] == "phone" and sent["kind"] == "done", sent["text"]
    waiting = client.get("/v1/outbox")
    assert waiting[0]["state"] != "delivered"
    assert [(one["to"], one["body"]) for one in waiting] == [(DANAS, invitation)]

    assert all("shows what was asked for: approved" in line for line in owner.decisions) and len(owner.decisions) == 2
    assert len(workers_of(phone)) == 1, "the embedded model was asked as second reader"
    assert sockets(phone.pid) == []

    house.start(house.home_pc)
    client.put("/v1/mode", {"mode": "lan"})
    theirs = house.home_pc.client()
    inbox = until(lambda: theirs.get("/v1/inbox") or None, "the invitation has arrived")
    assert [one["body"] for one in inbox] == [invitation]
    until(lambda: [one["state"] for one in client.get("/v1/outbox")] == ["delivered"], "the phone knows of it")
