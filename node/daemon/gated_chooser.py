"""A chooser of kith eval that lets code choose: static vectors pick the tool or none, a model only fills in the call.

Shows whether that helps a model or stands in its way, on the same cases as its own choice. Implements
offload.evaluation.chooser.Chooser. Must not know what is right.
"""

import msgspec

from node.agent.described import Described, DescribedChooser
from offload.evaluation.cases import Case
from offload.evaluation.chooser import Choice, Chooser

__all__ = ["GatedChooser"]


class GatedChooser:
    """The described chooser before another one."""

    def __init__(self, choosing: DescribedChooser, filling: Chooser, *, may_decline: bool = True) -> None:
        """filling: gets each case with the chosen tool alone. may_decline: False calls the best tool in any case."""
        self._choosing = choosing
        self._filling = filling
        self._may_decline = may_decline

    async def choose(self, case: Case) -> Choice:
        """One choice. Raises EngineError when the model can't answer, and what the vectors' worker raises."""
        request = "\n".join(text for role, text in case.messages if role == "user")
        offered = [Described.of(tool.name, tool.description, tool.parameters) for tool in case.tools]
        best = await self._choosing.choose(request, offered)
        if best is None or (self._may_decline and not best.called):
            return Choice(kind="none")
        chosen = [tool for tool in case.tools if tool.name == best.name]
        return await self._filling.choose(msgspec.structs.replace(case, tools=chosen[:1]))
