"""What leaves after masking, beside Presidio as it comes; what a broken guard sends; what masking costs an answer.

Run from the checkout: python -m benchmarks.privacy [--quick] [--json]. Needs the extra `guard` and, for the rows of the
development sets, ../shared/data/privacy. Those sets were looked at while the weighing was written; the prompts of
privacy_prompts.py were not. Rows of answers run the embedded model and are left out with --quick. Prompt injection has
a module of its own: python -m benchmarks.agentdojo.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from canary import ENCODINGS, Canary, self_test
from fault_sweep import KINDS, SCENARIOS, sweep
from guard_bench import guard_bench

from benchmarks import privacy_answers
from benchmarks.agentdojo import add_injection_rows
from benchmarks.privacy_leaks import DATA, NOTHING, Row, count_leaks, load_rows, our_spans, presidio
from benchmarks.privacy_prompts import LANGUAGES, Person, make_people, make_prompts, vault_values
from benchmarks.privacy_wire import SMALL, labelled_leaks
from benchmarks.report import Report, options
from node.clock import SystemClock, SystemEntropy
from node.daemon.guarding import build_detectors
from node.privacy.detectors import DetectorsNet
from node.privacy.egress import Part
from node.privacy.inspector import Inspector
from node.privacy.labels import owner_text
from node.privacy.language import foreign_language
from node.privacy.nets import SecretsNet, VaultNet
from node.privacy.placeholders import PlaceholderMap
from node.privacy.rehydrate import HELD_CHARS, Restorer, StreamRehydrator
from node.privacy.vault import Vault
from node.scan.detecting import DetectWorker
from node.scan.detectors.weights import missing_parts

QUICK, FULL = True, False
LOAD = {
    QUICK: {"every": 4, "prompts": 300, "foreign": 20, "chunkings": 3_000, "vault_chars": 300_000,
            "stall_chars": 10_000, "tasks": 0},
    FULL: {"every": 1, "prompts": 600, "foreign": 150, "chunkings": 3_000, "vault_chars": 2_000_000,
           "stall_chars": 100_000, "tasks": 8},
}
PEOPLE, CONTACTS = 60, 200
PERSON = frozenset({"person"})


class Steps(trio.abc.Instrument):
    """The longest stretch of CPU time that one task took before it let the others run."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._begun_s: float | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """It begins."""
        self._begun_s = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """It ends."""
        if self._begun_s is not None:       # the first end belongs to the step that added this
            self.longest_s = max(self.longest_s, time.thread_time() - self._begun_s)


async def inspector_of(values: Sequence[tuple[str, str]], detectors: DetectorsNet | None) -> Inspector:
    """The real nets over these values."""
    vault = VaultNet()
    await vault.load(values)
    return Inspector(vault=vault, secrets=SecretsNet(), detectors=detectors)


async def leaks(report: Report, detectors: DetectorsNet, load: dict[str, int]) -> None:
    """The development sets, ours and Presidio's side by side."""
    theirs = presidio()
    if DATA.is_dir():
        inspector = await inspector_of((), detectors)
        every = load["every"]
        rows = load_rows("presidio_research_dev.jsonl", every=every)
        ours, base = await _both(inspector, theirs, rows)
        report.add("presidio-research dev, values left", ours.share, "share", baseline=base.share, at_most=0.06)
        report.add("... names, addresses, numbers left", ours.hard_share, "share", baseline=base.hard_share,
                   at_most=0.01)
        report.add("... other text masked", ours.over, "share", baseline=base.over, at_most=0.07)
        for lower, bound in ((False, 0.13), (True, 0.22)):
            rows = load_rows("wnut17_dev.jsonl", every=every, lower=lower, only=PERSON)
            ours, base = await _both(inspector, theirs, rows)
            name = "WNUT17 persons left" + (", all lower case" if lower else "")
            report.add(name, ours.share, "share", baseline=base.share, at_most=bound)
            report.add("... other text masked", ours.over, "share", baseline=base.over)
    people = make_people(PEOPLE, 1)
    rows = [Row(prompt.text, prompt.spans) for prompt in make_prompts(people, load["prompts"], 7)]
    _, base = await _both(None, theirs, rows)
    with_vault = count_leaks(rows, await our_spans(await inspector_of(vault_values(people), detectors), rows))
    without = count_leaks(rows, await our_spans(await inspector_of((), detectors), rows))
    report.add(f"{len(rows)} chat prompts, planted facts left", with_vault.share, "share", baseline=base.share,
               at_most=0)
    report.add("... with an empty vault", without.share, "share", baseline=base.share)
    report.add("... other text masked", with_vault.over, "share", baseline=base.over)
    await languages(report, detectors, people, theirs, load)


async def languages(
    report: Report, detectors: DetectorsNet, people: Sequence[Person], theirs: Callable[[str], list[tuple[int, int]]],
    load: dict[str, int],
) -> None:
    """Prompts in other languages: noticed, what is left with the facts in the vault, and without."""
    full, empty = await inspector_of(vault_values(people), detectors), await inspector_of((), detectors)
    for language in LANGUAGES:
        made = list(make_prompts(people, load["foreign"], 7, language=language))
        rows = [Row(prompt.text, prompt.spans) for prompt in made]
        noticed = sum(foreign_language(prompt.text) is not None for prompt in made) / len(made)
        _, base = await _both(None, theirs, rows)
        report.add(f"{language} prompts shown to the owner first", noticed, "share", at_least=0.95)
        known = count_leaks(rows, await our_spans(full, rows))
        report.add("... facts left", known.share, "share", baseline=base.share, at_most=0)
        guessed = count_leaks(rows, await our_spans(empty, rows))
        report.add("... facts left with an empty vault", guessed.share, "share", baseline=base.share)
        report.add("... other text masked", guessed.over, "share", baseline=base.over)


async def _both(inspector: Inspector | None, theirs: Callable[[str], list[tuple[int, int]]], rows: Sequence[Row]):
    ours = count_leaks(rows, await our_spans(inspector, rows)) if inspector is not None else None
    return ours, count_leaks(rows, [theirs(row.text) for row in rows])


async def stalls(report: Report, detectors: DetectorsNet, load: dict[str, int]) -> None:
    """A long text scanned while the loop should stay free: CPU time, so that a busy machine does not count."""
    people = make_people(PEOPLE, 2)
    prompts = make_prompts(people, 100_000, 3)
    text = ""
    while len(text) < load["stall_chars"]:
        text += next(prompts).text + " "
    inspector = await inspector_of(vault_values(people), detectors)
    await inspector.inspect([owner_text("Is everything loaded?")], NOTHING)
    guard = await guard_bench(inspector=inspector)
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    begun_s = time.monotonic()
    cleared = await guard.clear(Part("user", owner_text(text)), peer=SMALL)
    took_s = time.monotonic() - begun_s
    trio.lowlevel.remove_instrument(steps)
    report.add("longest stall of the event loop while a text is cleared", steps.longest_s * 1000, "ms CPU", at_most=50)
    report.add("clearing of new text, per 1,000 characters", took_s * 1e6 / len(text), "ms")
    before = detectors.scanned_chars
    await inspector.inspect([owner_text(text + "And one more sentence.")], NOTHING)
    report.add("scanned again after one more sentence", detectors.scanned_chars - before, "characters", at_most=2_000)
    if not cleared.substitutions:
        raise RuntimeError("nothing found in the long text")


def wire(report: Report) -> None:
    """What a guard that works, and one that is blind, let out of labelled values; what any broken call lets out."""
    leaked, blind, frames = trio.run(labelled_leaks)
    report.add(f"labelled values on the wire, {frames} frames", leaked, "values", baseline=blind, at_most=0)
    outcomes = [one for scenario in SCENARIOS for kind in KINDS for one in sweep(scenario, kind)]
    broken = [one for one in outcomes if one.failed is not None]
    clean = sum(one.sent_bytes for one in outcomes if one.failed is None)
    sent = sum(one.sent_bytes for one in broken)
    report.add(f"sent while one of {len(broken)} calls fails", sent, "bytes", baseline=clean, at_most=0)
    value = "Ottilie Vandersteen"
    stranger = Canary(["Nobody Elsewhere"])     # a judge of another value must find none of them
    found = [name for name, encode in ENCODINGS.items() if stranger.scan([encode(value)])]
    missed = len(set(ENCODINGS) - set(self_test(value)))
    report.add(f"of {len(ENCODINGS)} encodings of a value, missed by the judge", missed, "encodings",
               baseline=len(ENCODINGS) - len(found), at_most=0)


def streaming(report: Report, load: dict[str, int]) -> None:
    """Answers cut at random must read as the whole does."""
    chance = random.Random(5)
    people = make_people(20, 4)
    unequal = longest = 0
    for number in range(load["chunkings"]):
        tokens = PlaceholderMap("surrogates" if number % 4 == 3 else "brackets")
        given = [tokens.token_for(person.name, "PERSON") for person in chance.sample(people, 3)]
        given += [tokens.token_for(people[0].email, "EMAIL"), "[PERSON_9]", "person 1", "(PERSON_1", "[", "**", "\n"]
        bent = [*given, *(token.strip("[]").lower() for token in given), *(f"**{token}**" for token in given)]
        words = ["said", "to", "the", "and", "superperson 1", ",", "."]
        text = " ".join(chance.choice(bent if chance.random() < 0.5 else words) for _ in range(20))
        restorer = Restorer(tokens.tokens)
        stream = StreamRehydrator(restorer)
        shown, at = "", 0
        while at < len(text):
            size = chance.randint(1, 7)
            shown += stream.feed(text[at : at + size])
            longest = max(longest, stream.held)
            at += size
        unequal += shown + stream.end() != restorer.restore(text)
    report.add(f"{load['chunkings']} ways of cutting an answer that read otherwise", unequal, "answers", at_most=0)
    report.add("held back of a stream, at most", longest, "characters", at_most=HELD_CHARS)


def vault_speed(report: Report, load: dict[str, int]) -> None:
    """All facts of 200 contacts, looked for in prompts."""
    people = make_people(CONTACTS, 6)
    vault = Vault(vault_values(people))
    prompts = make_prompts(people, 1_000_000, 8)
    texts: list[str] = []
    while sum(map(len, texts)) < load["vault_chars"]:
        texts.append("\n".join(next(prompts).text for _ in range(50)))
    begun_s = time.process_time()
    for text in texts:
        vault.find(text)
    rate = sum(map(len, texts)) / (time.process_time() - begun_s)
    report.add(f"vault of {len(vault)} values", rate, "characters/s", at_least=100_000)


async def measure(report: Report, load: dict[str, int]) -> None:
    """Every row that needs the detectors' process or the model."""
    worker = DetectWorker()
    async with trio.open_nursery() as nursery:
        await nursery.start(worker.run)
        detectors = build_detectors(worker, (), SystemClock(), SystemEntropy())
        assert detectors is not None
        await stalls(report, detectors, load)
        await leaks(report, detectors, load)
        nursery.cancel_scope.cancel()
    if load["tasks"]:
        await privacy_answers.measure(report, load["tasks"])


def main() -> int:
    """Print the rows; 1 when a bound is not met."""
    given = options("privacy")
    if missing_parts():
        sys.exit(f"The extra `guard` is not installed ({', '.join(missing_parts())}): scripts/install")
    report = Report("privacy")
    load = LOAD[given.quick]
    wire(report)
    streaming(report, load)
    vault_speed(report, load)
    trio.run(measure, report, load)
    if not given.quick:
        add_injection_rows(report, quick=False)
    report.print(as_json=given.json)
    if not DATA.is_dir():
        print("The development sets are not beside this checkout: their rows are left out.", file=sys.stderr)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
