"""The local API over its real Unix socket: views, refusals, streams, questions, and what happens when a client
leaves."""

import http.client
import json
import socket
import stat
from functools import partial

import pytest
import trio
from patience import HANG_S

from node.api.app import build_app
from node.api.ports import AskInput, Emit
from node.api.questions import NoSuchQuestion, Questions, TooManyQuestions
from node.api.server import serve_api
from node.api.services import Services
from node.api.views import DoctorView, PeerView, StatusView
from node.cli.client import NodeClient
from node.cli.failure import CommandFailure, NotRunning
from node.errors import UnknownPeer

STATUS = StatusView(
    version="0",
    name="phone",
    peer_id="12D3",
    mode="lan",
    stage="starting network",
    uptime_s=1.0,
    model=None,
    model_state="none",
    addresses=[],
    peers=[],
    queued_messages=0,
    left_today_entries=0,
    left_today_bytes=0,
    kept_back_today=0,
)


class FakeNode:
    stopped = False

    def status(self) -> StatusView:
        return STATUS

    async def doctor(self) -> DoctorView:
        return DoctorView(checks=[])

    async def set_mode(self, mode: str) -> dict[str, object]:
        return {"from": "lan", "to": mode, "text": ""}

    def stop(self) -> None:
        self.stopped = True


class FakeLedger:
    async def entry(self, entry_id: int) -> dict[str, int]:
        return {"entry_id": entry_id}


class FakePeers:
    async def all(self) -> list[PeerView]:
        return []

    async def trust(self, name: str, trust: str) -> PeerView:
        raise UnknownPeer(f"No paired peer is called {name}.")

    async def forget(self, name: str) -> str:
        raise RuntimeError("secret detail that must not be shown")


class FakeAsking:
    """Emits pieces, asks one question, and notes how it ended."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.ended = ""
        self.running = trio.Event()

    async def ask(self, request: AskInput, emit: Emit) -> None:
        try:
            if request.text == "wait for ever":
                await emit({"event": "status", "text": "waiting"})
                self.running.set()
                await trio.sleep_forever()
            reply = await self.questions.ask("approval", {"text": "really?", "values": []}, 5)
            await emit({"event": "answer", "text": repr(reply)})
            self.ended = "answered"
        except trio.Cancelled:
            self.ended = "cancelled"
            raise

    async def undo(self) -> None:
        raise AssertionError


@pytest.fixture
async def api(tmp_path, nursery):
    ids = iter(f"q{n}" for n in range(1000))
    questions = Questions(lambda: next(ids))
    services = Services(node=FakeNode())
    services.asking = FakeAsking(questions)
    services.peers = FakePeers()
    stop = trio.Event()
    path = tmp_path / "node.sock"
    await nursery.start(serve_api, build_app(services, questions), path, stop.wait)
    yield services, questions, path
    stop.set()


async def in_thread(call, *args, **kwargs):
    return await trio.to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


async def test_a_refusal_waits_for_the_rest_of_the_request(api):
    """A reply in the middle of sending would be lost: the client would only see that the node hung up."""
    _, _, path = api
    with pytest.raises(CommandFailure) as caught:  # no part for messages is attached, so nothing reads this body
        await in_thread(NodeClient(path, 10).post, "/v1/messages", {"to": "x", "body": "y" * 2_000_000})
    assert (caught.value.code, caught.value.exit_code) == ("starting", 3)


async def test_the_socket_goes_even_when_the_server_is_cut_off(tmp_path):
    path = tmp_path / "node.sock"
    app = build_app(Services(node=FakeNode()), Questions(lambda: "q"))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_api, app, path, trio.Event().wait)
        assert path.exists()
        nursery.cancel_scope.cancel()
    assert not path.exists()


async def test_status_answers_and_the_socket_is_private(api):
    _, _, path = api
    view = await in_thread(NodeClient(path).get, "/v1/status")
    assert view["name"] == "phone" and view["schema"] == 1 and view["stage"] == "starting network"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_part_that_has_not_started_says_so(api):
    _, _, path = api
    with pytest.raises(CommandFailure) as failure:
        await in_thread(NodeClient(path).get, "/v1/ledger")
    assert failure.value.code == "starting" and failure.value.exit_code == 3


async def test_errors_carry_code_hint_and_exit_code_and_bugs_carry_no_text(api):
    _, _, path = api
    with pytest.raises(CommandFailure) as known:
        await in_thread(NodeClient(path).post, "/v1/peers/bea/trust", {"trust": "home"})
    assert known.value.exit_code == 6 and "bea" in str(known.value) and known.value.hint
    with pytest.raises(CommandFailure) as bug:
        await in_thread(NodeClient(path).delete, "/v1/peers/bea")
    assert bug.value.exit_code == 70 and "secret detail" not in str(bug.value)


@pytest.mark.parametrize("body", ['{"text": 1}', "[1]", "{", '{"text": "x", "unknown": 1}', '"x"'])
async def test_a_malformed_request_is_a_usage_error(api, body):
    _, _, path = api
    status, view = await in_thread(raw_post, path, "/v1/ask", body, "kith")
    assert status == 400 and json.loads(view)["code"] == "usage"


@pytest.mark.parametrize("number", [2**63, 10**30])
async def test_a_number_that_no_row_can_have_is_a_usage_error(api, number):
    services, _, path = api
    services.ledger = FakeLedger()
    with pytest.raises(CommandFailure) as failure:
        await in_thread(NodeClient(path).get, f"/v1/ledger/{number}")
    assert failure.value.code == "usage" and failure.value.exit_code == 2
    assert await in_thread(NodeClient(path).get, f"/v1/ledger/{2**63 - 1}") == {"schema": 1, "entry_id": 2**63 - 1}


async def test_a_client_that_hangs_up_in_its_request_ends_nothing_else(api, caplog):
    _, _, path = api

    def hang_up():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: kith\r\nContent-Length: 100\r\n\r\nhalf")

    for _ in range(20):     # with Hypercorn's own loop, which ends with its first connection that fails, one was enough
        await in_thread(hang_up)
        assert (await in_thread(NodeClient(path).get, "/v1/status"))["name"] == "phone"
    assert not caplog.records


async def test_another_host_name_is_refused(api):
    _, _, path = api
    status, _ = await in_thread(raw_post, path, "/v1/mode", '{"mode": "online"}', "evil.example")
    assert status == 421


async def test_a_question_travels_in_the_stream_and_its_answer_comes_back(api):
    services, _, path = api
    client = NodeClient(path)

    def converse():
        events = []
        for event in client.stream("/v1/ask", {"text": "do it"}):
            events.append(event)
            if event["event"] == "question":
                client.post(f"/v1/questions/{event['id']}", {"allow": True})
        return events

    events = await in_thread(converse)
    assert [event["event"] for event in events] == ["question", "answer"]
    assert events[-1]["text"] == "{'allow': True}" and services.asking.ended == "answered"


async def test_a_client_that_leaves_cancels_its_request(api):
    services, _, path = api

    def leave():
        events = NodeClient(path).stream("/v1/ask", {"text": "wait for ever"})
        next(events)
        events.close()

    await in_thread(leave)
    with trio.fail_after(HANG_S):
        while services.asking.ended != "cancelled":
            await trio.sleep(0.01)


async def test_no_node_is_said_plainly(tmp_path):
    with pytest.raises(NotRunning):
        NodeClient(tmp_path / "nothing.sock").get("/v1/status")


async def test_an_unanswered_question_is_none_at_its_deadline(autojump_clock):
    questions = Questions(lambda: "q")
    assert await questions.ask("consent", {}, 60) is None
    assert trio.current_time() == pytest.approx(60, abs=1)
    with pytest.raises(NoSuchQuestion):
        questions.answer("q", {"allow": True})


async def test_the_first_answer_counts_and_questions_are_bounded(autojump_clock, nursery):
    ids = iter(str(n) for n in range(1000))
    questions = Questions(lambda: next(ids))
    for _ in range(64):
        nursery.start_soon(questions.ask, "consent", {}, 1000)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(TooManyQuestions):
        await questions.ask("consent", {}, 1)
    questions.answer("0", {"allow": False})
    with pytest.raises(NoSuchQuestion):
        questions.answer("0", {"allow": True})
    nursery.cancel_scope.cancel()


def raw_post(path, url, body, host):
    connection = http.client.HTTPConnection(host)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request("POST" if url != "/v1/mode" else "PUT", url, body, {"Connection": "close"})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data
