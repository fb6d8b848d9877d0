"""Draft a reply to somebody's last message. The local model words it; nothing is sent.

The message is another person's text: the draft stays untrusted and is only shown. Must not know peers or how a model
runs.
"""

import logging
import re

from node.agent.ports import LocalModel, Message
from node.agent.readers.closed import pick
from node.agent.skills.registry import SkillAsk, SkillCall, SkillOutcome, SkillSay
from node.agent.slots import Reading
from node.agent.tools.messages import Postbox, peer_of
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, public_text

__all__ = ["DraftReply"]

_log = logging.getLogger(__name__)
_ASKED = re.compile(
    r"\b(?:draft|write|suggest|prepare|compose)\s+(?:me\s+)?(?:an?\s+|the\s+)?(?:short\s+|quick\s+|polite\s+)?"
    r"(?:reply|answer|response)\b(?:.*?\b(?:saying|that\s+says|that|and\s+say)\s+(?P<gist>.+))?$",
    re.IGNORECASE | re.DOTALL,
)
MOST_TOKENS = 120
MESSAGE_CHARS = 1500


class DraftReply:
    """The skill over the postbox and this device's own model."""

    name = "draft_reply"
    description = "Draft a reply to the last message of somebody"
    claims: tuple[str, ...] = ()
    examples = ("draft a reply to Dana saying yes", "write a short answer to Robin that I will be there")
    cues: tuple[str, ...] = ()

    def __init__(self, postbox: Postbox, model: LocalModel | None) -> None:
        self._postbox = postbox
        self._model = model

    def takes(self, tool: str, reading: Reading) -> bool:
        """Never in a tool's place."""
        return False

    def sure(self, reading: Reading) -> bool:
        """True when a reply is to be drafted to somebody who is named."""
        return _ASKED.search(reading.text) is not None and bool(reading.people.found or reading.people.unclear)

    def evidence(self, reading: Reading) -> float:
        """None: it is taken when it is sure, or not at all."""
        return 0.0

    async def run(self, call: SkillCall) -> SkillOutcome:
        """The draft, to be changed and sent by the owner."""
        peers = await self._postbox.peers()
        people = call.answers["people"].people if "people" in call.answers else call.reading.people
        named = pick(call.answers["people"].text if "people" in call.answers else call.reading.text, peers)
        sender = next(
            (peer for name in people.names if (peer := peer_of(name, peers))), named.value if named else None
        )
        if sender is None:
            return SkillAsk("people", "To whose message?", tuple(peers[:8]))
        found = await self._postbox.received(limit=1, sender=sender)
        if not found:
            return SkillSay(public_text("There is no message from them to reply to.", source="kith"), "no message")
        if self._model is None:
            return SkillSay(public_text("There is no model on this device that could word a reply.", source="kith"),
                            "no local model")
        match = _ASKED.search(call.reading.text)
        gist = match.group("gist").strip() if match and match.group("gist") else ""
        ask = f"Write a short reply to this message.{f' It says: {gist}' if gist else ''}\n\n" \
              f"Message from {sender}: {found[0].text[:MESSAGE_CHARS]}"
        try:
            draft = await self._model.complete([Message("user", ask)], grammar=None, max_tokens=MOST_TOKENS)
        except Exception as error:  # whatever a model fails with, the owner gets an answer and can write himself
            _log.info("no draft: %s", type(error).__name__)
            return SkillSay(public_text("The model on this device could not word a reply.", source="kith"),
                            "the local model failed")
        hint = f"Send it in your own words with: tell {sender} ..."
        text = f"Draft for {sender} (nothing is sent):\n{draft.strip()}\n\n{hint}"
        return SkillSay(Labeled(text, Confidentiality.PERSONAL, Integrity.UNTRUSTED, "messages",
                                (Value(sender, "PERSON"),)), "worded by the model on this device")
