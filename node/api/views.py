"""What the local API shows, as frozen records that become JSON. Every top-level reply carries "schema": 1.

Must not know how a value came about: the daemon fills these, the routes encode them, the command line prints them.
Times are ISO 8601 in UTC, sizes in bytes, durations in seconds.
"""


import msgspec

__all__ = [
    "AnswerView",
    "CandidateView",
    "Check",
    "CommandError",
    "ConversationView",
    "DoctorView",
    "ExplainView",
    "GrantView",
    "HealthView",
    "InboxMessage",
    "ModelDetail",
    "ModelView",
    "OutboxMessage",
    "PassageView",
    "PeerView",
    "PingView",
    "RefusalView",
    "SearchView",
    "SentView",
    "ShareView",
    "StatusView",
    "TermsView",
    "TurnView",
    "UndoView",
]

SCHEMA = 1


class PeerView(msgspec.Struct, frozen=True, kw_only=True):
    """One paired peer and how it is reached right now."""

    peer_id: str
    name: str
    trust: str
    their_trust: str
    connected: bool
    route: str
    rtt_ms: float | None
    model: str | None
    last_contact: str | None
    waiting_messages: int
    doubt: str = ""
    """Why its answers are not trusted to be its model's, after a spot check; it is then asked by name only."""


class HealthView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the node can do its work. state: starting, untried, ready, no_model, stuck, failing, stopping.

    ready is true in the states ready (a token was produced) and no_model (there is nothing that could produce one).
    """

    schema: int = SCHEMA
    state: str
    ready: bool
    detail: str = ""
    model: str | None = None
    running: int = 0
    queued: int = 0
    last_token_age_s: float | None = None
    turned_away: int = 0
    """Calls from elsewhere that were closed since the start for coming too fast."""


class PingView(msgspec.Struct, frozen=True, kw_only=True):
    """A round trip measured now over the link to a peer, and the way that it took."""

    schema: int = SCHEMA
    peer: str
    peer_id: str
    rtt_ms: float
    route: str
    """lan or direct: a connection with nobody in between. "relayed via NAME": sealed, through that peer."""
    transport: str
    address: str


class RefusalView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a peer asked for and did not get, or not to its end; `at` is the last time."""

    at: str
    service: str
    code: str
    limit: int | None
    text: str
    times: int


class GrantView(msgspec.Struct, frozen=True, kw_only=True):
    """What one peer may do here. state: in force, expired, none. Tokens count per UTC day, prompt and answer."""

    schema: int = SCHEMA
    peer: str
    peer_id: str
    trust: str
    state: str
    services: list[str]
    models: list[str]
    tokens_per_day: int
    max_context: int
    max_concurrency: int
    until: str | None
    epoch: int | None
    hours: str
    """Spans of half hours by the clock of zone; all, none."""
    zone: str
    tokens_today: int
    """Those of the same person's other devices included."""
    counts_with: list[str] = []
    """The same person's other devices."""
    requests_today: int
    running: int
    refusals: list[RefusalView]
    """Since the node started, the newest last."""
    allows_us: list[str] | None
    """What the peer lets this node use, as it last told; None while it is away."""
    allowed_us: "TermsView | None" = None
    """The grant that this node holds from the peer."""


class TermsView(msgspec.Struct, frozen=True, kw_only=True):
    """What a grant says."""

    services: list[str]
    models: list[str]
    tokens_per_day: int
    max_context: int
    max_concurrency: int
    hours: str
    zone: str
    until: str


class CandidateView(msgspec.Struct, frozen=True, kw_only=True):
    """One place where work could run. peer_id null: this device. context_tokens 0: not known."""

    name: str
    peer_id: str | None
    chosen: bool
    able: bool
    reason: str
    model: str | None
    context_tokens: int
    in_flight: int
    """Requests at work there: all of them here, this node's own ones at a peer."""
    refused_lately: str
    rtt_ms: float | None
    quantisation: str = ""
    warm: bool | None = None
    prefix_tokens: int = 0
    """Tokens of the prompt that it has read before and is likely to remember."""
    wait_s: float | None = None
    load_s: float | None = None
    prompt_s: float | None = None
    answer_s: float | None = None
    total_s: float | None = None
    """The predicted finish and its parts (the way there is in total_s, too); null where nothing can be predicted."""
    score_s: float | None = None
    """total_s as it was weighed: a friend's machine, a battery and this device count more."""


class ExplainView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's work would run now. where: here, peer, nowhere. Token numbers are estimates."""

    schema: int = SCHEMA
    mode: str
    prompt_tokens: int
    answer_tokens: int
    context_tokens: int
    where: str
    runs_on: str
    model: str | None
    reason: str
    candidates: list[CandidateView]


class StatusView(msgspec.Struct, frozen=True, kw_only=True):
    """The node on one screen."""

    schema: int = SCHEMA
    version: str
    name: str
    peer_id: str
    mode: str
    stage: str
    uptime_s: float
    model: str | None
    model_state: str
    addresses: list[str]
    peers: list[PeerView]
    queued_messages: int
    left_today_entries: int
    left_today_bytes: int
    kept_back_today: int
    waiting_requests: int = 0
    """Requests in the queue that wait for a better answer, those in undecided_requests among them."""
    undecided_requests: int = 0
    """Of these, those that wait for the owner's word."""
    new_answers: int = 0
    """Better answers that the owner has not looked at."""
    clock_doubt: str = ""
    """Why nothing expires or is removed now: the machine's clock is far from what the node saw of time."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One line of kith doctor: state is ok, warning or problem."""

    name: str
    state: str
    text: str
    hint: str = ""


class DoctorView(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of kith doctor."""

    schema: int = SCHEMA
    checks: list[Check]


class ModelView(msgspec.Struct, frozen=True, kw_only=True):
    """One model this node can run."""

    name: str
    digest: str
    size_bytes: int
    context_tokens: int
    quantisation: str
    licence: str
    loaded: bool
    default: bool
    placeholder_style: str
    broken: str = ""
    """Why it could not be loaded; it is then never the default while there is another."""
    base: str = ""
    """For an adapter, the name of the model that it is for; it is no model of its own then."""


class ModelDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One model with what its file says of itself; empty or 0 where nothing is said."""

    schema: int = SCHEMA
    model: ModelView
    file: str = ""
    source: str = ""
    architecture: str = ""
    title: str = ""
    organisation: str = ""
    parameters: int = 0
    layers: int = 0
    vocabulary: int = 0
    trained_context_tokens: int = 0
    chat_template: bool = False
    template_knows_tools: bool = False
    licence_in_file: str = ""
    gpu: str = ""


class TurnView(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    text: str
    at: str
    ran_on: str = ""
    tools: list[str] = []


class ConversationView(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation and, when asked for one, its turns."""

    conversation_id: str
    created: str
    label: str
    title: str
    turns: list[TurnView] = []


class AnswerView(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that is being written now; chars: how much of it can be read."""

    id: str
    conversation_id: str
    title: str
    begun: str
    chars: int
    ran_on: str


class PassageView(msgspec.Struct, frozen=True, kw_only=True):
    """One search hit with its origin."""

    origin: str
    title: str
    folder: str
    text: str
    score: float


class SearchView(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first, and what was asked of whom."""

    schema: int = SCHEMA
    hits: list[PassageView]
    asked: list[str]
    silent: list[str]
    stayed_local: str = ""


class ShareView(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that named peers may search."""

    folder: str
    peers: list[str]
    documents: int
    withheld: int
    personal_hits: list[str] = []
    confirmed: bool = True
    missing: bool = False
    """The folder is not there any more, so nothing of it is found."""


class SentView(msgspec.Struct, frozen=True, kw_only=True):
    """A message after it was made durable."""

    schema: int = SCHEMA
    message_id: str
    to: str
    state: str


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that arrived."""

    message_id: str
    sender: str
    seq: int
    received: str
    body: str


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way, or over: withheld by the guard, given up with its peer, or expired. Then reason says why in
    words and hint what to do; its body is erased."""

    message_id: str
    to: str
    seq: int
    state: str
    created: str
    body: str
    reason: str = ""
    hint: str = ""


class UndoView(msgspec.Struct, frozen=True, kw_only=True):
    """What kith undo took back."""

    schema: int = SCHEMA
    undone: bool
    text: str


class CommandError(msgspec.Struct, frozen=True, kw_only=True):
    """Any failure: what happened, why, and the next command."""

    schema: int = SCHEMA
    code: str
    message: str
    hint: str
    exit_code: int
