"""May this call run? The gate between an agent and its tools: a pure decision over labels, before any tool is touched.

It narrows what may be called at all to the owner's task, and lets nothing consequential run on other people's words, or
out of a context that has read them, without the owner's yes to exactly that call. Rule of two: of untrusted text,
personal data and a consequence, at most two without a human. Labels travel with the values; nothing here looks for a
value in a text. Must not know tools, models, screens or how the owner is asked.
"""

from dataclasses import dataclass
from enum import StrEnum

from node.privacy.labels import Confidentiality, Integrity, Label

__all__ = ["Argument", "Proposal", "Reach", "Reason", "Ruling", "Task", "Verdict", "rule"]


class Reach(StrEnum):
    """What a call can do."""

    READ = "read"                 # looks at what is on this device
    FETCH = "fetch"               # reads, but from elsewhere: what is asked for leaves with the question
    WRITE = "write"               # changes the owner's data, can be taken back
    DESTRUCTIVE = "destructive"   # removes or replaces; cannot be taken back
    SEND = "send"                 # something reaches somebody else, money included

    @property
    def consequential(self) -> bool:
        """Whether it changes anything outside the conversation."""
        return self in (Reach.WRITE, Reach.DESTRUCTIVE, Reach.SEND)

    @property
    def leaves(self) -> bool:
        """Whether its arguments go to somebody else."""
        return self in (Reach.FETCH, Reach.SEND)


class Verdict(StrEnum):
    """What the gate says; the later one wins when several rules speak."""

    RUN = "run"
    CONFIRM = "confirm"   # only after the owner's yes to exactly this call, with the reasons shown
    REFUSE = "refuse"


class Reason(StrEnum):
    """Why a call is not simply run."""

    NOT_IN_TASK = "not_in_task"               # the owner's request is not about this tool
    SECRET_LEAVES = "secret_leaves"           # noqa: S105 - a password, a key, a code would go to somebody else
    FOREIGN_ARGUMENT = "foreign_argument"     # a value comes from a text that is not the owner's
    FOREIGN_CONTEXT = "foreign_context"       # such a text was read before; it may have led here
    PERSONAL_LEAVES = "personal_leaves"       # a personal value would go to somebody else
    RULE_OF_TWO = "rule_of_two"               # untrusted text, personal data and a consequence at once
    CONSEQUENCE = "consequence"               # every write is shown first


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of a call. label: of the value, as it came from where it came from; not of the text around it."""

    name: str
    label: Label


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call that somebody (a skill, a model, a peer) would like to make."""

    tool: str
    reach: Reach
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What the owner's request is about: fixed before anything untrusted is read, and never widened by what is read.

    tools: what may be called for it. Reading what is on this device is always free.
    """

    tools: frozenset[str]

    def covers(self, proposal: Proposal) -> bool:
        """Whether the request is about this call."""
        return proposal.reach is Reach.READ or proposal.tool in self.tools


@dataclass(frozen=True, slots=True)
class Ruling:
    """The gate's word on one proposal. foreign: the arguments that come from other people's words, for the screen."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    foreign: tuple[str, ...] = ()


def rule(proposal: Proposal, task: Task, context: Label) -> Ruling:
    """The ruling on a proposal made for a task in a conversation that has risen to the label `context`.

    Whatever a planner saw may have led it to the call, so a value that it wrote itself carries `context` as its label;
    only a value read in the owner's own words is the owner's.
    """
    reach, arguments = proposal.reach, proposal.arguments
    secret = tuple(one.name for one in arguments if one.label.confidentiality is Confidentiality.SECRET)
    if reach.leaves and secret:
        return Ruling(Verdict.REFUSE, (Reason.SECRET_LEAVES,), ())
    if not task.covers(proposal):
        return Ruling(Verdict.REFUSE, (Reason.NOT_IN_TASK,), ())
    if reach is Reach.READ:
        return Ruling(Verdict.RUN)
    foreign = tuple(one.name for one in arguments if one.label.integrity is Integrity.UNTRUSTED)
    personal = any(one.label.confidentiality is not Confidentiality.PUBLIC for one in arguments)
    tainted = context.integrity is Integrity.UNTRUSTED
    reasons: list[Reason] = []
    if foreign:
        reasons.append(Reason.FOREIGN_ARGUMENT)
    if tainted and reach.consequential:
        holds_personal = personal or context.confidentiality is not Confidentiality.PUBLIC
        reasons.append(Reason.RULE_OF_TWO if holds_personal else Reason.FOREIGN_CONTEXT)
    if reach.leaves and personal:
        reasons.append(Reason.PERSONAL_LEAVES)
    if reach is Reach.FETCH and tainted and context.confidentiality is not Confidentiality.PUBLIC:
        reasons.append(Reason.RULE_OF_TWO)  # which page is asked for can carry what was read
    if reach.consequential:
        reasons.append(Reason.CONSEQUENCE)
    return Ruling(Verdict.CONFIRM if reasons else Verdict.RUN, tuple(reasons), foreign)
