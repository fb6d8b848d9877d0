"""An upstream engine on another machine as a peer: real guard, real drivers, real TLS to a server of the test's own."""

from contextlib import asynccontextmanager

import pytest
import trio
from guard_bench import Owner as ConsentingOwner
from guard_bench import guard_bench
from memory_channel import ALICE
from scripted_http import ScriptedServer, events, make_certificate, reply

from node.agent.ports import ThinkJob, ThinkPart
from node.daemon.memory_stream import stream_pair
from node.daemon.outside import Outside
from node.daemon.thinker import Thinker
from node.errors import KithError, UnknownPeer
from node.privacy.labels import owner_text
from offload import upstream_http
from offload.upstream import UpstreamSettings
from offload.upstream_errors import OutsideRefused
from protocol.errors import ChannelClosed, ChannelLost, DeadlinePassed
from protocol.names import INFER

NAME = "Dana Whitfield"
HOST = "models.example"


class NoPeers:
    """Nobody is paired."""

    def candidates(self):
        return ()

    async def view(self, peer_id, model_digest):
        return None

    def find(self, name):
        raise UnknownPeer

    def note_refusal(self, peer_id, code):
        raise AssertionError

    started = ended = note_refusal

    def reserved(self, peer_id, seconds):
        raise AssertionError


class Household:
    """A thinker without a model of its own, and the engine elsewhere."""

    def __init__(self, near, server, settings):
        self.near, self.server, self.mode, self.dialled = near, server, "online", []
        self.outside = Outside(
            settings, NoPeers(), self._no_channel, near.egress.channel, lambda: self.mode, ALICE)
        self.thinker = Thinker(
            node_name="phone", engine=None, egress=near.egress, peers=self.outside,
            open_channel=self.outside.open_channel, ask=near.owner, mode=lambda: self.mode, default_model=self._none)
        self.shown = []

    async def _no_channel(self, peer_id, protocol):
        raise AssertionError

    async def _none(self):
        return None

    async def on_text(self, text):
        self.shown.append(text)
        return True

    async def think(self, text=f"Write to {NAME}.", place="auto"):
        part = owner_text(text)
        return await self.thinker.think(ThinkJob(
            job_id="0f" * 16, conversation_id="c1", parts=(ThinkPart("user", part),), on_text=self.on_text,
            max_tokens=64, place=place))

    @property
    def bodies(self):
        return b"".join(asked.body for asked in self.server.asked)

    async def outcomes(self):
        report = await self.near.ledger.verify()
        assert (report.ok, report.open_entries) == (True, 0)
        return [entry.close.outcome for entry in await self.near.ledger.newest(limit=9)]


ANSWER = events(
    {"choices": [{"delta": {"content": "Dear [PERS"}}]}, {"choices": [{"delta": {"content": "ON_1], hello."}}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 5}},
    "[DONE]")


@asynccontextmanager
async def household(tmp_path, monkeypatch, *pieces, allows=True, hang=False, url=f"https://{HOST}"):
    context, trusted = make_certificate(tmp_path, HOST, "10.1.2.3")
    server = ScriptedServer(lambda asked: pieces or (ANSWER,), hang)
    near = await guard_bench([(NAME, "PERSON")], owner=ConsentingOwner(allows=allows))
    home = Household(near, server, UpstreamSettings(url, "vllm", {"big": "qwen-72b"}, ca_file=trusted))

    async def dial(place):
        home.dialled.append(place.host)
        return await trio.open_tcp_stream("127.0.0.1", server.port)

    monkeypatch.setattr(upstream_http, "_dial", dial)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run, context)
        await nursery.start(home.outside.run)
        yield home
        nursery.cancel_scope.cancel()


async def test_it_gets_placeholders_and_the_owner_reads_names(tmp_path, monkeypatch):
    async with household(tmp_path, monkeypatch) as home:
        result = await home.think()
        assert (result.text, result.ran_on) == (f"Dear {NAME}, hello.", HOST)
        assert "".join(home.shown) == result.text
        (asked,) = home.server.asked
        assert NAME.encode() not in asked.body and "[PERSON_1]" in asked.json["messages"][-1]["content"]
        assert asked.json["model"] == "qwen-72b"
        (entry,) = await home.near.ledger.newest(limit=9)
        assert (entry.entry.peer_id, entry.entry.purpose, entry.entry.level) == (
            home.outside.peer_id, "infer", "masked")
        assert entry.close.sent_bytes > 0 and await home.outcomes() == ["answered"]
        assert all(NAME.encode() not in data for _, _, data in home.near.tapped)


async def test_the_check_above_sees_a_name_that_is_not_masked(tmp_path, monkeypatch):
    """Negative control: a name that no record of the owner holds is not known, and is in the bytes."""
    async with household(tmp_path, monkeypatch) as home:
        await home.think("Write to Zoe Unrecorded.")
        assert b"Zoe Unrecorded" in home.bodies


async def test_without_the_owners_yes_nothing_is_dialled(tmp_path, monkeypatch):
    async with household(tmp_path, monkeypatch, allows=False) as home:
        with pytest.raises(KithError):
            await home.think()
        assert (home.dialled, home.server.asked) == ([], [])


async def test_a_secret_never_goes_there(tmp_path, monkeypatch):
    secret = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB\n"
    async with household(tmp_path, monkeypatch) as home:
        with pytest.raises(KithError):
            await home.think(secret)
        assert home.dialled == []


@pytest.mark.parametrize(("mode", "url", "goes"), [
    ("online", f"https://{HOST}", True), ("lan", f"https://{HOST}", False), ("offline", f"https://{HOST}", False),
    ("lan", "https://10.1.2.3", True), ("offline", "https://10.1.2.3", False),
])
async def test_the_mode_decides(tmp_path, monkeypatch, mode, url, goes):
    async with household(tmp_path, monkeypatch, url=url) as home:
        home.mode = mode
        if goes:
            assert (await home.think()).text.startswith("Dear")
        else:
            with pytest.raises(KithError):
                await home.think(place=home.outside.name)
            with pytest.raises(KithError):
                await home.outside.open_channel(home.outside.peer_id, INFER)
            assert (home.dialled, await home.outcomes()) == ([], [])


async def test_a_change_to_offline_cuts_an_answer_off(tmp_path, monkeypatch):
    begun = ANSWER[:ANSWER.index(b'data: {"choices": [{"delta": {}')]
    async with household(tmp_path, monkeypatch, begun, hang=True) as home:
        async with trio.open_nursery() as nursery:
            results = []

            async def ask():
                results.append(await home.think())

            nursery.start_soon(ask)
            with trio.fail_after(30):
                while not home.shown:
                    await trio.sleep(0.01)
                home.mode = "offline"
                await home.server.hung_up.wait()
        (result,) = results             # no local model goes on here, and offline nobody else comes
        assert (result.finish_reason, result.text) == ("broken", f"Dear {NAME}, hello.")
        assert "offline" in result.reason
        (outcome,) = await home.outcomes()
        assert outcome.startswith("broken")


async def test_a_server_that_refuses_is_left_alone_for_a_moment(tmp_path, monkeypatch):
    async with household(tmp_path, monkeypatch, reply({"error": {"message": "full"}}, 503)) as home:
        with pytest.raises(KithError):
            await home.think()
        (own,) = home.outside.candidates()
        assert own.refused_lately and own.in_flight == 0


async def test_nobody_elses_prompt_passes(tmp_path, monkeypatch):
    async with household(tmp_path, monkeypatch) as home:
        someone = "12D3KooWSomeoneElse"
        assert home.outside.grant_for(someone) is None and home.outside.grant_for(ALICE) is not None
        with pytest.raises(OutsideRefused):
            async with home.outside.clear(place=HOST, principal=someone, request_id="1", texts=("hi",)):
                raise AssertionError
        assert home.dialled == []


async def test_it_stands_behind_the_paired_peers_under_its_own_name(tmp_path, monkeypatch):
    async with household(tmp_path, monkeypatch) as home:
        (own,) = home.outside.candidates()
        assert (own.name, own.trust, own.models[0].name) == (HOST, "friend", "big")
        assert home.outside.find(HOST) == own.peer_id
        with pytest.raises(UnknownPeer):
            home.outside.find("someone")
        assert await home.outside.view("12D3KooWOther", None) is None
        assert (await home.think(place=HOST)).ran_on == HOST


async def test_the_stream_in_memory_ends_like_one_to_a_peer(autojump_clock):
    near, far = stream_pair(INFER, near_sees="far", far_sees="near")
    await near.write(b"hello")
    assert (await far.read(3, deadline_s=1), await far.read(9, deadline_s=1)) == (b"hel", b"lo")
    with pytest.raises(DeadlinePassed):
        await far.read(1, deadline_s=1)
    await near.close_write()
    with pytest.raises(ChannelClosed):
        await far.read(1, deadline_s=1)
    with pytest.raises(ChannelClosed):
        await near.write(b"x")
    await far.write(b"back")
    assert await near.read(9, deadline_s=1) == b"back"
    await far.reset()
    for end in (near, far):
        with pytest.raises(ChannelLost):
            await end.read(1, deadline_s=1)
    with pytest.raises(ChannelLost):
        await far.write(b"x")
