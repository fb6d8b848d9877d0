"""How well this node's models call tools, for the owner. Implements node.api.ports.Evaluating.

Must not know how a case is chosen or scored.
"""

from collections.abc import Awaitable, Callable

import msgspec

from node.agent.described import DescribedChooser
from node.api.ports import Emit, EvalInput
from node.clock import Clock
from node.daemon.gated_chooser import GatedChooser
from node.daemon.plan_permission import Permissions, figures_of, why_not
from node.errors import KithError, ModelMissing
from offload.evaluation.cases import Case, Loaded, stratified_sample
from offload.evaluation.chooser import Choice, Chooser
from offload.evaluation.errors import BadCases
from offload.evaluation.native_chooser import NativeChooser
from offload.evaluation.plain_chooser import PlainChooser
from offload.evaluation.report import Scored, add_up
from offload.evaluation.runner import run_cases
from offload.evaluation.scoring import score_choice
from offload.ports import Engine

__all__ = ["Evaluating"]

CHOOSER = "plain: tools in the prompt, one call in JSON under a schema"
OWN_FORMAT = "the model's own format, as its template teaches it"
GATED = "this node's vectors choose the tool or none, the model fills it in; "


class Evaluating:
    """One run at a time."""

    def __init__(
        self, engine: Engine, own_cases: Callable[[], Awaitable[Loaded]], *,
        ladder: Callable[[Case], Awaitable[Choice | None]], choosing: DescribedChooser, permissions: Permissions,
        clock: Clock,
    ) -> None:
        """own_cases: out of the owner's history. ladder: what this node's own rules choose for one of those. choosing:
        among tools by their descriptions, for a gated run."""
        self._engine = engine
        self._own_cases = own_cases
        self._ladder = ladder
        self._choosing = choosing
        self._permissions = permissions
        self._clock = clock
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

        cases = list(wanted.cases)
        if wanted.own:
            loaded = await self._own_cases()
            cases += loaded.cases
            for reason, count in loaded.left_out.items():
                await emit({"event": "left_out", "reason": reason, "count": count})
        if wanted.most is not None:
            cases = stratified_sample(cases, wanted.most)
        if not cases:
            raise BadCases("There is no confirmed action yet that makes a case." if wanted.own else "")

        async def tell(one: Scored) -> None:
            await emit({
                "event": "case", "id": one.case.case_id, "kind": one.case.kind, "chosen": one.choice.kind,
                "name": one.choice.name, "arguments": one.choice.arguments, "text": one.choice.text,
                **msgspec.to_builtins(one.score)})

        by_model = (NativeChooser if wanted.own_format else PlainChooser)(
            self._engine, model.digest, may_decline=wanted.may_decline and not wanted.gated, may_ask=wanted.may_ask)
        chooser: Chooser = by_model
        if wanted.gated:
            chooser = GatedChooser(self._choosing, by_model, may_decline=wanted.may_decline)
        results = await run_cases(cases, chooser, tell=tell)
        report = add_up(
            results, model=model.name, digest=model.digest, quantisation=model.quantisation,
            chooser=(GATED if wanted.gated else "") + (OWN_FORMAT if wanted.own_format else CHOOSER))
        ladder = [
            Scored(case, choice, score_choice(case, choice))
            for case in cases if (choice := await self._ladder(case)) is not None
        ]
        figures = figures_of(results, ladder, chooser=report.chooser, clock=self._clock)
        why: str | None = "this run says nothing of the model's own choice of tools"
        if not wanted.gated:
            await self._permissions.keep(model.digest, figures)
            why = why_not(figures)
        planning = {
            "allowed": why is None, "why_not": why or "", "wrong_calls": figures.wrong_calls,
            "compared": figures.compared, "ladder_right": figures.ladder_right, "model_right": figures.model_right,
        }
        await emit({"event": "eval", **msgspec.to_builtins(report), "planning": planning})
