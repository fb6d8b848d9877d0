"""Rows of booking: the development bank, and variations of phrasing that are not in it.

A variation is a frame of words with somebody, a length, a time and a politeness put in, drawn by seed; each swap
changes the gold in exactly its own place. The frames, times and lengths were written by one author who knew what the
skill looks at, before they were run: less than a stranger's wording, more than the bank's. Whether any slot suits is
found by trying every quarter hour.
"""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import agent_bank as bank
import trio
from agent_memory import Events, Owner
from agent_node import World, fill_folder, world
from booking_gold import Booked, faults, possible

from benchmarks.report import Report
from node.agent.ports import AnswerKind
from node.agent.skills.book_meeting import BookMeeting
from node.agent.skills.registry import SkillAsk, SkillCall, SkillSay, SkillWrite
from node.sources.ics import Calendars

__all__ = ["FRAMES", "add_booking_rows", "measure_bookings", "variations"]

VARIATIONS = 80
FRAMES = (
    "{who} and I should sit down {when}, {n}", "can we get {n} in with {who} {when}?", "pencil {who} in for {n} {when}",
    "I'd like to have {n} with {who} {when}", "find somewhere {when} where {who} and I both have {n}",
    "{when} I want to catch up with {who}, {n} should do", "fix up {n} with {who} {when}",
    "get {who} into my calendar {when} for {n}", "make time for a talk with {who} {when}, {n}",
    "a {n_adj} chat with {who} {when}", "squeeze in {n} with {who} {when}", "let's meet {who} {when}, {n}",
    "organise a {n_adj} meeting with {who} {when}", "coffee with {who} {when}, {n}",
    "reserve {n} for {who} and me {when}", "see if {who} and I can do {n} {when}",
    "invite {who} to a {n_adj} walk {when}",
    "{n} with {who} {when} about the fence",
    "I have to discuss the roof with {who} {when}, {n}", "need a {n_adj} appointment with {who} {when}",
)
POLITE = ("{}", "{}", "please {}", "could you {}", "{}, thanks", "Hi Kith, {}")
_VERB_FIRST = ("find", "get", "pencil", "fix", "make", "squeeze", "let's", "organise", "reserve", "see", "invite")
PEOPLE = {
    "Dana": ("Dana Whitfield",), "Ravi": ("Ravi Menon",), "Priya Nair": ("Priya Nair",), "marcus": ("Marcus Oduya",),
    "Li": ("Li Wei",), "Sofia and Jonas": ("Jonas Keller", "Sofia Ricci"), "Tomas": ("Tomas Berg",),
    "Dr Patel": ("Dr. Patel",), "mum": ("Mum (Helen Marsh)",), "Dana and Ravi": ("Dana Whitfield", "Ravi Menon"),
}
UNCLEAR = ("Ann", "Zoe")
LENGTHS = {
    ("half an hour", "half-hour"): 30, ("45 minutes", "45-minute"): 45, ("an hour", "one-hour"): 60,
    ("twenty minutes", "20-minute"): 20, ("1.5 hours", "90-minute"): 90, ("two hours", "two-hour"): 120,
}
TIMES: Sequence[tuple[str, list[tuple[str, str]], tuple[int, int] | None, list[int]]] = (
    ("next Tuesday afternoon", [("2026-03-24", "2026-03-25")], (720, 1080), []),
    ("on Friday before noon", [("2026-03-20", "2026-03-21")], (0, 720), []),
    ("next week but not on Monday", [("2026-03-23", "2026-03-30")], None, [0]),
    ("tomorrow evening", [("2026-03-19", "2026-03-20")], (1080, 1320), []),
    ("on 31 March between 9 and 12", [("2026-03-31", "2026-04-01")], (540, 720), []),
    ("some morning next week", [("2026-03-23", "2026-03-30")], (360, 720), []),
    ("on Thursday or Friday next week", [("2026-03-26", "2026-03-28")], None, []),
    ("in the first week of April", [("2026-04-01", "2026-04-08")], None, []),
    ("by Friday", [("2026-03-18", "2026-03-21")], None, []),
    ("on the 30th after 2pm", [("2026-03-30", "2026-03-31")], (840, 1440), []),
    ("on Sunday 29 March in the morning", [("2026-03-29", "2026-03-30")], (360, 720), []),
    ("next Wednesday at 11", [("2026-03-25", "2026-03-26")], (660, 1440), []),
)


def variations(count: int = VARIATIONS) -> list[dict[str, Any]]:
    """Rows in the form of booking_dev, always the same ones; expect is filled in by whoever has the calendars."""
    draw = random.Random("booking variations")
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        frame = FRAMES[len(rows) % len(FRAMES)]
        when, days, bounds, excluded = draw.choice(TIMES)
        (plain, adjective), minutes = draw.choice(tuple(LENGTHS.items()))
        who, people = draw.choice(tuple(PEOPLE.items()))
        unclear = draw.random() < 0.06
        if unclear:
            who, people = draw.choice(UNCLEAR), ()
        if "at 11" in when:
            bounds = (660, 660 + minutes)
        polite = draw.choice(POLITE if frame.startswith(_VERB_FIRST) else POLITE[-1:] + POLITE[:2])
        text = polite.format(frame.format(who=who, when=when, n=plain, n_adj=adjective))
        rows.append({
            "text": text, "people": list(people), "duration_min": minutes, "windows": [
                [f"{first}T00:00:00", f"{after}T00:00:00"] for first, after in days],
            "day_from_min": bounds[0] if bounds else None, "day_to_min": bounds[1] if bounds else None,
            "excluded_weekdays": excluded, "expect": "ask" if unclear else "",
        })
    return rows


async def by_skill(text: str, calendars: Calendars) -> Booked | str:
    """What the skill alone makes of it: a booking, ask, none."""
    reader = bank.reader()
    outcome = await BookMeeting(calendars).run(SkillCall(reader.read(text, bank.NOW), {}, reader, Events()))
    if isinstance(outcome, SkillAsk | SkillSay):
        return "ask" if isinstance(outcome, SkillAsk) else "none"
    assert isinstance(outcome, SkillWrite)
    args: Any = outcome.args
    return tuple(args.get("attendees", ())), args["start"], args["duration"]


async def by_agent(one: World, text: str) -> Booked | str:
    """The same by the whole agent; "other": it took it for something else, or asked what is meant."""
    one.owner.shown.clear()
    answer = await one.ask(text, dry_run=True)
    if answer.effects:
        effect = answer.effects[0]
        people: Any = effect.value("attendees", [])
        when: Any = effect.value("start")
        length: Any = effect.value("duration")
        return tuple(who["name"] for who in people), bank.datetime.fromisoformat(when), length
    if answer.kind is AnswerKind.ASKED and answer.missing in {"people", "attendees", "when", "start"}:
        return "ask"
    return "none" if answer.tools_used == ("book_meeting",) else "other"


async def measure_bookings(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """What is wrong by the skill alone and by the whole agent, a line for each row that is."""
    skill: list[str] = []
    agent: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        fill_folder(Path(folder))
        one = world(Path(folder), owner=Owner(lambda effect: False))
        calendars = Calendars(Path(folder) / "calendars", bank.ZONE, people=lambda: bank.TOOLS["contacts"])
        for row in rows:
            expect = row["expect"] or ("ok" if possible(row, calendars) else "none")
            both = (skill, await by_skill(row["text"], calendars)), (agent, await by_agent(one, row["text"]))
            for wrong, got in both:
                if isinstance(got, str) or expect != "ok":
                    said = [] if got == expect else [f"{got if isinstance(got, str) else 'booked'}, not {expect}"]
                else:
                    said = faults(row, got, calendars)
                if said:
                    wrong.append(f"{row['text']!r}: {', '.join(said)}")
    return skill, agent


def add_booking_rows(report: Report) -> list[str]:
    """The bank by the skill, the variations by the whole agent beside the skill; what was wrong."""
    dev, rows = bank.bookings(), variations()
    skill, _ = trio.run(measure_bookings, dev)
    report.add(f"bookings, development bank ({len(dev)}): right", 1 - len(skill) / len(dev), "share", at_least=1.0)
    skill, agent = trio.run(measure_bookings, rows)
    report.add(f"bookings, variations ({len(rows)} of {len(FRAMES)} frames), whole agent; baseline: the skill given",
               1 - len(agent) / len(rows), "share", baseline=round(1 - len(skill) / len(rows), 4), at_least=0.85)
    grave = sum("clash" in line or "people" in line for line in (*skill, *agent))
    report.add("bookings, variations: with a clash or a wrong person", grave, "bookings", at_most=0)
    return [f"skill: {line}" for line in skill] + [f"agent: {line}" for line in agent]


def main() -> None:
    """Print the rows and what is wrong."""
    report = Report("agent")
    said = add_booking_rows(report)
    report.print(as_json=False)
    print("\n" + "\n".join(said))


if __name__ == "__main__":
    main()
