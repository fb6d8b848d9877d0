"""Tool calls of public cases under a grammar, the tool given: are they valid, and how right are their arguments?

Run from the checkout: python -m benchmarks.bfcl [--quick] [--json]. Cases: Berkeley Function Calling Leaderboard v4,
`simple_python` and `multiple`, Apache-2.0, taken out of the wheel of `bfcl-eval` that requirements-bench.txt pins by
hash; it is neither installed nor imported. A fixed stratified sample. Without the wheel the rows are left out.

Each case is asked twice: as ever, and without jumping over forced text. Where a text was read decides about its last
bits and so about near ties, so single cases may differ; the arguments must be no less right on the whole, which is held
to what the cases that differ leave open (a sign test at 5 %).
"""

import math
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import trio

from benchmarks.report import Report, options
from offload.evaluation.cases import Case, read_answers, read_cases, stratified_sample
from offload.evaluation.plain_chooser import PlainChooser
from offload.evaluation.scoring import score_choice
from offload.local_engine import LocalEngine
from offload.model_host import HostLimits

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "scripts"))
import locks  # noqa: E402 - the project's own scripts are no package
from cache import fetched  # noqa: E402

MODELS = Path(sys.prefix) / "share" / "kith" / "models"
PACKAGE, KINDS = "bfcl-eval", ("simple_python", "multiple")
QUICK, FULL = True, False
SAMPLE = {QUICK: 6, FULL: 60}


def load(kind: str) -> list[Case]:
    """The usable cases of one kind. Raises OSError, RuntimeError or subprocess.SubprocessError without the wheel."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kith" / "data"
    locked = locks.find((ROOT / "requirements-bench.txt").read_text("utf-8"), PACKAGE)
    with zipfile.ZipFile(fetched(locked, "wheel", cache)) as wheel:
        name = f"BFCL_v4_{kind}.json"
        answered = f"bfcl_eval/data/possible_answer/{name}"        # none for what nothing offered can do
        answers = read_answers(wheel.read(answered)) if answered in wheel.namelist() else None
        return read_cases(wheel.read(f"bfcl_eval/data/{name}"), answers).cases


def given(case: Case) -> Case:
    """The case with its right tool as the only one."""
    return Case(
        case_id=case.case_id, kind=case.kind, messages=case.messages, right_tool=case.right_tool,
        accepted=case.accepted, tools=[tool for tool in case.tools if tool.name == case.right_tool])


def chance_of_losing(lost: int, gained: int) -> float:
    """How likely at least so many of the cases that differ are lost when each is as likely gained (a sign test)."""
    differ = lost + gained
    ways: int = sum(math.comb(differ, number) for number in range(lost, differ + 1))
    return ways / math.ldexp(1, differ)


async def measure(report: Report, size: int) -> None:
    """All rows."""
    engine = LocalEngine([MODELS], limits=HostLimits(context_tokens=4096))
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        chooser = PlainChooser(engine, None, may_decline=False)
        token_by_token = PlainChooser(engine, None, may_decline=False, shortcuts=False)
        gained = lost = 0
        for kind in KINDS:
            try:
                cases = await trio.to_thread.run_sync(load, kind)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                print(f"bfcl: {kind} is left out: {error}", file=sys.stderr)
                continue
            chosen = [given(case) for case in stratified_sample(cases, size)]
            begun_s = time.perf_counter()
            choices = [await chooser.choose(case) for case in chosen]
            spent_s = time.perf_counter() - begun_s
            scores = [score_choice(case, choice) for case, choice in zip(chosen, choices, strict=True)]
            where = f"{kind}, {len(chosen)} of {len(cases)} cases, tool given, under the grammar"
            count = len(chosen)
            report.add(f"{where}: valid calls", 100 * sum(one.kind == "call" for one in choices) / count, "%",
                       at_least=100)
            report.add(f"{where}: argument values right", 100 * sum(one.argument_values for one in scores) / count, "%")
            report.add(f"{where}: argument names right", 100 * sum(one.argument_names for one in scores) / count, "%")
            report.add(f"{where}: whole calls right", 100 * sum(one.right for one in scores) / count, "%")
            report.add(f"{where}: tokens a call", sum(one.output_tokens for one in choices) / count, "")
            report.add(f"{where}: time a call", spent_s / count, "s")
            plain = [score_choice(case, await token_by_token.choose(case)) for case in chosen]
            report.add(f"{where}: argument values right without jumping",
                       100 * sum(one.argument_values for one in plain) / count, "%")
            report.add(f"{where}: whole calls right without jumping",
                       100 * sum(one.right for one in plain) / count, "%")
            gained += sum(a.argument_values > b.argument_values for a, b in zip(scores, plain, strict=True))
            lost += sum(a.argument_values < b.argument_values for a, b in zip(scores, plain, strict=True))
        report.add(f"calls with better arguments by jumping {gained}, with worse ones {lost}: chance of so many worse "
                   "by near ties", chance_of_losing(lost, gained), "", at_least=0.05)
        nursery.cancel_scope.cancel()


def main() -> None:
    """Measure and print; the exit code says whether every bound was met."""
    wanted = options("bfcl")
    report = Report("bfcl")
    trio.run(measure, report, SAMPLE[QUICK if wanted.quick else FULL])
    report.print(as_json=wanted.json)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
