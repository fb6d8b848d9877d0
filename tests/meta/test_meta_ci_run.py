"""The CI run: every step is run, any failing step fails the whole, and nothing waits for a terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT

STEPS = ["lint", "types", "imports", "test", "demo"]


def run(tree: Path, failing: str) -> tuple[int, list[str], str]:
    """Runs .ci/run in a tree whose `make` and set-up only note that they were called."""
    note = f'echo "$1" >>"{tree}/called"; cat >>"{tree}/called"; [ "$1" != "{failing}" ]'
    (tree / ".ci").mkdir()
    (tree / "scripts").mkdir()
    (tree / "bin").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tree / ".ci" / "run")
    for path, body in ((tree / "bin" / "make", note), (tree / "scripts" / "install", f"set -- install; {note}")):
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}"}
    command = ["bash", str(tree / ".ci" / "run")]
    # an open pipe that nobody writes to: a step that reads standard input would wait for ever
    reader, writer = os.pipe()
    try:
        result = subprocess.run(
            command, env=environment, stdin=reader, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(reader)
        os.close(writer)
    return result.returncode, (tree / "called").read_text().split(), result.stdout


def test_all_steps_run_and_pass(tmp_path: Path) -> None:
    status, called, output = run(tmp_path, failing="none")
    assert (status, called) == (0, ["install", *STEPS])
    assert "FAILED" not in output


@pytest.mark.parametrize("failing", STEPS)
def test_a_failing_step_fails_the_run_and_hides_no_other(tmp_path: Path, failing: str) -> None:
    status, called, output = run(tmp_path, failing)
    assert status != 0
    assert called == ["install", *STEPS]
    assert [line for line in output.splitlines() if line.startswith("FAILED") and failing in line] != []


def test_nothing_runs_after_a_failed_set_up(tmp_path: Path) -> None:
    status, called, _ = run(tmp_path, failing="install")
    assert status != 0
    assert called == ["install"]
