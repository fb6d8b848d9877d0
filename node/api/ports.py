"""What the API needs of the node, one small port per noun. The daemon passes the real ones; tests pass memory ones.

Services are attached as the node starts, so that status answers while the network is still loading. A route whose
service
is not there yet answers "starting". Must not know libp2p, SQL or how any of this is done.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from node.api.agent_views import SkillView
from node.api.machine_views import WakeView
from node.api.mode_views import ModeView
from node.api.views import (
    AnswerView,
    ConversationView,
    DoctorView,
    ExplainView,
    GrantView,
    HealthView,
    InboxMessage,
    ModelDetail,
    ModelView,
    OutboxMessage,
    PeerView,
    PingView,
    SearchView,
    SentView,
    ShareView,
    StatusView,
    UndoView,
)
from offload.bench import BenchPlan
from offload.evaluation.cases import Case

__all__ = [
    "AskInput",
    "Asking",
    "Attachment",
    "Bench",
    "Conversations",
    "Emit",
    "EvalInput",
    "Evaluating",
    "Following",
    "GrantChange",
    "Granting",
    "Measuring",
    "Messages",
    "Models",
    "NodeControl",
    "Offloading",
    "Pairing",
    "Peers",
    "Searching",
    "Waking",
]

Emit = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Send one event of a running request to whoever asked."""


class Attachment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file or standard input that goes with a request; read by the command line, never by the node."""

    name: str
    text: str


class AskInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of the owner."""

    text: str
    attachments: list[Attachment] = []
    conversation: str | None = None
    on: str | None = None
    local: bool = False
    model: str | None = None
    dry_run: bool = False
    exact: bool = False
    clear: bool = False
    """Let a peer's model have the text without placeholders, this once; the owner is shown it first."""
    later: bool = False
    """Draft it here now and queue it for a better answer, in any case."""
    now: bool = False
    """Fail rather than queue it."""
    hedge: bool = False
    """Ask the two best places at once and take whoever writes first."""
    adapter: str | None = None
    """A LoRA adapter of the model that answers here, by name or digest; the model part then never leaves."""
    key: str | None = None
    """The same key again, while its request is queued or after: that request, and nothing is asked anew."""


class NodeControl(Protocol):
    """The node itself."""

    def status(self) -> StatusView:
        """One screen of state; never waits."""
        ...

    async def health(self, *, probe: bool) -> HealthView:
        """Whether the node can do its work. probe: have a token produced first when there was none yet; bounded."""
        ...

    async def doctor(self) -> DoctorView:
        """All checks, within their own deadlines."""
        ...

    async def confirm_clock(self) -> dict[str, Any]:
        """Take the machine's clock for right, however far it is from what the node saw. Raises Starting."""
        ...

    def mode_now(self) -> ModeView:
        """The mode that was chosen, the one in force, and why. Raises Starting."""
        ...

    async def set_mode(self, mode: str) -> dict[str, Any]:
        """Switch to offline, lan or online; what was closed or opened comes back."""
        ...

    def stop(self) -> None:
        """Begin an ordered shutdown."""
        ...


class Asking(Protocol):
    """Requests to the agent."""

    async def ask(self, request: AskInput, emit: Emit) -> None:
        """Run one request; events go to emit, the last one is "answer" or "error"."""
        ...

    async def undo(self) -> UndoView:
        """Take back the last write."""
        ...

    def skills(self) -> list[SkillView]:
        """What it can do in several steps."""
        ...


class Following(Protocol):
    """Answers that are being written, for those who want to read along."""

    def under_way(self) -> list[AnswerView]:
        """Those that are written now, oldest first."""
        ...

    async def follow(self, name: str, from_char: int, emit: Emit) -> None:
        """One of them from this character on: each character once, in order, then the answer."""
        ...


class Offloading(Protocol):
    """Choosing where work runs."""

    async def explain(self, request: AskInput) -> ExplainView:
        """Where a model's work on this request would run now, and why; nothing is run or sent."""
        ...


class Pairing(Protocol):
    """Joining two nodes."""

    async def open(self, trust: str | None, emit: Emit) -> None:
        """Open a window, show code and link, run until paired, expired or cancelled."""
        ...

    async def join(self, code: str, at: str | None, trust: str | None, emit: Emit) -> None:
        """Answer the other side's code or link."""
        ...


class Peers(Protocol):
    """The people and devices this node trusts."""

    async def all(self) -> list[PeerView]:
        """Every paired peer."""
        ...

    async def ping(self, name: str, timeout_s: float) -> PingView:
        """A round trip to one peer, measured now; an absent peer is called first. Raises PeerUnreachable."""
        ...

    async def trust(self, name: str, trust: str) -> PeerView:
        """Change the trust in one peer; narrower trust cuts what it no longer covers."""
        ...

    async def forget(self, name: str) -> str:
        """Remove a peer, cut its streams; its name comes back."""
        ...


class GrantChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be different in a grant; what is left out stays. until: a date, or a time in ISO 8601. hours: spans of
    half hours by this machine's clock, such as 22:00-07:00,12:00-13:30; all; none. counts_with: another peer of the
    same person, whose tokens count together from now on; "" for none.
    """

    services: list[str] | None = None
    models: list[str] | None = None
    tokens_per_day: int | None = None
    max_context: int | None = None
    max_concurrency: int | None = None
    hours: str | None = None
    until: str | None = None
    counts_with: str | None = None


class Granting(Protocol):
    """What each peer may do here."""

    async def show(self, name: str) -> GrantView:
        """One peer's grant and what was used of it."""
        ...

    async def edit(self, name: str, change: GrantChange) -> GrantView:
        """Replace the grant; what it no longer allows is cut at once."""
        ...

    async def revoke(self, name: str) -> GrantView:
        """Take the grant back; what runs is cut at once."""
        ...


class Models(Protocol):
    """Models on this machine."""

    async def all(self) -> list[ModelView]:
        """Every model file found."""
        ...

    async def info(self, name: str) -> ModelDetail:
        """One model, with what its file says of itself."""
        ...

    async def add(self, source: str, emit: Emit) -> None:
        """Add a file, a folder's files, or one of a peer or a hub; events progress, skipped, added."""
        ...

    async def remove(self, name: str) -> ModelView:
        """Delete one model of kith's own folder."""
        ...

    async def use(self, name: str) -> ModelView:
        """Make one model the default."""
        ...


class EvalInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cases to run through one model. own: also those of the owner's history, `most` of them at most."""

    cases: list[Case] = []
    own: bool = False
    most: int | None = None
    model: str | None = None
    may_decline: bool = True
    may_ask: bool = False
    own_format: bool = False
    """Tools in the model's own template and format, and not one call in JSON under a schema."""
    gated: bool = False
    """This node's vectors choose the tool, or none; the model only fills in the call."""


class Evaluating(Protocol):
    """How well models call tools."""

    async def run(self, wanted: EvalInput, emit: Emit) -> None:
        """Run cases; events case and eval."""
        ...


class Bench(Protocol):
    """The speed of models."""

    async def run(self, plan: BenchPlan, emit: Emit) -> None:
        """Measure; events row and bench."""
        ...


class Waking(Protocol):
    """Machines of peers that sleep."""

    async def wake(self, name: str, *, hardware: str | None, wait_s: float) -> WakeView:
        """Wake one over the local network and wait until it is here."""
        ...


class Measuring(Protocol):
    """The node's figures for a monitoring system."""

    async def text(self) -> bytes:
        """One scrape in Prometheus' text form, version 0.0.4."""
        ...


class Messages(Protocol):
    """Messages between paired nodes."""

    async def send(self, to: str, body: str) -> SentView:
        """Make a message durable and start delivering it."""
        ...

    async def inbox(self, limit: int) -> list[InboxMessage]:
        """Newest first."""
        ...

    async def outbox(self, limit: int) -> list[OutboxMessage]:
        """Newest first, with state."""
        ...


class Searching(Protocol):
    """Search here and at peers, and what this node shares."""

    async def search(self, query: str, limit: int, local: bool) -> SearchView:
        """Ranked passages."""
        ...

    async def preview_share(self, folder: str, peers: list[str]) -> ShareView:
        """What sharing this folder would hand out; nothing is shared yet."""
        ...

    async def share(self, folder: str, peers: list[str]) -> ShareView:
        """Share a folder with named peers."""
        ...

    async def shares(self) -> list[ShareView]:
        """Folders shared now."""
        ...

    async def unshare(self, folder: str) -> str:
        """Stop sharing a folder."""
        ...


class Conversations(Protocol):
    """The owner's conversations with the agent."""

    async def all(self, limit: int) -> list[ConversationView]:
        """Newest first, without turns."""
        ...

    async def one(self, conversation_id: str) -> ConversationView:
        """One conversation with its turns; also by a unique prefix of its id or "last"."""
        ...

    async def delete(self, conversation_id: str) -> str:
        """Erase one conversation from the database."""
        ...
