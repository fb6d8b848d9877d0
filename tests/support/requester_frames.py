"""Frames of one inference request, and machines that have begun it: what the tests of the asking side share."""

import hashlib
from typing import Any

from frame_samples import DIGEST, ID
from playbook import Playbook

from protocol.inference import (
    Accepted,
    Admitted,
    Begin,
    End,
    InferRequest,
    Part,
    Progress,
    PromptParts,
    RequesterMachine,
    TokenFrame,
    ToolOffer,
)
from protocol.machine import Received, Send

__all__ = ["ACCEPTED", "PROGRESS", "TOOL", "began", "blake", "end", "request", "streaming", "token"]


TOOL = ToolOffer("calendar_free", "d", "{}")
PROGRESS = Progress(ID, "prefill", 0, 1, 2, 0)
ACCEPTED = Accepted(ID, DIGEST, 0)


def request(**changes: Any) -> InferRequest:
    fields: dict[str, Any] = {
        "request_id": ID, "prompt": PromptParts((Part("user", "hi"),)), "max_tokens": 100, "deadline_s": 60,
        "tools": (TOOL,),
    }  # fmt: skip
    return InferRequest(**(fields | changes))


def blake(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def token(seq: int, text: str, all_text: str, *ids: int, tokens: int | None = None) -> TokenFrame:
    return TokenFrame(ID, seq, text, len(ids) if tokens is None else tokens, ids, blake(all_text))


def end(all_text: str, count: int, reason: Any = "stop", digest: str = DIGEST) -> End:
    return End(ID, reason, count, blake(all_text), digest)


def began(**changes: Any) -> Playbook:
    asked = request(**changes)
    return Playbook(RequesterMachine(asked)) >> Begin() << Send(asked)


def streaming(**changes: Any) -> Playbook:
    return began(**changes) >> Received(ACCEPTED) << Admitted(DIGEST, 0)
