"""The canary self-test: planted values go through this node's own guard towards a peer that does not exist.

Nothing leaves the process: behind the guard stands a pipe, and what comes out of it is searched. Each value is made up
anew, so a hit can only come from here. The search proves itself on the planted text first: a judge that finds nothing
there is no judge. Must not know tools, peers or the network.
"""

import base64
import hashlib
import json
import unicodedata
import urllib.parse
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import trio

from node.clock import Entropy, new_id
from node.daemon.memory_stream import StreamEnd, stream_pair
from node.privacy.consent import ConsentAnswer, ConsentQuestion
from node.privacy.egress import Egress, EgressClearance, Part, PeerView, Purpose
from node.privacy.errors import EgressDenied, HoldsPersonal, HoldsSecret
from node.privacy.labels import Confidentiality, Integrity, Labeled, Value, owner_text
from protocol.errors import ChannelError
from protocol.frames.inference import InferRequest, PromptParts
from protocol.frames.inference import Part as WirePart
from protocol.ids import peer_id_from_public_key
from protocol.names import INFER

__all__ = ["NULL_PEER", "Finding", "SelfTest", "search"]

NULL_PEER = peer_id_from_public_key(hashlib.sha256(b"kith self-test: a peer that does not exist").digest())
_DEADLINE_S = 30.0
_READ_BYTES = 64 * 1024
_SYLLABLES = ("bra", "vel", "kor", "zim", "tul", "nex", "dro", "fen", "gal", "mup")


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the test. state: ok, problem, warning."""

    name: str
    state: str
    text: str
    hint: str = ""


class SelfTest:
    """One per node."""

    def __init__(
        self, egress: Egress, entropy: Entropy, *, own_id: str, known: Callable[[], Awaitable[Sequence[str]]],
        stored: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        """known: some of the owner's own values, as the vault has them. stored(value): while it lasts, this value
        counts as a stored password."""
        self._egress = egress
        self._entropy = entropy
        self._own_id = own_id
        self._known = known
        self._stored = stored

    async def run(self) -> list[Finding]:
        """Every part, each within the deadline."""
        return [
            await self._bounded("self-test: labelled values", self._labelled),
            await self._bounded("self-test: your own contacts", self._vault),
            await self._bounded("self-test: secrets", self._secrets),
            await self._bounded("self-test: questions to peers", self._public),
        ]

    async def _bounded(self, name: str, part: Callable[[], Awaitable[Finding]]) -> Finding:
        with trio.move_on_after(_DEADLINE_S):
            try:
                return await part()
            except (EgressDenied, ChannelError) as error:
                return Finding(name, "problem", f"the guard did not let the test through: {error}", "Run: kith doctor")
        return Finding(name, "problem", f"no answer within {_DEADLINE_S:.0f} s", "Run: kith doctor")

    async def _labelled(self) -> Finding:
        first, last = self._name(), self._name()
        person, mail = f"{first} {last}", f"{first.lower()}@{last.lower()}.example"
        text = Labeled(
            f"Remind {person} ({mail}) of the boat.", Confidentiality.PERSONAL, Integrity.LOCAL, "self-test",
            (Value(person, "PERSON"), Value(mail, "EMAIL")),
        )
        return await self._judge("self-test: labelled values", text, [person, first, last, mail])

    async def _vault(self) -> Finding:
        values = list(await self._known())
        if not values:
            return Finding("self-test: your own contacts", "ok", "there are none to be protected yet")
        text = owner_text(f"Please write a note to {' and '.join(values)} about the boat.")
        return await self._judge("self-test: your own contacts", text, values)

    async def _secrets(self) -> Finding:
        name = "self-test: secrets"
        stored = f"{self._name()} {self._name()}"       # nothing but the store could take this for a secret
        with self._stored(stored):
            for text in (f"the wifi password is {self._name()}-{self._name()}-7", f"log in with {stored} there"):
                for purpose, role in ((Purpose.INFER, "user"), (Purpose.MAIL, "mail")):
                    try:
                        await self._clear(purpose, Part(role, owner_text(text)))
                    except HoldsSecret:
                        continue
                    return Finding(
                        name, "problem", f"a planted password was let through for {purpose}", "Run: kith doctor")
        return Finding(name, "ok", "a planted password is refused: said in a sentence, and as a stored one")

    async def _public(self) -> Finding:
        name = "self-test: questions to peers"
        person = f"{self._name()} {self._name()}"
        text = Labeled(f"train to {person}", Confidentiality.PERSONAL, Integrity.LOCAL, "self-test")
        try:
            await self._clear(Purpose.QUERY, Part("query", text))
        except HoldsPersonal:
            return Finding(name, "ok", "a search that holds a personal value is refused")
        return Finding(name, "problem", "a search with a personal value was let through", "Run: kith doctor")

    # -- through the guard --------------------------------------------------------------------------------------------

    async def _judge(self, name: str, part: Labeled, planted: Sequence[str]) -> Finding:
        if any(not search(part.value.encode(), value) for value in planted):
            return Finding(name, "problem", "the search does not find what was planted: it judges nothing", "")
        wire = await self._send(part)
        left = sum(bool(search(wire, value)) for value in planted)
        if left:
            return Finding(
                name, "problem", f"{left} of {len(planted)} planted values crossed the guard",
                "Let nothing leave: kith mode offline. Then report it with: kith doctor --json",
            )
        text = f"none of {len(planted)} planted values is in the {len(wire)} bytes that would leave"
        return Finding(name, "ok", text)

    async def _send(self, text: Labeled) -> bytes:
        """Every byte that a peer would have got."""
        near, far = stream_pair(INFER, near_sees=NULL_PEER, far_sees=self._own_id)
        request_id, clearance = await self._clear(Purpose.INFER, Part("user", text))
        try:
            request = InferRequest(
                request_id=bytes.fromhex(request_id), prompt=PromptParts((WirePart("user", clearance.texts[0]),)),
                max_tokens=1, deadline_s=1,
            )
            channel = self._egress.channel(near)
            await channel.send_cleared(request, clearance)
            await channel.finish()
            return await _drain(far)
        finally:
            await clearance.close("self-test")

    async def _clear(self, purpose: Purpose, part: Part) -> tuple[str, EgressClearance]:
        request_id = conversation = new_id(self._entropy)
        peer = PeerView(NULL_PEER, "nobody", "friend")
        try:
            clearance = await self._egress.clear(
                peer=peer, purpose=purpose, conversation=conversation, request_id=request_id, parts=(part,),
                ask=_Willing(), why="a test of the guard; nothing leaves this device",
            )
        finally:
            self._egress.forget(conversation)
        return request_id, clearance

    def _name(self) -> str:
        """A made-up name that is in nobody's contacts."""
        return "".join(_SYLLABLES[byte % len(_SYLLABLES)] for byte in self._entropy.bytes(4)).capitalize()


class _Willing:
    """Says yes to everything: the test is about the guard, not about the owner."""

    async def ask(self, question: ConsentQuestion) -> ConsentAnswer:
        return ConsentAnswer(allowed=True, digest=question.digest, by="self-test")


async def _drain(far: StreamEnd) -> bytes:
    received = b""
    while True:
        try:
            received += await far.read(_READ_BYTES, deadline_s=1.0)
        except ChannelError:
            return received


def search(data: bytes, value: str) -> bool:
    """Whether the value stands in the bytes: as it is, in another case, without separators, reversed or encoded."""
    text, plain = data.decode(errors="replace").casefold(), value.casefold()
    squeezed, bare = ("".join(filter(str.isalnum, one)) for one in (text, plain))
    forms = [
        plain, value[::-1].casefold(), unicodedata.normalize("NFD", plain), value.encode().hex(),
        value.lower().encode().hex(), urllib.parse.quote(value).casefold(), json.dumps(value).strip('"').casefold(),
    ]
    if any(form in text for form in forms) or (len(bare) >= 5 and bare in squeezed):
        return True
    if value.encode("utf-16-le").lower() in data.lower():
        return True
    return any(form in data for raw in (value.encode(), value.lower().encode()) for form in _base64_forms(raw))


def _base64_forms(raw: bytes) -> list[bytes]:
    """At each alignment, without the seams."""
    forms = []
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        inner = whole[-(-shift * 8 // 6) : len(whole) - (4 if (shift + len(raw)) % 3 else 0)]
        forms += [inner] if len(inner) >= 6 else []
    return forms
