"""The agent's own small model: short completions under a grammar on this device. Implements
node.agent.ports.LocalModel.

Nothing given to it leaves the device. Must not know what is completed.
"""

from collections.abc import Callable, Sequence

from node.agent.ports import Message
from node.errors import KithError, ModelMissing
from offload.ports import ChatPrompt, Engine, Failed, GenerateRequest, Piece
from offload.ports import Message as EngineMessage

__all__ = ["OwnModel"]


class OwnModel:
    """Completions of the engine's default model."""

    def __init__(self, engine: Engine, new_id: Callable[[], str]) -> None:
        self._engine = engine
        self._new_id = new_id

    async def complete(
        self, messages: Sequence[Message], *, grammar: str | None, max_tokens: int, stop: Sequence[str] = ()
    ) -> str:
        """The model's text. Raises ModelMissing or KithError when no model can answer."""
        request = GenerateRequest(
            request_id=self._new_id(),
            prompt=ChatPrompt(tuple(EngineMessage(one.role, one.text) for one in messages)),
            max_tokens=max_tokens, grammar=grammar, stop=tuple(stop),
        )
        pieces: list[str] = []
        async with self._engine.stream(request) as events:
            async for event in events:
                match event:
                    case Piece(text):
                        pieces.append(text)
                    case Failed(code="no_model", message=message):
                        raise ModelMissing(message)
                    case Failed(message=message, hint=hint):
                        raise KithError(f"The local model could not answer: {message}", hint=hint or None)
        return "".join(pieces)
