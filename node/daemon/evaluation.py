"""How well this node's models call tools, for the owner. Implements node.api.ports.Evaluating.

Must not know how a case is chosen or scored.
"""

import msgspec

from node.api.ports import Emit, EvalInput
from node.errors import KithError, ModelMissing
from offload.evaluation.plain_chooser import PlainChooser
from offload.evaluation.report import Scored, add_up
from offload.evaluation.runner import run_cases
from offload.ports import Engine

__all__ = ["Evaluating"]

CHOOSER = "plain: tools in the prompt, one call in JSON under a schema"


class Evaluating:
    """One run at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running = False

    async def run(self, wanted: EvalInput, emit: Emit) -> None:
        """Events: case after each one, then eval with the whole report. Raises KithError, OffloadError."""
        if self._running:
            raise KithError("Another evaluation is running.", hint="Wait for its end.")
        self._running = True
        try:
            await self._run(wanted, emit)
        finally:
            self._running = False

    async def _run(self, wanted: EvalInput, emit: Emit) -> None:
        models = await self._engine.models()
        model = next((one for one in models if wanted.model in (None, one.name, one.digest)), None)
        if model is None:
            raise ModelMissing(f"There is no model called {wanted.model}." if wanted.model else None)

        async def tell(one: Scored) -> None:
            await emit({
                "event": "case", "id": one.case.case_id, "kind": one.case.kind, "chosen": one.choice.kind,
                "name": one.choice.name, "arguments": one.choice.arguments, "text": one.choice.text,
                **msgspec.to_builtins(one.score)})

        chooser = PlainChooser(
            self._engine, model.digest, may_decline=wanted.may_decline, may_ask=wanted.may_ask)
        results = await run_cases(wanted.cases, chooser, tell=tell)
        report = add_up(
            results, model=model.name, digest=model.digest, quantisation=model.quantisation, chooser=CHOOSER)
        await emit({"event": "eval", **msgspec.to_builtins(report)})
