"""Finds out how a model keeps placeholders best: the same tasks in brackets and with stand-ins, asked as the node asks.

From about half a billion parameters up models copy [PERSON_1] as well as a name; smaller ones may lose it and keep a
stand-in. Nobody can tell from a file which kind it is, so it is tried when the model is added. An answer counts when,
filled in again, it holds what the task needs, and nothing of a placeholder or a stand-in is left in it. The exact lane
is used: the same model, build and kind of CPU give the same figures. Must not know where the outcome is kept.
"""

import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

import trio

from node.agent.heavy import build_job
from node.agent.ports import AUTO
from node.daemon.style_tasks import TRIAL_VERSION, StyleTask, make_style_tasks
from node.privacy.labels import owner_text
from node.privacy.placeholders import BRACKETS, SURROGATES, PlaceholderMap, mask
from node.privacy.rehydrate import Restorer
from node.privacy.vault import Vault
from offload.ports import ChatPrompt, Engine, Event, Failed, GenerateRequest, Lane, Message, Piece
from offload.turns import joined_turns

__all__ = ["TRIAL_DEADLINE_S", "Streams", "StyleTrial", "TaskFailed", "Verdict", "answer_to", "is_right", "left_in"]

log = logging.getLogger(__name__)

Style = Literal["brackets", "surrogates"]
TRIAL_DEADLINE_S = 240.0
_ANSWER_TOKENS = 64
_LANES: tuple[Lane, ...] = ("exact", "normal")
_FEWEST = 12
"""So many tasks decide when brackets lost nothing in them, or when there is no time for more."""
_LEFT = re.compile(
    r"\[?\b(?:PERSON|EMAIL|PHONE|ADDRESS|PLACE|ORG|NAME|PRIVATE)[\\_\s-]{0,3}\d{1,3}\b"
    r"|\[[A-Z][A-Za-z_ ]{2,20}\d{0,3}\]")
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """tasks: how many were asked in each style; brackets, surrogates: how many of them went well in that style."""

    tasks: int
    brackets: int
    surrogates: int
    version: int = TRIAL_VERSION

    @property
    def style(self) -> Style:
        """The better one; brackets when they are equal."""
        return "surrogates" if self.surrogates > self.brackets else "brackets"


class TaskFailed(Exception):
    """The engine failed: this tells nothing of the model's ways."""


class StyleTrial:
    """Tries models of one engine."""

    def __init__(
        self, engine: Engine, new_id: Callable[[], str], deadline_s: float = TRIAL_DEADLINE_S,
        tasks: Sequence[StyleTask] | None = None,
    ) -> None:
        """tasks: other ones than the fixed ones, for measuring."""
        self._engine = engine
        self._new_id = new_id
        self._deadline_s = deadline_s
        self._tasks = make_style_tasks() if tasks is None else tasks

    async def choose(self, model: str) -> Verdict | None:
        """What came of trying this model (name or digest).

        None when it could not be told: the model failed, or did too little within the deadline.
        """
        went_well = {BRACKETS: 0, SURROGATES: 0}
        done = 0
        with trio.move_on_after(self._deadline_s):
            for task in self._tasks:
                try:
                    both = [await self._went_well(model, task, style) for style in went_well]
                except TaskFailed as failure:
                    log.info("the model could not be tried for placeholders: %s", failure)
                    return None
                done += 1
                for style, well in zip(went_well, both, strict=True):
                    went_well[style] += well
                if went_well[BRACKETS] == done == _FEWEST:
                    break
        if done < min(_FEWEST, len(self._tasks)):
            log.info("the model could not be tried for placeholders within %.0f s", self._deadline_s)
            return None
        return Verdict(done, went_well[BRACKETS], went_well[SURROGATES])

    async def _went_well(self, model: str, task: StyleTask, style: str) -> bool:
        tokens = PlaceholderMap(style)
        text = await answer_to(self._engine, self._new_id, model, task, tokens)
        return is_right(task, text) and not left_in(text, task, tokens.tokens)


class Streams(Protocol):
    """What answering a task needs of an engine."""

    def stream(self, request: GenerateRequest) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """As Engine.stream."""
        ...


async def answer_to(
    engine: Streams, new_id: Callable[[], str], model: str | None, task: StyleTask, tokens: PlaceholderMap | None,
) -> str:
    """The answer to a task as the owner would read it. tokens: a fresh map, or None to ask unmasked.

    Raises TaskFailed.
    """
    messages = [Message(role, text) for role, text in _asked(task, tokens)]
    for lane in _LANES:
        request = GenerateRequest(
            request_id=new_id(), model=model, prompt=ChatPrompt(joined_turns(messages)), max_tokens=_ANSWER_TOKENS,
            lane=lane)
        text = ""
        async with engine.stream(request) as events:
            async for event in events:
                if isinstance(event, Failed):
                    if event.code == "lane_unsupported" and lane == "exact":
                        break
                    raise TaskFailed(event.code)
                if isinstance(event, Piece):
                    text += event.text
            else:
                return text if tokens is None else Restorer(tokens.tokens).restore(text)
    raise TaskFailed("lane_unsupported")


def is_right(task: StyleTask, answer: str) -> bool:
    """Whether a filled in answer holds all that the task needs."""
    low = answer.casefold()
    return all(needed.casefold() in low for needed in task.needed)


def left_in(answer: str, task: StyleTask, tokens: Mapping[str, str]) -> bool:
    """Whether something of a placeholder or a stand-in is still there in an answer that was filled in."""
    if _LEFT.search(answer):
        return True
    own = {word.lower() for word in _WORD.findall(f"{task.request} {task.material} example")}
    given = {word.lower() for token in tokens if not token.startswith("[") for word in _names_in(token)}
    return not (given - own).isdisjoint(word.lower() for word in _WORD.findall(answer))


def _names_in(token: str) -> list[str]:
    """The words of a stand-in that tell it: not "Street" of an address."""
    return _WORD.findall(token.partition(",")[2] if token[:1].isdigit() else token)


def _asked(task: StyleTask, tokens: PlaceholderMap | None) -> list[tuple[str, str]]:
    """Role and text of each part, the way the agent forms a request and the guard masks it."""
    job = build_job(
        job_id="", conversation_id="", text=task.request, history=(),
        material=[("material", owner_text(task.material))] if task.material else (), on_text=_unread, place=AUTO,
        model=None)
    texts: list[tuple[str, str]] = [(part.role, part.text.value) for part in job.parts]
    if tokens is None:
        return texts
    for _, text in texts:
        tokens.reserve(text)
    vault = Vault(task.facts)
    return [(role, mask(text, vault.find(text), tokens)[0]) for role, text in texts]


async def _unread(_: str) -> bool:
    return True
