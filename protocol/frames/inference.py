"""Frames of /kith/infer/1: one request per stream, answered by tokens, tool calls, and an explicit End, Refused or
ErrorFrame.

Output frames (TokenFrame, ToolCallFrame) share one sequence number that starts at the request's resume_cursor. Token
digests are blake2b-16 over the UTF-8 of all text so far, text_so_far included; a thought is no text and not in them. A
GBNF grammar never crosses: the provider builds its own from the tools.
"""

from typing import Annotated, Literal

from msgspec import Meta

from protocol import limits
from protocol.fields import CallId, Digest16, Frame, Id16, ModelDigest, ModelName, Seq, TokenId, ToolName, UInt32

__all__ = [
    "Accepted", "Cancel", "End", "ErrorCode", "ErrorFrame", "FinishReason", "InferFrame", "InferRequest", "Lane",
    "Part", "PastCall", "Progress",
    "ProgressState", "PromptParts", "PromptTokens", "RefusalCode", "Refused", "Role", "TokenFrame", "ToolCallFrame",
    "ToolChoice", "ToolOffer", "Usage",
]

Lane = Literal["normal", "exact"]
Role = Literal["system", "user", "assistant", "tool"]
ProgressState = Literal["queued", "loading", "prefill", "decoding"]
ToolChoice = Literal["auto", "none", "required"]
FinishReason = Literal["stop", "length", "tool_calls", "loop", "cancelled"]
RefusalCode = Literal[
    "not_granted", "grant_expired", "quota", "busy", "model_absent", "context_too_long", "lane_unsupported",
    "tools_unsupported", "resume_unsupported", "offline", "shutting_down", "bad_request", "outside_hours",
]
ErrorCode = Literal[
    "engine_failed", "engine_restarting", "deadline", "out_of_memory", "quota", "revoked", "shutting_down", "internal",
    "cancelled", "grant_expired", "outside_hours", "narrowed",
]

StopString = Annotated[str, Meta(min_length=1, max_length=limits.MAX_STOP_CHARS)]
Thought = Annotated[str, Meta(max_length=limits.MAX_TEXT_BYTES)]
OutputCount = Annotated[int, Meta(ge=0, le=limits.MAX_OUTPUT_TOKENS)]


class PastCall(Frame, frozen=True):
    """A call of an earlier turn, as the model made it: its arguments need not be sound."""

    name: ToolName
    arguments_json: Annotated[str, Meta(max_length=limits.MAX_TOOL_ARGUMENT_CHARS)]
    call_id: CallId = ""


class Part(Frame, frozen=True):
    """One message of the prompt. calls, thought: of an assistant's turn; call_id: for a result, the call it answers."""

    role: Role
    text: Annotated[str, Meta(max_length=limits.MAX_PROMPT_CHARS)]
    calls: Annotated[tuple[PastCall, ...], Meta(max_length=limits.MAX_TOOL_CALLS)] = ()
    call_id: CallId = ""
    thought: Thought = ""


class PromptParts(Frame, frozen=True, tag=1):
    """A prompt as messages; the provider applies its model's template."""

    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=limits.MAX_PROMPT_PARTS)]


class PromptTokens(Frame, frozen=True, tag=2):
    """A prompt as token ids of exactly the model named by model_digest. Opaque to a text scan."""

    token_ids: Annotated[tuple[TokenId, ...], Meta(min_length=1, max_length=limits.MAX_PROMPT_TOKEN_IDS)]


class ToolOffer(Frame, frozen=True):
    """A tool that the model may propose to call. It is decided and run at the requester, never at the provider."""

    name: ToolName
    description: Annotated[str, Meta(max_length=limits.MAX_TOOL_DESCRIPTION_CHARS)]
    params_json: Annotated[str, Meta(max_length=limits.MAX_TOOL_SCHEMA_CHARS)]


class InferRequest(Frame, frozen=True, tag=1, kw_only=True):
    """Asks for one answer. Token ids (prompt or so far) need model_digest: another model would read other words.

    named_tool: this one is to be called, whatever tool_choice says. thinking_tokens: how long the model may think
    before it answers, 0 for not at all. thought_so_far, calls_so_far: what has been delivered beside text_so_far.
    """

    request_id: Id16
    lane: Lane = "normal"
    model_digest: ModelDigest | None = None
    model_name: ModelName | None = None
    prompt: PromptParts | PromptTokens
    text_so_far: Annotated[str, Meta(max_length=limits.MAX_TEXT_BYTES)] = ""
    token_ids_so_far: Annotated[tuple[TokenId, ...], Meta(max_length=limits.MAX_PROMPT_TOKEN_IDS)] = ()
    resume_cursor: Seq = 0
    max_tokens: Annotated[int, Meta(ge=1, le=limits.MAX_OUTPUT_TOKENS)]
    temperature: Annotated[float, Meta(ge=0.0, le=limits.MAX_TEMPERATURE)] = 0.0
    seed: UInt32 | None = None
    stop: Annotated[tuple[StopString, ...], Meta(max_length=limits.MAX_STOP_STRINGS)] = ()
    tools: Annotated[tuple[ToolOffer, ...], Meta(max_length=limits.MAX_TOOLS)] = ()
    deadline_s: Annotated[int, Meta(ge=1, le=limits.MAX_DEADLINE_S)]
    prefix_key: Id16 | None = None
    tool_choice: ToolChoice = "auto"
    named_tool: ToolName | None = None
    parallel_calls: bool = False
    thinking_tokens: OutputCount = 0
    thought_so_far: Thought = ""
    calls_so_far: Annotated[int, Meta(ge=0, le=limits.MAX_TOOL_CALLS)] = 0

    def __post_init__(self) -> None:
        has_token_ids = isinstance(self.prompt, PromptTokens) or bool(self.token_ids_so_far)
        if self.model_digest is None and (has_token_ids or self.lane == "exact"):
            raise ValueError("token ids and the exact lane need a model digest")
        so_far = self.text_so_far or self.token_ids_so_far or self.thought_so_far or self.calls_so_far
        if self.resume_cursor == 0 and so_far:
            raise ValueError("text so far needs a resume cursor")
        if max(len(self.text_so_far.encode()), len(self.thought_so_far.encode())) > limits.MAX_TEXT_BYTES:
            raise ValueError("text so far is too long")
        self._check_tools()

    def _check_tools(self) -> None:
        if len({tool.name for tool in self.tools}) != len(self.tools):
            raise ValueError("two tools of one name")
        if self.tools and isinstance(self.prompt, PromptTokens):
            raise ValueError("tools need a prompt of messages")
        if self.named_tool is not None and self.named_tool not in {tool.name for tool in self.tools}:
            raise ValueError("the named tool is not offered")
        if self.calls_so_far and not self.token_ids_so_far:
            raise ValueError("calls so far need token ids")


class Accepted(Frame, frozen=True, tag=2):
    """The request was admitted, to be computed by exactly this model. Position 0 = running."""

    request_id: Id16
    model_digest: ModelDigest
    queue_position: UInt32


class Refused(Frame, frozen=True, tag=3):
    """The request is not served. `limit` is the bound that it broke (tokens, requests), where there is one;
    `resets_in_s` when asking again can help, where that is known.
    """

    request_id: Id16
    code: RefusalCode
    limit: Seq | None
    resets_in_s: UInt32 | None = None


class Progress(Frame, frozen=True, tag=4):
    """Still at it: sent at least once a second while no output flows. expected_s: until its turn comes, while it is
    queued and where that is known."""

    request_id: Id16
    state: ProgressState
    queue_position: UInt32
    prompt_done: UInt32
    prompt_total: UInt32
    output_tokens: UInt32
    expected_s: UInt32 | None = None


class TokenFrame(Frame, frozen=True, tag=5):
    """Newly decided text, and what was thought before it. `tokens` counts the tokens that both stand for; token_ids
    lists them, or is empty where an engine hides them.
    """

    request_id: Id16
    seq: Seq
    text: Annotated[str, Meta(max_length=limits.MAX_TOKEN_TEXT_CHARS)]
    tokens: Annotated[int, Meta(ge=0, le=limits.MAX_TOKENS_PER_FRAME)]
    token_ids: Annotated[tuple[TokenId, ...], Meta(max_length=limits.MAX_TOKENS_PER_FRAME)]
    digest: Digest16
    thought: Annotated[str, Meta(max_length=limits.MAX_TOKEN_TEXT_CHARS)] = ""

    def __post_init__(self) -> None:
        if self.token_ids and len(self.token_ids) != self.tokens:
            raise ValueError("token ids do not match their count")
        if not self.text and not self.tokens and not self.thought:
            raise ValueError("a token frame without text and tokens")


class ToolCallFrame(Frame, frozen=True, tag=6):
    """The model proposes a tool call; the requester validates and decides it. repaired: it was not quite a call as the
    model wrote it.
    """

    request_id: Id16
    seq: Seq
    name: ToolName
    arguments_json: Annotated[str, Meta(max_length=limits.MAX_TOOL_ARGUMENT_CHARS)]
    repaired: bool = False


class Usage(Frame, frozen=True, tag=7):
    """What the answer cost; at most once, before End."""

    request_id: Id16
    prompt_tokens: UInt32
    cached_tokens: UInt32
    output_tokens: UInt32


class End(Frame, frozen=True, tag=8):
    """The only successful end. token_count and digest must equal what the requester counted itself."""

    request_id: Id16
    finish_reason: FinishReason
    token_count: OutputCount
    digest: Digest16
    model_digest: ModelDigest


class Cancel(Frame, frozen=True, tag=9):
    """The requester no longer wants the answer. Allowed at any time; answered by End(cancelled) or ErrorFrame, or
    crossed by End.
    """

    request_id: Id16


class ErrorFrame(Frame, frozen=True, tag=10):
    """The answer broke off at the provider; what came before stays valid and can be resumed elsewhere. limit and
    resets_in_s as in Refused.
    """

    request_id: Id16
    code: ErrorCode
    limit: Seq | None = None
    resets_in_s: UInt32 | None = None


InferFrame = (
    InferRequest | Accepted | Refused | Progress | TokenFrame | ToolCallFrame | Usage | End | Cancel | ErrorFrame
)
