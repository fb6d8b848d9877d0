"""One answer over the death, freezing and return of the machines that write it. Real processes, loopback.

What holds every time: the text that the reader had is the beginning of the whole, the whole is the text of the
conversation, and the last event says who wrote which part. Scenarios S1, S2, S5, S12, S19, S23, S24 and S26 of
docs/reference/scenarios.md.
"""

import contextlib
import hashlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import psutil
import pytest
from embedded_model import models_folder
from running_nodes import FULL, Household, cli, composed, failing, household, rounds, until, workers_of
from seamless_reader import Reader, decodes, frozen, ran_on

from node.cli.demo.nodes import DemoNode
from node.cli.demo.owner import Event

pytestmark = [pytest.mark.e2e, pytest.mark.model]

LONG = "Explain how a sailing boat works in detail"
MEDIUM = "Write a paragraph about bread"
SHORT = "Explain in one sentence what salt is"


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    """Two paired nodes; the home PC counts decodes. Tests leave both running and connected."""
    models_folder()
    with household(home_pc=composed("daemon_counting_decodes.py")) as running:
        yield running


# ------------------------------------------------------------ S2, S23: stalls

@pytest.mark.parametrize("what", ["node", "worker"])
def test_a_frozen_provider_is_left_and_the_answer_goes_on(house: Household, what: str) -> None:
    """The whole node stops, or only its worker while the node goes on beating."""
    house.owner.ask(SHORT, on="home-pc")
    process = psutil.Process(house.home_pc.pid) if what == "node" else workers_of(house.home_pc)[0]
    reader = Reader(house, MEDIUM)
    try:
        answer = reader.read(40, frozen(house, process)).whole()
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):     # a worker that says nothing is replaced by its node
            process.send_signal(signal.SIGCONT)
    assert ran_on(answer) == ["home-pc", "phone"]
    assert "home-pc stopped in mid-answer" in answer["reason"]
    if what == "worker":
        assert "nothing moved for 3 seconds" in answer["reason"]
    assert any("goes on with this answer" in note for note in reader.notes)
    house.wait_connected()


def test_without_anybody_to_go_on_it_is_no_clean_end(house: Household) -> None:
    """The peer that was named dies and is forgotten: what was read stays, and the command fails."""
    def vanish() -> None:
        house.kill(house.home_pc)
        house.phone.client().delete("/v1/peers/home-pc")

    answer = Reader(house, MEDIUM, on="home-pc").read(40, vanish).whole()
    assert answer["kind"] == "stopped"
    assert "nobody could go on" in answer["reason"]
    assert answer["legs"][-1]["ended"]
    house.start(house.home_pc)
    house.home_pc.client().delete("/v1/peers/phone")
    house.pair()


# ------------------------------------------------------------ S1, S19, S26: which machine, which model

def test_a_provider_that_restarts_is_used_again_without_a_word(house: Household) -> None:
    pid = house.phone.pid
    before = len(psutil.Process(pid).net_connections())
    for _ in range(rounds(20, 1)):
        house.home_pc.stop()
        house.wait_apart(house.phone)
        assert house.owner.ask(SHORT)["ran_on"] == "phone"
        house.start(house.home_pc)
        house.wait_connected()
        assert house.owner.ask(SHORT)["ran_on"] == "home-pc"
    assert house.phone.pid == pid
    assert len(psutil.Process(pid).net_connections()) <= before + 2


def test_it_runs_on_exactly_the_chosen_model_or_fails_loudly(house: Household) -> None:
    """The home PC has another file under the name that both have, then one more: the digest is what counts."""
    source = next(models_folder().glob("*.gguf"))
    other = house.home_pc.paths.models_dir / source.name

    def install(padding: int) -> str:
        """Another file to every digest, the same model to llama.cpp."""
        data = source.read_bytes() + bytes(padding)
        other.write_bytes(data)
        restart()
        return hashlib.sha256(data).hexdigest()

    def restart() -> None:
        house.home_pc.stop()
        house.start(house.home_pc)
        house.wait_connected()

    def there(model: str) -> str:
        (leg,) = house.owner.ask(SHORT, on="home-pc", model=model, now=True)["legs"]
        assert leg["ran_on"] == "home-pc"
        return str(leg["digest"])

    try:
        first = install(64)
        assert there(first) == first
        second = install(128)
        assert there(second) == second
        gone = failing(lambda: house.owner.ask(SHORT, on="home-pc", model=first, now=True))
        assert "does not offer" in str(gone)
        assert first in str(gone)
        cloud = failing(lambda: house.owner.ask(SHORT, model="gpt-4o", now=True))
        assert "gpt-4o" in str(cloud)
    finally:
        other.unlink()
        restart()


def test_a_refusal_begins_an_answer_here_and_says_who_wrote_it(house: Household) -> None:
    client = house.home_pc.client()
    client.patch("/v1/peers/phone/grant", {"max_context": 16})
    try:
        answer = house.owner.ask(SHORT)
        assert answer["ran_on"] == "phone"
        assert "home-pc" in answer["reason"]
        assert answer["legs"][0]["model"]
    finally:
        client.patch("/v1/peers/phone/grant", {"max_context": 4096})
        until(lambda: house.owner.ask(SHORT)["ran_on"] == "home-pc", "the grant is wide again")


# ------------------------------------------------------------ S12: more requests than slots

def test_more_requests_than_slots_are_all_answered_once(house: Household) -> None:
    house.home_pc.client().patch("/v1/peers/phone/grant", {"max_concurrency": 16})
    house.wait_connected()
    questions = [f"Explain in one sentence what {thing} is" for thing in (
        "bread", "salt", "water", "iron", "glass", "paper", "cloth", "stone", "wood", "sand")]
    answers: dict[str, Event] = {}

    def ask(question: str) -> None:
        answers[question] = house.owner.ask(question, on="home-pc")

    threads = [threading.Thread(target=ask, args=(question,), daemon=True) for question in questions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert set(answers) == set(questions)
    assert all(answer["text"].strip() and answer["ran_on"] == "home-pc" for answer in answers.values())
    for question in questions:
        turns = house.phone.client().get(f"/v1/conversations/{answers[question]['conversation_id']}")["turns"]
        assert [turn["role"] for turn in turns] == ["user", "assistant"]
        assert (turns[0]["text"], turns[1]["text"]) == (question, answers[question]["text"])
    decodes(house)


# ------------------------------------------------------------ S24: cursors

def test_a_reader_who_leaves_and_returns_gets_each_character_once(house: Household) -> None:
    chance = random.Random("cursors")
    followed: list[str] = []
    done = threading.Event()

    def read_along(request_id: str) -> None:
        text = ""
        while not done.is_set():
            stop_after = chance.randint(1, 8)
            with contextlib.closing(
                house.phone.client().stream(f"/v1/answers/{request_id}/follow", {"from_char": len(text)})
            ) as events:
                for event in events:
                    if event["event"] == "answer":
                        followed.append(text)
                        done.set()
                        return
                    text += event.get("text", "") if event["event"] == "delta" else ""
                    stop_after -= 1
                    if not stop_after:
                        break

    reader = Reader(house, LONG)
    thread: list[threading.Thread] = []

    def begin() -> None:
        thread.append(threading.Thread(target=read_along, args=(reader.request_id,), daemon=True))
        thread[0].start()

    answer = reader.read(20, begin).whole()
    thread[0].join(60)
    assert followed == [answer["text"]]
    late = cli(house.phone, "ask", "--attach", reader.request_id)
    assert late.stdout.strip() == answer["text"].strip()
    nobody = cli(house.phone, "ask", "--attach", "ffff")
    assert (nobody.returncode, "kith history" in nobody.stderr) == (2, True)


@pytest.mark.parametrize("how", ["kill -9", "stop"] if FULL else ["kill -9"])
def test_a_restarted_asker_goes_on_with_its_answer(house: Household, how: str) -> None:
    def end() -> None:
        house.kill(house.phone) if how == "kill -9" else house.phone.stop()

    reader = Reader(house, LONG).read(100, end)
    assert reader.failure is not None
    had = reader.shown
    reader.failure = None
    house.start(house.phone)
    answer = reader.go_on().whole()
    assert len(had) >= 100
    assert answer["text"].startswith(had)
    assert len(answer["text"]) > len(had)
    assert (ran_on(answer)[0], ran_on(answer)[-1]) == ("home-pc", "home-pc")
    assert len(ran_on(answer)) == 2
    assert answer["legs"][0]["ended"] == "this node was stopped"
    house.wait_connected()
    entries = house.phone.client().get("/v1/ledger", limit=4)
    assert [entry["outcome"] for entry in entries if entry["purpose"] == "infer"][:1] == ["answered"]
    house.check_data()


# ------------------------------------------------------------ both directions, and the exact lane

@pytest.mark.skipif(not FULL, reason="the detectors' process takes long to start: KITH_SOAK=full")
@pytest.mark.skipif(find_spec("presidio_analyzer") is None, reason="the extra guard is not installed")
def test_an_answer_that_begins_here_goes_on_at_home(house: Household) -> None:
    """Where nobody has to be asked: the nets are all there, and the owner does not want to see every text."""
    house.phone._env["KITH_PRIVACY_ASK_FIRST"] = "false"
    house.phone.stop()
    house.start(house.phone)
    house.wait_connected()
    process = psutil.Process(house.home_pc.pid)
    process.send_signal(signal.SIGSTOP)
    try:
        house.wait_apart(house.phone)
        answer = Reader(house, LONG).read(20, lambda: process.send_signal(signal.SIGCONT)).whole()
    finally:
        process.send_signal(signal.SIGCONT)
    house.wait_connected()
    house.phone._env["KITH_PRIVACY_ASK_FIRST"] = "true"
    house.phone.stop()
    house.start(house.phone)
    house.wait_connected()
    assert ran_on(answer) == ["phone", "home-pc"]
    assert answer["legs"][0]["ended"] == "handed it over"


def test_the_exact_lane_writes_word_for_word_the_same_over_a_death(house: Household) -> None:
    undisturbed = house.owner.ask(MEDIUM, on="home-pc", exact=True)
    assert undisturbed["exact"]
    answer = Reader(house, MEDIUM, exact=True).read(60, lambda: house.kill(house.home_pc)).whole()
    assert ran_on(answer) == ["home-pc", "phone"]
    assert answer["exact"]
    assert answer["text"] == undisturbed["text"]
    house.start(house.home_pc)
    house.wait_connected()


# ------------------------------------------------------------ S5: consumers that die

@pytest.mark.soak
@pytest.mark.parametrize("part", range(rounds(10, 1)))
def test_a_provider_survives_crashing_consumers_and_computes_nothing_for_them(house: Household, part: int) -> None:
    """100 crashes, ten to a part, so that a failure can be looked at alone."""
    pid = house.home_pc.pid
    chance = random.Random(f"crashes {part}")
    for _ in range(rounds(10, 2)):
        chars = chance.randint(1, 80)
        Reader(house, MEDIUM).read(chars, lambda: house.kill(house.phone))
        house.wait_apart(house.home_pc)
        stopped = decodes(house)
        time.sleep(0.3)
        assert decodes(house) == stopped, "a decode was started for nobody"
        assert house.home_pc.pid == pid
        assert psutil.pid_exists(pid)
        house.start(house.phone)
        house.wait_connected()
        until(lambda: not house.phone.client().get("/v1/answers"), "the answer that was cut off is whole", 120)
    assert house.owner.ask(SHORT, on="home-pc")["ran_on"] == "home-pc"


# ------------------------------------------------------------ everything, at random

@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, rounds(50, 4), 10))
def test_chaos_with_real_processes(house: Household, first: int) -> None:
    """Kill, freeze, cut and restart at random instants; the text is one, and the conversation has it. 50 times, ten to
    a part."""
    for number in range(first, first + rounds(10, 4)):
        chance = random.Random(f"chaos {number}")
        event = chance.choice(sorted(_ONE_EVENT))
        chars = chance.randint(1, 120)
        reader = Reader(house, chance.choice([MEDIUM, MEDIUM, LONG]))
        print(number, event, chars)
        _ONE_EVENT[event](house, reader, chars)
        answer = reader.whole()
        assert answer["kind"] in ("done", "stopped")
        assert answer["legs"][-1]["ended"] == ""
        house.wait_connected()
    house.check_data()


def _kill_provider(house: Household, reader: Reader, chars: int) -> None:
    reader.read(chars, lambda: house.kill(house.home_pc))
    house.start(house.home_pc)


def _stop_provider(house: Household, reader: Reader, chars: int) -> None:
    reader.read(chars, lambda: os.kill(house.home_pc.pid, signal.SIGINT))
    house.home_pc.stop()
    house.start(house.home_pc)


def _freeze(house: Household, reader: Reader, chars: int, process: psutil.Process) -> None:
    try:
        reader.read(chars, frozen(house, process))
    finally:
        process.send_signal(signal.SIGCONT)


def _freeze_provider(house: Household, reader: Reader, chars: int) -> None:
    _freeze(house, reader, chars, psutil.Process(house.home_pc.pid))


def _worker(house: Household, node: DemoNode) -> psutil.Process:
    house.owner.ask(SHORT)      # so that it runs
    return workers_of(node)[0]


def _freeze_worker(house: Household, reader: Reader, chars: int) -> None:
    _freeze(house, reader, chars, _worker(house, house.home_pc))


def _kill_worker(house: Household, reader: Reader, chars: int) -> None:
    worker = _worker(house, house.home_pc)
    reader.read(chars, lambda: worker.send_signal(signal.SIGKILL))


def _kill_asker(house: Household, reader: Reader, chars: int) -> None:
    reader.read(chars, lambda: house.kill(house.phone))
    had, reader.failure = reader.shown, None
    house.start(house.phone)
    reader.go_on()
    assert reader.shown.startswith(had)


_ONE_EVENT: dict[str, Callable[[Household, Reader, int], None]] = {
    "kill provider": _kill_provider, "stop": _stop_provider, "freeze provider": _freeze_provider,
    "freeze worker": _freeze_worker, "kill worker": _kill_worker, "kill asker": _kill_asker,
}
