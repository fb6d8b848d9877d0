"""What inference looks like from outside: requests, events and the Engine port.

The local worker, an upstream server and a peer's engine all answer through this one shape. Everything here also
crosses the pipe to the worker process, so the types are frozen Structs. Must not know llama.cpp, processes or peers.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec

__all__ = [
    "OWNER", "AdapterInfo", "ChatPrompt", "Engine", "EngineHealth", "EngineState", "Event", "Failed", "FinishReason",
    "Finished", "GenerateRequest", "Lane", "Message", "ModelInfo", "OutsideClearance", "OutsideGuard", "PastCall",
    "Piece", "PlaceholderStyle", "Prompt", "Queued", "Reading", "Resumed", "Started", "TextPrompt", "TokenPrompt",
    "ToolCall", "ToolChoice", "ToolOffer", "Usage",
]

_TAG = "type"

OWNER = "owner"
"""The principal of this device's own requests; a peer's is its id."""

Lane = Literal["normal", "exact"]
FinishReason = Literal["stop", "length", "tool_calls", "cancelled", "loop"]
ToolChoice = Literal["auto", "none", "required"]
PlaceholderStyle = Literal["brackets", "surrogates"]
EngineState = Literal["no_model", "idle", "starting", "ready", "restarting", "quarantined", "stopped"]


class PastCall(msgspec.Struct, frozen=True):
    """A call of an earlier turn. arguments: JSON as it was kept; a bad one spoils no later turn."""

    name: str
    arguments: str
    call_id: str = ""


class Message(msgspec.Struct, frozen=True):
    """One turn of a chat; role is system, user, assistant or tool.

    calls, thought: of an assistant's turn. call_id: for a tool's result, the call that it answers.
    """

    role: str
    content: str
    calls: tuple[PastCall, ...] = ()
    call_id: str = ""
    thought: str = ""


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that the model may call. parameters: the JSON schema of an object, as JSON text."""

    name: str
    description: str
    parameters: str


class ChatPrompt(msgspec.Struct, frozen=True, tag_field=_TAG, tag="chat"):
    """Messages, rendered with the model's own chat template. Control tokens written in a content stay plain text."""

    messages: tuple[Message, ...]


class TextPrompt(msgspec.Struct, frozen=True, tag_field=_TAG, tag="text"):
    """Plain text to continue; no template, and control tokens in it stay plain text."""

    text: str


class TokenPrompt(msgspec.Struct, frozen=True, tag_field=_TAG, tag="tokens"):
    """Token ids of exactly the model that is asked (pass its digest as the request's model)."""

    ids: tuple[int, ...]


Prompt = ChatPrompt | TextPrompt | TokenPrompt


class GenerateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that is wanted.

    - request_id: unique among running requests.
    - principal: "owner" or a peer id; cached prompts are shared between requests of one principal only.
    - model: name or sha256 digest; None takes the engine's default.
    - max_tokens: how many new tokens this call may add, text so far not counted.
    - context_limit: a ceiling on prompt plus answer, in tokens, below the engine's own.
    - temperature: 0 is greedy; seed matters above 0.
    - stop: texts that end the answer; they are not part of it.
    - grammar: GBNF with a rule `root`. One that is not recursive is as quick as a schema.
    - schema: a JSON schema, as JSON text; the answer is one JSON text valid under it, keys in its order, written as
      json.dumps writes it. What it forces is not sampled. Not together with grammar.
    - shortcuts: False turns the quick ways off that give the same greedy text but for rounding: forced text read
      instead of sampled, and guesses from the prompt checked several at a time. The exact lane never takes them.
    - lane: "exact" continues token_ids_so_far exactly as the undisturbed answer would have gone on, on the same model
      digest, build and kind of CPU, whatever else runs. Greedy only, slower: no batching, no cached prompt, and the
      ids so far are read again one by one. An engine that can't refuses with the code lane_unsupported.
    - text_so_far: the answer goes on right behind this text.
    - token_ids_so_far: its ids, when the same model wrote it (ignored when their text does not begin with text_so_far;
      text of theirs beyond it is streamed first).
    - tools: what the model may call; only with a ChatPrompt, and not together with grammar or schema. Calls come as
      events and not as text; without parallel_calls the answer ends with the first one.
    - tool_choice: "required" holds the answer to a call, "auto" leaves it to the model (a small one whose template
      knows nothing of tools is held to a call). named_tool: this one is called, whatever tool_choice says.
    - thinking_tokens: how long the model may think before it answers, 0 for not at all. Thoughts are told apart from
      the answer and never part of it; a model that can't think just answers.
    - thought_so_far, calls_so_far: what was told beside text_so_far; the latter only together with its ids.
    - adapter: a LoRA adapter of the model, by name or digest; None for the model as it is.
    """

    request_id: str
    prompt: Prompt
    principal: str = OWNER
    model: str | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 0.95
    seed: int = 0
    stop: tuple[str, ...] = ()
    grammar: str | None = None
    schema: str | None = None
    shortcuts: bool = True
    lane: Lane = "normal"
    text_so_far: str = ""
    token_ids_so_far: tuple[int, ...] = ()
    context_limit: int | None = None
    tools: tuple[ToolOffer, ...] = ()
    tool_choice: ToolChoice = "auto"
    named_tool: str | None = None
    parallel_calls: bool = False
    thinking_tokens: int = 0
    thought_so_far: str = ""
    calls_so_far: int = 0
    adapter: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call: prompt (text so far included), how many of those came from the cache, and new ones."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


class Queued(msgspec.Struct, frozen=True, tag_field=_TAG, tag="queued"):
    """The request waits; position 0 is next. Said again when it moves up. expected_s: until its turn, if known."""

    position: int
    expected_s: float | None = None


class Started(msgspec.Struct, frozen=True, tag_field=_TAG, tag="started"):
    """The request has a slot and its prompt is being read."""

    prompt_tokens: int
    cached_tokens: int
    model_digest: str


class Reading(msgspec.Struct, frozen=True, tag_field=_TAG, tag="reading"):
    """So much of the prompt is read; said a few times a second at most while more is left."""

    prompt_done: int
    prompt_total: int


class Piece(msgspec.Struct, frozen=True, tag_field=_TAG, tag="piece"):
    """New text and the ids sampled for it. Text is always whole characters and never part of a stop text.

    Text can lag behind the ids (half a character, a possible stop text or call), so either may be empty. thought: what
    was thought; it stands before the text.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    thought: str = ""


class ToolCall(msgspec.Struct, frozen=True, tag_field=_TAG, tag="tool_call"):
    """The model calls a tool. Nothing was run, and nothing is trusted: whoever asked decides.

    arguments: a JSON object, with the types of the tool's schema where that was possible. repairs: what had to be put
    right in the model's words; faults: what is still wrong, such as "missing_argument:city".
    """

    name: str
    arguments: str
    repairs: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def repaired(self) -> bool:
        """Whether the model's own words were not quite a call."""
        return bool(self.repairs)


class Resumed(msgspec.Struct, frozen=True, tag_field=_TAG, tag="resumed"):
    """The engine died and was restarted; the same answer goes on from the text so far. Nothing is repeated."""

    reason: str


class Finished(msgspec.Struct, frozen=True, tag_field=_TAG, tag="finished"):
    """The answer is complete; the last event."""

    finish_reason: FinishReason
    usage: Usage
    model_digest: str = ""


class Failed(msgspec.Struct, frozen=True, tag_field=_TAG, tag="failed"):
    """There is no (further) answer; the last event. code is stable (offload.errors), hint is the next command."""

    code: str
    message: str
    hint: str = ""


Event = Queued | Started | Reading | Piece | ToolCall | Resumed | Finished | Failed


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model this engine can serve. digest is the file's sha256 in hex; context_tokens 0 means not yet known.

    broken: why it could not be loaded, in words; it is then not the default while there is another.
    """

    name: str
    digest: str
    size_bytes: int
    context_tokens: int = 0
    licence: str = "unknown"
    quantisation: str = "unknown"
    loaded: bool = False
    placeholder_style: PlaceholderStyle = "brackets"
    broken: str = ""


class AdapterInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A LoRA adapter on this device. base: the digest of the model that it is for. default: the owner's own requests
    to that model use it."""

    name: str
    digest: str
    size_bytes: int
    base: str
    licence: str = "unknown"
    source: str = ""
    default: bool = False


class EngineHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine is.

    box: each layer of the worker's box -> "held" or the reason why it is missing. probe: what the worker tried from
    inside -> "possible" or the refusal. troubles: what is wrong with other models' workers, in words.
    """

    state: EngineState
    detail: str = ""
    model: ModelInfo | None = None
    running: int = 0
    queued: int = 0
    last_token_age_s: float | None = None
    restarts: int = 0
    threads: int = 0
    backend: str = ""
    gpu: str = ""
    box: Mapping[str, str] = {}
    probe: Mapping[str, str] = {}
    troubles: tuple[str, ...] = ()


class Engine(Protocol):
    """Something that answers prompts."""

    def stream(self, request: GenerateRequest) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The events of one answer, ended by Finished or Failed; leaving it cancels. A bad request ends in Failed."""
        ...

    async def models(self) -> list[ModelInfo]:
        """The models that can be asked for, the default first."""
        ...

    async def count_tokens(self, prompt: Prompt, *, model: str | None = None) -> int:
        """How many tokens this prompt takes. Raises offload.errors.EngineError when no model can count."""
        ...

    async def health(self) -> EngineHealth:
        """The present state; never waits for a model to load or a decode to end."""
        ...


class OutsideClearance(Protocol):
    """One request that may leave this machine, in the form in which it may."""

    @property
    def texts(self) -> Sequence[str]:
        """What goes out instead of the texts that were shown, in their order."""
        ...

    def count(self, data: bytes) -> None:
        """Bytes that are about to be sent."""
        ...

    def restore(self, text: str) -> str:
        """A piece of the answer as the owner reads it; may hold some of it back."""
        ...

    def restore_end(self) -> str:
        """What was held back, once the answer is over."""
        ...


class OutsideGuard(Protocol):
    """What a request passes before it goes to an engine on another machine: masking, consent, the ledger."""

    def clear(
        self, *, place: str, principal: str, request_id: str, texts: Sequence[str],
    ) -> AbstractAsyncContextManager[OutsideClearance]:
        """Open while the answer runs; leaving it closes the ledger's entry.

        Raises offload.upstream_errors.OutsideRefused: offline, no consent, a secret, another owner's prompt without a
        grant that says so. Whatever else it raises also means that nothing is sent.
        """
        ...
