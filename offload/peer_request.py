"""A peer's request in the words of an engine. Pure. Must not know streams, grants' signatures or engines."""

from offload.ports import ChatPrompt, GenerateRequest, Message, ModelInfo, TokenPrompt
from offload.turns import joined_turns
from protocol.grants import Grant
from protocol.inference import InferRequest, PromptTokens

__all__ = ["engine_request", "estimate_tokens"]


def estimate_tokens(request: InferRequest) -> int:
    """About four characters a token; exact for token ids. The engine's own count decides in the end."""
    if isinstance(request.prompt, PromptTokens):
        return len(request.prompt.token_ids) + len(request.token_ids_so_far)
    chars = sum(len(part.text) for part in request.prompt.parts) + len(request.text_so_far)
    return chars // 4 + 1


def engine_request(request: InferRequest, peer_id: str, model: ModelInfo, grant: Grant) -> GenerateRequest:
    """The same for an engine, in this peer's name and within its grant."""
    prompt: ChatPrompt | TokenPrompt
    if isinstance(request.prompt, PromptTokens):
        prompt = TokenPrompt(request.prompt.token_ids)
    else:
        prompt = ChatPrompt(joined_turns(Message(part.role, part.text) for part in request.prompt.parts))
    return GenerateRequest(
        request_id=f"{peer_id}/{request.request_id.hex()}",
        prompt=prompt,
        principal=peer_id,
        model=model.digest,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed or 0,
        stop=request.stop,
        lane=request.lane,
        text_so_far=request.text_so_far,
        token_ids_so_far=request.token_ids_so_far,
        context_limit=grant.max_context,
    )
