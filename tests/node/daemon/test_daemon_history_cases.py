"""Cases out of the owner's history: only what was confirmed as shown and kept, with the values that were said."""

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from agent_memory import FixedClock

from node.agent.conversation import Conversation
from node.agent.effects import Approval, Effect, EffectValue, Origin, Span
from node.agent.ports import Answer, AnswerKind
from node.agent.records import StoredConversations, StoredJournal
from node.agent.tools.registry import Param, ToolSpec
from node.api.ports import EvalInput
from node.clock import SystemEntropy
from node.daemon.evaluation import Evaluating
from node.daemon.history_cases import HistoryCases
from node.daemon.plan_permission import Permissions
from node.privacy.labels import Confidentiality, Integrity, Labeled, owner_text
from node.store import conversations
from node.store.database import Database
from node.store.schema import KITH
from offload.evaluation.chooser import Choice
from offload.evaluation.errors import BadCases
from offload.evaluation.scoring import score_choice
from offload.ports import ModelInfo

BERLIN = ZoneInfo("Europe/Berlin")
AT = datetime(2026, 3, 18, 8, 30, tzinfo=UTC)      # a Wednesday, 9:30 in Berlin
SPECS = (
    ToolSpec("calendar_create", "Create an event", {
        "title": Param("what", "text"), "start": Param("when", "moment"), "duration": Param("how long", "minutes"),
        "attendees": Param("who", "names"), "location": Param("where", "text"),
    }, ("title", "start"), (), "write"),
    ToolSpec("notes", "Search notes", {"scope": Param("where", "choice", ("all", "new"))}, (), (), "read"),
)


class Registry:
    def specs(self):
        return SPECS


def effect(key, *, origin=Origin.REQUEST):
    return Effect("calendar_create", "write", "Dentist", (
        EffectValue("title", "dentist", "dentist", origin, "your words", Span(4, 11)),
        EffectValue("start", "2026-03-20T15:00:00+00:00", "Fri 16:00", Origin.REQUEST),
        EffectValue("duration", 30, "30 minutes", Origin.DEFAULT),
        EffectValue("attendees", [{"name": "Bea Long", "email": "b@x.org"}], "Bea Long", Origin.SOURCE),
        EffectValue("end", "2026-03-20T15:30:00+00:00", "Fri 16:30", Origin.COMPUTED),
    ), key)


class History:
    """A real database with talks and writes, a second apart."""

    def __init__(self, database):
        self.database, self.clock = database, FixedClock(AT)
        self.journal = StoredJournal(database, self.clock)
        self.store = StoredConversations(database, self.clock, SystemEntropy())

    async def talk(self, text, *effects, kind=AnswerKind.DONE, conversation=None, chosen=None, applied=True, yes=True):
        talk = await Conversation.open(conversation, self.store, self.clock)
        await talk.heard(owner_text(text))
        self.clock.at += timedelta(seconds=1)
        for one in effects:
            await self.journal.approved(one, Approval(one.idempotency_key, yes, "owner", AT, chosen or {}))
            if applied and yes:
                await self.journal.applied(one.idempotency_key, {"uid": "1"})
        answer = Answer(
            text="Done.", kind=kind, ran_on="here", reason="tool", conversation_id=talk.conversation_id, sources=(),
            tools_used=tuple(one.tool for one in effects))
        self.clock.at += timedelta(seconds=1)
        await talk.said(Labeled("Done.", Confidentiality.PUBLIC, Integrity.OWNER, "agent"), answer)
        self.clock.at += timedelta(seconds=1)
        return talk.conversation_id


@pytest.fixture
async def history(tmp_path):
    database = await Database.open(tmp_path / "kith.db", b"k" * 32, KITH)
    yield History(database)
    await database.close()


async def load(history):
    return await HistoryCases(history.database, Registry(), BERLIN).load()


def call(**arguments):
    return Choice(kind="call", name="calendar_create", arguments=arguments)


async def test_a_confirmed_write_is_a_case(history):
    await history.talk("put dentist with Bea on my calendar on Friday at 4pm", effect("k1"))
    loaded = await load(history)
    (case,) = loaded.cases
    assert loaded.left_out == {} and case.right_tool == "calendar_create" and len(case.tools) == 2
    assert case.messages == [
        ("user", "(It is Wednesday, 2026-03-18T09:30.)\nput dentist with Bea on my calendar on Friday at 4pm")]
    right = {"title": "Dentist", "start": "2026-03-20T16:00", "attendees": ["Bea Long"]}
    assert score_choice(case, call(**right)).right
    assert score_choice(case, call(**right, duration=30)).right
    assert score_choice(case, call(**{**right, "attendees": ["Bea"], "start": "2026-03-20T16:00:00+01:00"})).right
    for wrong in ({"duration": 45}, {"start": "2026-03-20T15:00"}, {"title": "hairdresser"}, {"attendees": ["Ben"]},
                  {"end": "2026-03-20T16:30"}):
        assert not score_choice(case, call(**{**right, **wrong})).right
    assert not score_choice(case, call(title="dentist", start="2026-03-20T16:00")).right    # Bea was named


async def test_what_was_not_confirmed_as_shown_makes_none(history):
    await history.talk("no", effect("k1"), yes=False, kind=AnswerKind.DENIED)
    await history.talk("never done", effect("k2"), applied=False)
    await history.talk("undone", effect("k3"))
    await history.journal.undone("k3")
    await history.talk("chosen", effect("k4"), chosen={"start": "Fri 17:00"})
    loaded = await load(history)
    assert loaded.cases == [] and loaded.left_out == {"another value was chosen while approving": 1}


async def test_a_request_in_two_messages_makes_none(history):
    conversation = await history.talk("put dentist on my calendar", kind=AnswerKind.ASKED)
    await history.talk("Friday at 4pm", effect("k1"), conversation=conversation)
    loaded = await load(history)
    assert loaded.cases == [] and loaded.left_out == {"its request is not in one message": 1}


async def test_a_forgotten_conversation_takes_its_case_along(history):
    conversation = await history.talk("put dentist on my calendar on Friday at 4", effect("k1"))
    await history.database.write(conversations.delete, conversation)
    assert (await load(history)).cases == []


async def never(case):
    return None


async def test_the_node_runs_its_own_cases_and_says_when_there_are_none(history):
    events = []

    class Engine:
        async def models(self):
            return [ModelInfo(name="m", digest="d", size_bytes=1)]

    async def emit(event):
        events.append(event)

    evaluating = Evaluating(
        Engine(), HistoryCases(history.database, Registry(), BERLIN).load, ladder=never, choosing=None,
        permissions=Permissions(history.database), clock=history.clock)
    with pytest.raises(BadCases, match="no confirmed action"):
        await evaluating.run(EvalInput(own=True), emit)
    assert json.dumps(events) == "[]"
