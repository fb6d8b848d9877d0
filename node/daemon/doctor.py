"""kith doctor: every check with what to do about it, each within its own deadline. Must not mend anything."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import trio

from node import selfcheck
from node.api.views import Check, DoctorView
from node.clock import Clock
from node.counting import counted
from node.daemon.persevering import in_words
from node.daemon.removal_clock import RemovalClock
from node.daemon.vault import FollowingVault
from node.errors import KithError
from node.paths import Paths
from node.privacy.ledger import Ledger
from node.scan.client import ScanWorker
from node.scan.detecting import DetectWorker
from node.scan.detectors.weights import missing_parts
from node.sources.errors import SourceError
from node.sources.ics import Calendars
from node.sources.notes import NoteFolder
from node.sources.vcf import Contacts
from node.store import settings
from node.store.database import Database
from offload.errors import OffloadError
from offload.ports import Engine

__all__ = ["MISSING_KEY", "Doctor"]

DEADLINE_S = 20.0
MISSING_KEY = "ledger.missing"
"""The setting that holds how many ledger entries an emptied or replaced database lacks."""


class Doctor:
    """Looks at one node."""

    def __init__(
        self, *, paths: Paths, clock: Clock, database: Database, ledger: Ledger, engine: Engine, scan: ScanWorker,
        detecting: DetectWorker, calendars: Calendars, contacts: Contacts, vault: FollowingVault,
        unknown_env: Sequence[str], dates: RemovalClock | None = None, texts: Sequence[NoteFolder] = (),
        waiting_writes: Callable[[], int] = lambda: 0,
    ) -> None:
        """texts: the folders of notes and files. waiting_writes: those that need the owner's word after a stop."""
        self._paths = paths
        self._clock = clock
        self._database = database
        self._ledger = ledger
        self._engine = engine
        self._scan = scan
        self._detecting = detecting
        self._calendars = calendars
        self._contacts = contacts
        self._vault = vault
        self._unknown_env = unknown_env
        self._dates = dates
        self._texts = texts
        self._waiting_writes = waiting_writes

    async def look(self) -> DoctorView:
        """All checks, in the order an owner would want them."""
        checks = [
            Check(name=one.name, state=one.state, text=one.text, hint=one.hint)
            for one in await trio.to_thread.run_sync(selfcheck.run, self._paths, self._clock)
        ]
        doubt = self._dates.doubt() if self._dates else ""
        if doubt:
            hint = "If that date is wrong, set the clock: timedatectl. If it is right: kith doctor --clock-is-right"
            checks.append(Check(name="date", state="warning", text=doubt, hint=hint))
        for name, look in (
            ("database", self._look_at_database), ("ledger", self._look_at_ledger), ("engine", self._look_at_engine),
            ("vault", self._look_at_sources),
        ):
            with trio.move_on_after(DEADLINE_S) as deadline:
                try:
                    checks += await look()
                except (KithError, OffloadError, OSError) as error:  # one that fails must not hide the others
                    hint = str(getattr(error, "hint", ""))
                    checks.append(Check(name=name, state="problem", text=in_words(error), hint=hint))
            if deadline.cancelled_caught:
                checks.append(Check(name=name, state="problem", text=f"no answer within {DEADLINE_S:.0f} s"))
        checks.append(self._look_at_guard())
        if count := self._waiting_writes():
            text = f"{counted(count, 'write')} that you approved and a stop cut off: your word is needed once more"
            checks.append(Check(name="writes", state="warning", text=text,
                                hint="Ask anything in a terminal: you are asked about it first"))
        if self._unknown_env:
            names = ", ".join(self._unknown_env)
            checks.append(Check(name="environment", state="warning", text=f"not settings of kith: {names}"))
        return DoctorView(checks=checks)

    async def _look_at_database(self) -> list[Check]:
        damage = await self._database.check()
        if damage:
            return [Check(name="database", state="problem", text="; ".join(damage[:3]), hint="Restore a backup.")]
        missing = await self._database.read(settings.get, MISSING_KEY)
        if missing:
            gone = counted(int(missing), "ledger entry is", "ledger entries are")
            text = f"the database was emptied or replaced: {gone} missing"
            return [Check(name="database", state="warning", text=text, hint="Restore a backup if that was not you.")]
        return [Check(name="database", state="ok", text="every page is sound")]

    async def _look_at_ledger(self) -> list[Check]:
        report = await self._ledger.verify()
        if report.ok:
            entries = counted(report.entries, "entry", "entries")
            return [Check(name="ledger", state="ok", text=f"{entries}, chain intact")]
        found = "; ".join([*report.problems, *report.disputes][:3])
        return [Check(name="ledger", state="problem", text=found, hint="See: kith ledger verify")]

    async def _look_at_engine(self) -> list[Check]:
        broken = [
            Check(name="model", state="warning", text=f"{info.name} is broken: {info.broken}",
                  hint=f"Remove it, or put a whole file in its place: kith models info {info.name}")
            for info in await self._engine.models() if info.broken
        ][:5]
        health = await self._engine.health()
        if health.state == "no_model" and broken:
            return broken
        if health.state == "no_model":
            return [Check(name="model", state="warning", text="no model on this device",
                          hint="Add one: kith models add FILE.gguf. Peers can still compute for you.")]
        name = health.model.name if health.model else "no model"
        text = f"{name} {health.state}" + (f", {counted(health.threads, 'thread')}" if health.threads else "")
        text += f", {health.backend}" if health.backend else ""
        text += f"; graphics card: {health.gpu}" if health.gpu else ""
        wedged = health.state == "ready" and bool(health.detail)
        state = "problem" if health.state == "quarantined" else "warning" if wedged else "ok"
        again = f"It is tried again within ten minutes, or at once after: kith models use {name}"
        return [Check(name="model", state=state, text=text + (f"; {health.detail}" if health.detail else ""),
                      hint=again if health.state == "quarantined" else ""),
                *(Check(name="model", state="warning", text=trouble) for trouble in health.troubles),
                *broken, *_box("engine box", health.box, health.probe), *_box("scan box", self._scan.box),
                *_box("detector box", self._detecting.box)]

    async def _look_at_sources(self) -> list[Check]:
        await self._vault.refresh()
        found: list[Check] = []
        sources: list[Calendars | Contacts | NoteFolder] = [self._calendars, self._contacts, *self._texts]
        for source in sources:
            try:
                problems = await trio.to_thread.run_sync(source.problems)
            except SourceError as error:    # one folder that cannot be read at all must not hide the others
                found.append(Check(name="sources", state="problem", text=in_words(error), hint=error.hint))
                continue
            found += [Check(name="sources", state="warning", text=f"{problem.source}: {problem.reason}",
                            hint="Mend it or move it elsewhere; give yourself access where that is missing.")
                      for problem in problems[:5]]
        return [*found, Check(name="vault", state="ok", text=f"{self._vault.size or 0} personal values are known")]

    def _look_at_guard(self) -> Check:
        missing = missing_parts()
        if missing:
            return Check(
                name="detectors", state="warning",
                text=f"not installed ({', '.join(missing)}): free text to a peer is shown to you and needs your yes",
                hint="Install the extra: scripts/install, in the checkout",
            )
        if self._detecting.state == "quarantined":
            return Check(
                name="detectors", state="problem", text="their process keeps ending: free text to peers stays here",
                hint="Restart the node: kith down, then kith up",
            )
        return Check(name="detectors", state="ok", text=f"installed, their process is {self._detecting.state}")


def _box(name: str, held: Mapping[str, str], probe: Mapping[str, str] = MappingProxyType({})) -> list[Check]:
    """probe: what the process tried from inside. A wall that stands and does not hold is worse than none."""
    missing = [f"{layer}: {why}" for layer, why in held.items() if why != "held"]
    possible = [attempt.replace("_", " ") for attempt, found in probe.items() if found == "possible"]
    if not held:
        return []
    if missing or possible:
        gaps = [*missing, *([f"it could {', '.join(possible)}"] if possible else [])]
        return [Check(name=name, state="warning", text=f"not all layers hold: {'; '.join(gaps)}")]
    return [Check(name=name, state="ok", text=", ".join(held))]
