"""What the daemon and the engine's worker process say to each other over their pipe.

The worker reads untrusted model files, so what it sends is decoded strictly into these types and nothing else. Must not
know who sends, or how.
"""

import msgspec

from offload.ports import Event, GenerateRequest, Prompt

__all__ = [
    "AdapterFile", "CancelJob", "CannotStart", "Convert", "Converted", "Count", "Counted", "Embed", "Embedded",
    "FileKey", "Forget", "Opening", "Order", "Ping", "Pong", "Ready", "Report", "Rest", "Rested",
    "Score", "Scored", "Serve", "Step", "Submit", "Threads", "Unlock", "decode_opening", "decode_order",
    "decode_report", "encode",
]


class AdapterFile(msgspec.Struct, frozen=True):
    """A LoRA adapter of the model."""

    digest: str
    path: str


class Serve(msgspec.Struct, frozen=True, tag="serve", kw_only=True):
    """Opening: load this model and answer.

    cache_folder is the only writable path, empty for none; its files may take cache_limit_bytes; the names of the
    owner's begin with cache_owners. adapters: those that requests may name, by digest; each is loaded when one does.
    memory_bytes: most private memory, 0 for what the model turns out to need.
    """

    model_path: str
    digest: str
    context_tokens: int
    slots: int
    queue_limit: int
    threads: int
    extra_buffers: bool
    cache_folder: str = ""
    cache_limit_bytes: int = 0
    cache_owners: str = ""
    adapters: list[AdapterFile] = []
    gpu_layers: int = -1
    memory_bytes: int = 0


class Convert(msgspec.Struct, frozen=True, tag="convert"):
    """Opening: write one model in another quantisation, then end. Only the target's folder is writable."""

    source_path: str
    target_path: str
    quantisation: str


class FileKey(msgspec.Struct, frozen=True):
    """The name of a file in the cache folder and the 32 bytes that open it and no other."""

    name: str
    key: bytes


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    """Order: answer this. file_key: for one new file of its principal."""

    request: GenerateRequest
    file_key: FileKey | None = None


class Unlock(msgspec.Struct, frozen=True, tag="unlock"):
    """Order: these files are a principal's; comes before its first request."""

    principal: str
    keys: list[FileKey]


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """Order: remember nothing of this principal, in memory and on disk."""

    principal: str


class Threads(msgspec.Struct, frozen=True, tag="threads"):
    """Order: compute with so many threads from now on."""

    count: int


class Rest(msgspec.Struct, frozen=True, tag="rest"):
    """Order: drop all answers, write what is remembered, say Rested."""


class CancelJob(msgspec.Struct, frozen=True, tag="cancel"):
    """Order: stop this one."""

    request_id: str


class Count(msgspec.Struct, frozen=True, tag="count"):
    """Order: say how many tokens this is."""

    count_id: int
    prompt: Prompt


class Embed(msgspec.Struct, frozen=True, tag="embed"):
    """Order: texts as vectors."""

    embed_id: int
    texts: list[str]


class Score(msgspec.Struct, frozen=True, tag="score"):
    """Order: how likely are these tokens as the answer to this request."""

    score_id: int
    request: GenerateRequest
    token_ids: list[int]


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Order: show that you live."""


class CannotStart(msgspec.Struct, frozen=True, tag="cannot_start"):
    """Report: the opening can't be carried out."""

    code: str
    message: str


class Ready(msgspec.Struct, frozen=True, tag="ready", kw_only=True):
    """Report: the model is loaded. box: layer -> "held" or reason; probe: attempt -> "possible" or the refusal.

    gpu: what is computed on a graphics card, in words.
    """

    context_tokens: int
    threads: int
    backend: str
    description: str
    licence: str
    has_template: bool
    box: dict[str, str]
    probe: dict[str, str]
    gpu: str = ""


class Converted(msgspec.Struct, frozen=True, tag="converted"):
    """Report: the file is written. The box that held meanwhile, as in Ready."""

    box: dict[str, str]


class Step(msgspec.Struct, frozen=True, tag="step"):
    """Report: what one scheduler step brought, as (request id, event)."""

    events: list[tuple[str, Event]]


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """Report: the count, or a code and message."""

    count_id: int
    tokens: int
    code: str = ""
    message: str = ""


class Rested(msgspec.Struct, frozen=True, tag="rested"):
    """Report: what was worth it is on disk."""


class Embedded(msgspec.Struct, frozen=True, tag="embedded"):
    """Report: a vector for each text, or a code and message."""

    embed_id: int
    vectors: list[list[float]] = []
    code: str = ""
    message: str = ""


class Scored(msgspec.Struct, frozen=True, tag="scored"):
    """Report: the log-probability of each token and of the likeliest one in its place, or a code and message."""

    score_id: int
    chosen: list[float] = []
    best: list[float] = []
    code: str = ""
    message: str = ""


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """Report: decodes done since the start, answers at work and waiting."""

    decodes: int
    running: int
    queued: int


Opening = Serve | Convert
Order = Submit | CancelJob | Count | Ping | Unlock | Forget | Rest | Threads | Embed | Score
Report = Ready | CannotStart | Converted | Step | Counted | Pong | Rested | Embedded | Scored

_encoder = msgspec.msgpack.Encoder()
_openings: msgspec.msgpack.Decoder[Opening] = msgspec.msgpack.Decoder(Opening)
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
_reports: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


def encode(frame: Opening | Order | Report) -> bytes:
    """The frame as msgpack."""
    return _encoder.encode(frame)


def decode_opening(payload: bytes) -> Opening:
    """The first frame to a worker. Raises msgspec.DecodeError."""
    return _openings.decode(payload)


def decode_order(payload: bytes) -> Order:
    """Any later frame to a worker. Raises msgspec.DecodeError."""
    return _orders.decode(payload)


def decode_report(payload: bytes) -> Report:
    """A frame from a worker. Raises msgspec.DecodeError."""
    return _reports.decode(payload)
