"""Every call of a tool passes here before it is made: the task it belongs to, the labels of its values, the ruling.

Puts what the agent knows of a call into the terms of node.privacy.flow, and its rulings into words for the owner. Must
not know how a call came about, nor run it.
"""

from collections.abc import Container, Mapping, Sequence

from node.agent.effects import Origin
from node.agent.readers.phrases import repeats
from node.agent.skills.registry import Skill
from node.agent.tools.registry import Provenance, ToolKind, ToolSpec
from node.privacy.flow import Argument, Proposal, Reach, Reason, Ruling, Task, rule
from node.privacy.labels import Confidentiality, Integrity, Label

__all__ = ["cautions", "check_call", "once_only", "refusal", "task_for"]

_REACH: Mapping[ToolKind, Reach] = {
    "read": Reach.READ, "write": Reach.WRITE, "destructive": Reach.DESTRUCTIVE,
}
_OWN = Label(Confidentiality.PUBLIC, Integrity.OWNER)
_LABELS: Mapping[Origin, Label] = {
    Origin.REQUEST: _OWN, Origin.COPIED: _OWN, Origin.CHOSEN: _OWN,
    Origin.SOURCE: Label(Confidentiality.PERSONAL, Integrity.LOCAL),
    Origin.DEFAULT: Label(Confidentiality.PUBLIC, Integrity.LOCAL),
    Origin.COMPUTED: Label(Confidentiality.PUBLIC, Integrity.LOCAL),
    Origin.UNTRUSTED: Label(Confidentiality.PERSONAL, Integrity.UNTRUSTED),
}
_WORDS: Mapping[Reason, str] = {
    Reason.FOREIGN_CONTEXT: "This conversation has read a text that is not yours; it may have led to this.",
    Reason.RULE_OF_TWO: "This conversation has read a text that is not yours, and data of yours; it may have led to"
                        " this.",
    Reason.PERSONAL_LEAVES: "Data of yours would go to somebody else.",
}
_REFUSED: Mapping[Reason, str] = {
    Reason.NOT_IN_TASK: "your request is not about that",
    Reason.SECRET_LEAVES: "a secret would leave this device",
}


def task_for(name: str, skill: Skill | None = None) -> Task:
    """What a request that was read as this tool's, or this skill's, is about: fixed before anything is read for it."""
    return Task(frozenset({name, *skill.claims} if skill is not None else {name}))


def check_call(
    spec: ToolSpec, args: Container[str], provenance: Mapping[str, Provenance], task: Task, context: Label,
) -> Ruling:
    """The ruling on one call with these arguments. A value whose origin nobody gave is as foreign as the conversation
    is by now; one that is not given at all is nobody's."""
    arguments = tuple(
        Argument(name, _LABELS[provenance[name].origin] if name in provenance else context)
        for name in spec.params if name in args
    )
    reach = Reach.SEND if spec.sends else _REACH[spec.kind]
    return rule(Proposal(spec.name, reach, arguments), task, context)


def cautions(ruling: Ruling) -> tuple[str, ...]:
    """What the owner is told beside the effect that needs a yes."""
    found = [_WORDS[reason] for reason in ruling.reasons if reason in _WORDS]
    if ruling.foreign:
        found.insert(0, f"Not your words: {', '.join(ruling.foreign)}.")
    return tuple(found)


def once_only(spec: ToolSpec, text: str) -> tuple[str, ...]:
    """What the owner is told of a write at a moment whose request asks for it again and again."""
    if spec.kind == "write" and any(one.reads == "moment" for one in spec.params.values()) and repeats(text):
        return ("Nothing is repeated yet: this is for the first time only.",)
    return ()


def refusal(reasons: Sequence[Reason]) -> str:
    """Why a call is not made at all, in words."""
    return "; ".join(_REFUSED.get(reason, reason.value) for reason in reasons)
