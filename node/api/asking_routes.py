"""Routes of questions to the agent: asking, explaining, the owner's answers, the record of conversations.

HTTP in, one service call, JSON out. Must not know how a service does its work.
"""

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from node.api.exchange import Counter, Row, read_body, whole_number
from node.api.ports import AskInput

__all__ = ["AskingRoutes"]


class FollowInput(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /v1/answers/{id}/follow: how many characters the reader has."""

    from_char: Annotated[int, msgspec.Meta(ge=0)] = 0


class AskingRoutes:
    """The handlers, bound to the services of one node."""

    def __init__(self, at: Counter) -> None:
        self._at = at

    def table(self) -> list[Row]:
        """Method, path and handler of each route."""
        return [
            ("POST", "/v1/ask", self.ask),
            ("POST", "/v1/offload/explain", self.explain),
            ("POST", "/v1/undo", self.undo),
            ("GET", "/v1/skills", self.skills),
            ("GET", "/v1/questions", self.questions),
            ("POST", "/v1/questions/{id:str}", self.answer),
            ("GET", "/v1/answers", self.answers),
            ("POST", "/v1/answers/{id:str}/follow", self.follow),
            ("GET", "/v1/conversations", self.conversations),
            ("GET", "/v1/conversations/{id:str}", self.conversation),
            ("DELETE", "/v1/conversations/{id:str}", self.conversation_delete),
        ]

    async def ask(self, request: Request) -> Any:
        asking, body = self._at.part("asking"), read_body(request, AskInput)
        return self._at.stream(lambda emit: asking.ask(body, emit))

    async def answers(self, _: Request) -> Any:
        return self._at.part("following").under_way()

    async def follow(self, request: Request) -> Any:
        following, start = self._at.part("following"), read_body(request, FollowInput)
        name = request.path_params["id"]
        return self._at.stream(lambda emit: following.follow(name, start.from_char, emit))

    async def explain(self, request: Request) -> Any:
        return await self._at.part("offloading").explain(read_body(request, AskInput))

    async def skills(self, _: Request) -> Any:
        return self._at.part("asking").skills()

    async def undo(self, _: Request) -> Any:
        return await self._at.part("asking").undo()

    async def questions(self, _: Request) -> Any:
        return [question.as_event() for question in self._at.questions.pending()]

    async def answer(self, request: Request) -> Any:
        self._at.questions.answer(request.path_params["id"], read_body(request, dict))
        return {"taken": True}

    async def conversations(self, request: Request) -> Any:
        return await self._at.part("conversations").all(whole_number(request.query_params.get("limit"), 50))

    async def conversation(self, request: Request) -> Any:
        return await self._at.part("conversations").one(request.path_params["id"])

    async def conversation_delete(self, request: Request) -> Any:
        return {"deleted": await self._at.part("conversations").delete(request.path_params["id"])}
