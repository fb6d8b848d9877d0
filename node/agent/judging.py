"""How likely each tool is meant by a request: what was learnt, what readers found, the choice by vectors, the gate.

Must not know conversations, approvals or what becomes of its verdict.
"""

from dataclasses import replace

from node.agent.choice import Choosable, Chooser, Ranking
from node.agent.drafts import ANSWER_IN_WORDS
from node.agent.gate import Verdict
from node.agent.recalling import fill_as_before, learnt_choice, recall
from node.agent.saying import ability
from node.agent.skills.registry import Skills
from node.agent.slots import Reading, SlotReader
from node.agent.tools.registry import Registry
from node.agent.turn import AgentParts, living_choices

__all__ = ["Judging", "choosable"]


class Judging:
    """Judges requests for one owner's tools."""

    def __init__(self, parts: AgentParts) -> None:
        self._parts = parts
        self._chooser = Chooser(choosable(parts.registry, parts.skills), parts.embedder)

    async def judge(self, reader: SlotReader, reading: Reading) -> tuple[Ranking, Verdict]:
        """The tools by how well they fit, and what the gate makes of the best."""
        near = await recall(self._parts.lessons, reading.text)
        evidence: dict[str, float] = {}
        for tool in self._parts.registry:
            filled = reader.fill(tool.spec, reading, await living_choices(tool))
            filled = fill_as_before(near, tool.spec, filled, reading)
            evidence[tool.spec.name] = filled.evidence(tool.spec)
        for skill in self._parts.skills:
            if not skill.claims:
                continue
            name = skill.claims[0]
            evidence[name] = max(evidence.get(name, 0.0), skill.evidence(reading))
        ranking = await self._chooser.choose(reading.text, evidence, learnt_choice(near))
        return ranking, self._parts.gate.judge(ranking)

    def ability(self, name: str) -> str:
        """What the tool does, in words; the skill's for the tool it stands for."""
        if name == ANSWER_IN_WORDS:
            return "answer it in words, with a model"
        tool = self._parts.registry.get(name)
        return ability(tool.spec.description) if tool else name


def choosable(registry: Registry, skills: Skills) -> list[Choosable]:
    """The tools as candidates; a skill's sentences and cues count for the first tool that it takes requests of."""
    found: list[Choosable] = []
    for spec in registry.specs():
        one = Choosable.of(spec)
        for skill in skills:
            if skill.claims[:1] == (spec.name,):
                one = replace(one, examples=(*one.examples, *skill.examples), cues=(*one.cues, *skill.cues))
        found.append(one)
    return found
