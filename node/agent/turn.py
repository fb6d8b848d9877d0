"""One request under way: what the agent works with, what the turn has done so far, and how it ends.

Shared by the rungs of the ladder (loop, acting, thinking). Must not decide anything.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from node.agent.conversation import Conversation
from node.agent.drafts import Draft
from node.agent.events import EventSink
from node.agent.gate import Gate
from node.agent.lessons import Lessons
from node.agent.plan_port import Planner
from node.agent.ports import (
    Answer,
    AnswerKind,
    Approver,
    AskRequest,
    Clock,
    ConversationStore,
    Embedder,
    Journal,
    Json,
    LocalModel,
    Thinker,
)
from node.agent.readers.windows import Locale
from node.agent.repetition import RepeatedSteps
from node.agent.skills.registry import Skills
from node.agent.slots import SlotReader
from node.agent.tools.registry import ReadTool, Registry, WriteTool
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, public_text

__all__ = ["AgentParts", "AgentSettings", "Said", "Turn", "asked", "living_choices", "personal", "plain"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How this owner's agent behaves."""

    locale: Locale
    node_name: str
    max_steps: int = 8
    approval_deadline_s: float = 120.0
    """How long the approver waits; told to the owner with the question."""


@dataclass(frozen=True, slots=True)
class AgentParts:
    """Everything the agent works with; the daemon puts it together, tests pass memory ones."""

    registry: Registry
    skills: Skills
    embedder: Embedder
    gate: Gate
    names: Callable[[], Awaitable[Sequence[str]]]
    """The address book's names as they are now."""
    thinker: Thinker
    approver: Approver
    journal: Journal
    conversations: ConversationStore
    clock: Clock
    new_id: Callable[[], str]
    model: LocalModel | None = None
    """None: no second reading, rules alone."""
    lessons: Lessons | None = None
    """None: nothing is learnt."""
    planner: Planner | None = None
    """None: no model ever chooses steps."""


@dataclass(slots=True)
class Turn:
    """One request under way."""

    request: AskRequest
    events: EventSink
    conversation: Conversation
    reader: SlotReader
    steps: RepeatedSteps
    node_name: str
    used: list[str] = field(default_factory=list)
    called: Mapping[str, Json] | None = None
    """The call that the answer comes from, for a correction in the next message."""
    instead_of: str = ""
    """The key of an earlier write that this one replaces once it is in place."""
    planned: bool = False
    """A model was asked to plan already; it is asked once a turn."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a turn ends: the labelled text and the answer around it (text, conversation and tools are filled in
    later)."""

    text: Labeled
    answer: Answer


def plain(turn: Turn, text: str, kind: AnswerKind, reason: str) -> Said:
    """An end in the agent's own words, without anything of the owner's in it."""
    answer = Answer(text, kind, turn.node_name, reason, turn.conversation.conversation_id)
    return Said(public_text(text, source="kith"), answer)


def personal(turn: Turn, text: str, kind: AnswerKind, reason: str) -> Said:
    """An end in words that hold something of the owner's data, such as what a tool refused and why."""
    answer = Answer(text, kind, turn.node_name, reason, turn.conversation.conversation_id)
    return Said(Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "kith", ()), answer)


async def asked(turn: Turn, draft: Draft, text: str) -> Said:
    """An end with a question for one slot; the draft waits for the next message. The choices are the owner's data."""
    await turn.conversation.keep_draft(draft.as_json())
    answer = Answer(
        text, AnswerKind.ASKED, turn.node_name, f"{draft.slot} is missing", turn.conversation.conversation_id,
        choices=draft.choices, missing=draft.slot,
    )
    values = tuple(Value(choice, "PRIVATE") for choice in draft.choices)
    return Said(Labeled(text, Confidentiality.PERSONAL, Integrity.LOCAL, "kith", values), answer)


async def living_choices(tool: ReadTool | WriteTool) -> dict[str, tuple[str, ...]]:
    """The values that a tool's closed parameters can take right now."""
    return {
        name: await tool.choices(name) for name, param in tool.spec.params.items()
        if param.reads == "choice" and not param.choices
    }
