"""Finds out how a model keeps placeholders best: a short set of tasks in brackets, the same with invented names.

From about half a billion parameters up models copy [PERSON_1] as well as a name; smaller ones lose it and keep an
invented name. Nobody can tell from a file which kind it is, so it is tried when the model is added. Must not know
where the outcome is kept.
"""

import logging
from collections.abc import Callable
from typing import Literal

import trio

from node.privacy.placeholders import BRACKETS, SURROGATES, PlaceholderMap, mask
from node.privacy.rehydrate import Restorer
from node.privacy.vault import Vault
from offload.ports import ChatPrompt, Engine, Failed, GenerateRequest, Message, Piece

__all__ = ["TRIAL_DEADLINE_S", "StyleTrial"]

log = logging.getLogger(__name__)

Style = Literal["brackets", "surrogates"]
TRIAL_DEADLINE_S = 120.0
_AT_ONCE = 4
_ANSWER_TOKENS = 48
_VALUES = (
    ("Ottilie Vandersteen", "PERSON"), ("Bram Okonkwo", "PERSON"), ("ottilie@postbox.example", "EMAIL"),
    ("+44 1632 960427", "PHONE"), ("12 Harrier Close, Ludlow", "ADDRESS"),
)
_TASKS = (
    "Write a short e-mail to Ottilie Vandersteen about the meeting on Friday.",
    "Rewrite this politely: Tell Bram Okonkwo to call +44 1632 960427.",
    "Which e-mail address is in this text? Please write to ottilie@postbox.example before Friday.",
    "Summarise in one sentence: Ottilie Vandersteen phoned Bram Okonkwo. They will sell the boat.",
    "List the two people in this text: Ottilie Vandersteen met Bram Okonkwo at the station.",
    "What is the address of the party? The party is at 12 Harrier Close, Ludlow.",
    "Turn this into a question: Bram Okonkwo is coming to dinner.",
    "Write an invitation to dinner for Ottilie Vandersteen at 12 Harrier Close, Ludlow.",
    "Correct the spelling: Bram Okonkwo wil bring the cake to 12 Harrier Close, Ludlow.",
    "Write a reminder for Bram Okonkwo: the rent is due on Monday.",
)


class StyleTrial:
    """Tries models of one engine."""

    def __init__(self, engine: Engine, new_id: Callable[[], str], deadline_s: float = TRIAL_DEADLINE_S) -> None:
        self._engine = engine
        self._new_id = new_id
        self._deadline_s = deadline_s

    async def choose(self, model: str) -> Style | None:
        """The style that this model (name or digest) keeps better, brackets when they are equal.

        None when it could not be told: the model failed, or did not end within the deadline.
        """
        with trio.move_on_after(self._deadline_s):
            brackets = await self._kept(model, BRACKETS)
            surrogates = await self._kept(model, SURROGATES) if brackets is not None else None
            if brackets is None or surrogates is None:
                log.info("the model could not be tried for placeholders: an answer failed")
                return None
            return "surrogates" if surrogates > brackets else "brackets"
        log.info("the model could not be tried for placeholders within %.0f s", self._deadline_s)
        return None

    async def _kept(self, model: str, style: str) -> int | None:
        """How many of the values come back; None when an answer failed."""
        vault = Vault(_VALUES)
        found = 0
        limit = trio.CapacityLimiter(_AT_ONCE)
        failed = False

        async def one(prompt: str) -> None:
            nonlocal found, failed
            tokens = PlaceholderMap(style)
            tokens.reserve(prompt)
            text, replaced = mask(prompt, vault.find(prompt), tokens)
            async with limit:
                answer = await self._answer(model, text)
            if answer is None:
                failed = True
                return
            restored = Restorer(tokens.tokens).restore(answer).casefold()
            found += sum(one.original.casefold() in restored for one in replaced)

        async with trio.open_nursery() as nursery:
            for prompt in _TASKS:
                nursery.start_soon(one, prompt)
        return None if failed else found

    async def _answer(self, model: str, prompt: str) -> str | None:
        request = GenerateRequest(
            request_id=self._new_id(), model=model, prompt=ChatPrompt((Message("user", prompt),)),
            max_tokens=_ANSWER_TOKENS,
        )
        text = ""
        async with self._engine.stream(request) as events:
            async for event in events:
                if isinstance(event, Failed):
                    return None
                if isinstance(event, Piece):
                    text += event.text
        return text
