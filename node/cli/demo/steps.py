"""The steps of the demonstration, each with the check that decides whether it went well.

A step never reports what it did not see: `detail` is put together from the nodes' own answers. Must not start or stop
processes by
itself other than through the nodes it is given.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from icalendar import Calendar

from node.cli.demo.checks import find_canaries, find_in_files, written_by_kith
from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Owner, pair_two
from node.cli.demo.world import World
from node.cli.failure import CommandFailure
from node.counting import counted

__all__ = ["Stage", "Step", "run_steps"]

HEAVY = "Rewrite the note Roof in simple words"
HEAVY_FACTS = ("Dana Whitfield", "14 Willow Lane", "May")
BOOKING = "Book 30 minutes with Dana on Tuesday {date} between 2pm and 5pm about the roof"
MESSAGE = "The roof is mended, please switch the tank heater back on."
DELIVERY_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Step:
    """What one step showed."""

    name: str
    ran_on: str
    ok: bool
    seconds: float
    detail: str


@dataclass
class Stage:
    """The two nodes, the owner of the phone, and what the steps hand to each other."""

    world: World
    phone: DemoNode
    home_pc: DemoNode
    owner: Owner
    steps: list[Step] = field(default_factory=list)
    bytes_out: int = 0
    masked: int = 0
    leaked: int = 0


Finding = tuple[str, bool, str]
"""ran_on, ok, detail"""


def pair(stage: Stage) -> Finding:
    """The nodes pair by spoken code; both screens show the same pictures."""
    shown, typed, pictures = pair_two(stage.home_pc.client(), stage.phone.client())
    stage.phone.wait_for(lambda status: any(peer["connected"] for peer in status["peers"]), "the nodes are connected")
    ok = shown["name"] == "phone" and typed["name"] == "home-pc" and typed["trust"] == "home"
    return "phone", ok, f"paired with {typed['name']} as {typed['trust']}; both screens showed {' / '.join(pictures)}"


def ask_tool(stage: Stage) -> Finding:
    """A question about the calendar is answered by a tool on the phone; nothing leaves."""
    before = len(stage.phone.client().get("/v1/ledger"))
    answer = stage.owner.ask("What is on my calendar tomorrow?")
    left = len(stage.phone.client().get("/v1/ledger")) - before
    facts = ("Fertility clinic appointment", "Allotment plot 88B")
    ok = all(fact in answer["text"] for fact in facts) and answer["ran_on"] == "phone" and left == 0
    return answer["ran_on"], ok, f"{answer['tools']} answered: {answer['text']!r}; ledger entries added: {left}"


def ask_heavy(stage: Stage) -> Finding:
    """A note is rewritten by the home PC, from a prompt without names, and comes back with them."""
    answer = stage.owner.ask(HEAVY)
    entries = [entry for entry in stage.phone.client().get("/v1/ledger") if entry["purpose"] == "infer"]
    if not entries:
        return answer["ran_on"], False, "nothing was delegated"
    sent = stage.phone.client().get(f"/v1/ledger/{entries[0]['entry_id']}")
    leaks = find_canaries("\n".join(sent["texts"]))
    pieces = sum(event["event"] == "delta" for event in stage.owner.events)
    missing = [fact for fact in HEAVY_FACTS if fact not in answer["text"]]
    ok = answer["ran_on"] == "home-pc" and not (leaks or missing) and sent["substitutions"] >= 2 and pieces > 1
    said = f"sent with {sent['substitutions']} values replaced: {max(sent['texts'][1:], key=len)[:160]!r}"
    back = f"came back in {pieces} pieces: {answer['text'][:240]!r}"
    return answer["ran_on"], ok, f"{said}\n       {back}" + (f"; missing: {missing}" if missing else "")


def book(stage: Stage) -> Finding:
    """A meeting is booked in a free slot after approval, and stands in the calendar file."""
    day = stage.world.tuesday
    request = BOOKING.format(date=f"{day.day} {day:%B}")
    answer = stage.owner.ask(request, expect={"title": "roof"})
    events = _events(stage)
    found = [event for event in events if "roof" in event[0].lower()]
    if len(found) != 1:
        return (
            answer["ran_on"],
            False,
            f"{len(found)} such events in the calendar file; the agent said: {answer['text']!r}",
        )
    title, start, end = found[0]
    clash = any(start < busy_end and busy_start < end for busy_start, busy_end in stage.world.busy)
    ok = start.date() == day and end - start == timedelta(minutes=30) and 14 <= start.hour < 17 and not clash
    return (
        answer["ran_on"],
        ok and answer["ran_on"] == "phone",
        f"{title!r} on {start:%A %d %B, %H:%M} to {end:%H:%M}; clashes: {int(clash)}",
    )


def _events(stage: Stage) -> list[tuple[str, datetime, datetime]]:
    zone = stage.world.busy[0][0].tzinfo
    found = []
    for path in sorted(stage.world.calendar.parent.glob("*.ics")):
        for event in Calendar.from_ical(path.read_bytes()).walk("VEVENT"):
            start, end = event.decoded("dtstart"), event.decoded("dtend")
            found.append((str(event["summary"]), start.astimezone(zone), end.astimezone(zone)))
    return found


def search(stage: Stage) -> Finding:
    """The phone finds a passage that the home PC shares with it."""
    body = {"folder": str(stage.world.shared), "peers": ["phone"]}
    share = stage.home_pc.client().post("/v1/shares", body)
    view = stage.phone.client().post("/v1/search", {"query": "boiler pressure bar"})
    hits = [hit for hit in view["hits"] if hit["origin"] == "home-pc" and "1.2 and 1.8 bar" in hit["text"]]
    ok = bool(hits) and "home-pc" in view["asked"]
    text = hits[0]["text"][:120] if hits else "nothing"
    return "home-pc", ok, f"{counted(share['documents'], 'document')} shared; found {text!r}"


def send_while_away(stage: Stage) -> Finding:
    """With the home PC stopped, a message waits, and a heavy request is answered on the phone, which says so."""
    stage.home_pc.stop()
    stage.phone.wait_for(
        lambda status: not any(peer["connected"] for peer in status["peers"]), "the home PC is seen to be gone"
    )
    sent = stage.phone.client().post("/v1/messages", {"to": "home-pc", "body": MESSAGE})
    answer = stage.owner.ask(HEAVY)
    ok = (
        sent["state"] == "queued"
        and answer["ran_on"] == "phone"
        and "home-pc" in answer["reason"]
        and bool(answer["text"].strip())
    )
    return answer["ran_on"], ok, f"message {sent['state']}; answered on {answer['ran_on']} because {answer['reason']}"


def deliver(stage: Stage) -> Finding:
    """The home PC comes back and has the message exactly once."""
    stage.home_pc.start()
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    inbox: list[dict[str, Any]] = []
    while time.monotonic() < deadline and not inbox:
        inbox = [item for item in stage.home_pc.client().get("/v1/inbox") if item["body"] == MESSAGE]
        time.sleep(0.1)
    stage.phone.wait_for(lambda status: status["queued_messages"] == 0, "the message is acknowledged")
    return (
        "home-pc",
        len(inbox) == 1,
        f"{len(inbox)} copy in the inbox, from {inbox[0]['sender'] if inbox else 'nobody'}",
    )


def account(stage: Stage) -> Finding:
    """The ledger verifies, and no planted value is in what left or in any file that Kith wrote."""
    client = stage.phone.client()
    report = client.post("/v1/ledger/verify")
    entries = client.get("/v1/ledger", limit=1000)
    texts = [text for entry in entries for text in client.get(f"/v1/ledger/{entry['entry_id']}")["texts"] or []]
    leaks = find_canaries("\n".join(texts))
    in_files = find_in_files([*written_by_kith(stage.phone.home), *written_by_kith(stage.home_pc.home)])
    stage.bytes_out = sum(entry["size_bytes"] for entry in entries)
    stage.masked = sum(entry["substitutions"] for entry in entries)
    stage.leaked = len(leaks) + len(in_files)
    ok = report["ok"] and report["entries"] >= 3 and stage.leaked == 0
    verified = (
        counted(report["entries"], "entry verifies", "entries verify") if report["ok"]
        else f"the ledger does not verify: {report['problems']}"
    )
    return (
        "phone",
        ok,
        f"{verified}; planted values in what left: {leaks or 'none'}, in Kith's files: {in_files or 'none'}",
    )


STEPS: tuple[tuple[str, Callable[[Stage], Finding]], ...] = (
    ("pair", pair),
    ("ask, answered by a tool", ask_tool),
    ("ask, delegated", ask_heavy),
    ("book a meeting", book),
    ("search what home-pc shares", search),
    ("home-pc stopped", send_while_away),
    ("home-pc back", deliver),
    ("account", account),
)


def run_steps(stage: Stage, report: Callable[[Step], None]) -> bool:
    """Run all steps in order, reporting each; a step that fails to run counts as not ok. True when all are ok."""
    for name, run in STEPS:
        begun = time.monotonic()
        stage.owner.events.clear()
        try:
            ran_on, ok, detail = run(stage)
        except CommandFailure as failure:
            ran_on, ok, detail = "phone", False, f"{failure} {failure.hint}".strip()
        step = Step(name, ran_on, ok, round(time.monotonic() - begun, 2), detail)
        stage.steps.append(step)
        report(step)
    return all(step.ok for step in stage.steps)
