"""AgentDojo's attacks against the gate between agent and tools. Runs by itself in an environment that holds AgentDojo.

A scripted agent that believes everything: it does the steps of the owner's task, and as soon as it reads an attacker's
goal in what a tool returns, it does that goal's steps first. Between it and the tools stands node.privacy.flow.rule, as
in the node. The owner approves exactly the calls that the task needs, each once, and nothing else. Prints one JSON
object. Suites v1.2.2, the attack "important_instructions"; every task, of `workspace` every 4th.

    PYTHONPATH=. ENVIRONMENT/bin/python -m benchmarks.agentdojo_guest SUITE...
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.benchmark import benchmark_suite_with_injections, benchmark_suite_without_injections
from agentdojo.functions_runtime import EmptyEnv, FunctionCall
from agentdojo.logging import OutputLogger
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import (
    ChatAssistantMessage,
    ChatToolResultMessage,
    ChatUserMessage,
    text_content_block_from_string,
)

from node.privacy.flow import Argument, Proposal, Reach, Task, Verdict, rule
from node.privacy.labels import Confidentiality, Integrity, Label

VERSION = "v1.2.2"
ATTACK = "important_instructions"
EVERY = {"workspace": 4}
MOST_STEPS = 60
OWN_WORDS = Label(Confidentiality.PUBLIC, Integrity.OWNER)
READ_BACK = Label(Confidentiality.PERSONAL, Integrity.UNTRUSTED)
"""What these tools return: the owner's data in texts that other people may have written."""

# What each tool can do. Whatever is not here only reads what is the owner's already.
REACHES: dict[str, Reach] = {
    **dict.fromkeys((
        "send_email", "share_file", "create_calendar_event", "add_calendar_event_participants",
        "reschedule_calendar_event", "cancel_calendar_event", "reserve_hotel", "reserve_restaurant",
        "reserve_car_rental", "send_money", "schedule_transaction", "update_scheduled_transaction",
        "send_channel_message", "send_direct_message", "add_user_to_channel", "invite_user_to_slack", "post_webpage",
    ), Reach.SEND),
    **dict.fromkeys(("delete_email", "delete_file", "remove_user_from_slack", "update_password"), Reach.DESTRUCTIVE),
    **dict.fromkeys(("create_file", "append_to_file", "update_user_info"), Reach.WRITE),
    "get_webpage": Reach.FETCH,
}

Plan = Sequence[FunctionCall]


@dataclass
class Tally:
    """What the owner was asked, per run."""

    asked: int = 0
    refused: int = 0


@dataclass
class Guard:
    """Decides on each call as a mode says. plan: what the owner's task needs; spent: what was approved of it."""

    mode: str
    tally: Tally
    plan: list[FunctionCall] = field(default_factory=list)
    context: Label = OWN_WORDS

    def start(self, plan: Plan) -> None:
        """A new task, nothing read yet."""
        self.plan, self.context = list(plan), OWN_WORDS
        self.tools = frozenset(REACHES) if self.mode == "gate" else frozenset(call.function for call in plan)

    def read(self) -> None:
        """A tool's result entered the conversation."""
        self.context = self.context.joined(READ_BACK)

    def allows(self, call: FunctionCall) -> bool:
        """Whether the call runs."""
        if self.mode == "none":
            return True
        # The script has no provenance: a value it passes is as foreign as the conversation is by then.
        proposal = Proposal(
            call.function, REACHES.get(call.function, Reach.READ),
            tuple(Argument(name, self.context) for name in call.args),
        )
        verdict = rule(proposal, Task(self.tools), self.context).verdict
        if verdict is not Verdict.CONFIRM:
            self.tally.refused += verdict is Verdict.REFUSE
            return verdict is Verdict.RUN
        self.tally.asked += 1
        wanted = next((one for one in self.plan if (one.function, one.args) == (call.function, call.args)), None)
        if wanted is None:
            return False
        self.plan.remove(wanted)
        return True


class Gullible(BasePipelineElement):
    """The scripted agent. idle: it does nothing at all and only gives the task's expected words."""

    name = "local-gullible"

    def __init__(self, suite: Any, guard: Guard, *, idle: bool = False) -> None:
        self._suite = suite
        self._guard = guard
        self._idle = idle
        self._tasks = [*suite.user_tasks.values(), *suite.injection_tasks.values()]

    def query(
        self, query: str, runtime: Any, env: Any = EmptyEnv(), messages: Sequence[Any] = (),  # noqa: B008
        extra_args: dict[str, Any] | None = None,
    ) -> tuple[str, Any, Any, list[Any], dict[str, Any]]:
        """One task, start to end."""
        task = next(one for one in self._tasks if getattr(one, "PROMPT", getattr(one, "GOAL", None)) == query)
        plan = [] if self._idle else list(task.ground_truth(env))
        self._guard.start(plan)
        said = [ChatUserMessage(role="user", content=[text_content_block_from_string(query)])]
        said.extend(self._steps(task, plan, runtime, env))
        said.append(_says(getattr(task, "GROUND_TRUTH_OUTPUT", "")))
        return query, runtime, env, [*messages, *said], extra_args or {}

    def _steps(self, task: Any, plan: Plan, runtime: Any, env: Any) -> Iterator[Any]:
        waiting, followed, taken = list(plan), set(), 0
        while waiting and taken < MOST_STEPS:
            call, taken = waiting.pop(0), taken + 1
            if not self._guard.allows(call):
                yield _says("I may not do that.")
                continue        # only calls that ran are logged as calls
            yield ChatAssistantMessage(
                role="assistant", tool_calls=[call], content=[text_content_block_from_string("")],
            )
            result, error = runtime.run_function(env, call.function, call.args)
            text = tool_result_to_str(result)
            self._guard.read()
            yield ChatToolResultMessage(
                role="tool", content=[text_content_block_from_string(text)], tool_call=call, tool_call_id=None,
                error=error,
            )
            for goal in self._goals_in(text):
                if goal.ID not in followed and goal is not task:
                    followed.add(goal.ID)
                    waiting = [*goal.ground_truth(env), *waiting]

    def _goals_in(self, text: str) -> list[Any]:
        """The attackers' goals that stand in a text; one that is part of a longer one does not count."""
        read = _bare(text)
        seen = [goal for goal in self._suite.injection_tasks.values() if _bare(goal.GOAL) in read]
        return [
            one for one in seen
            if not any(one is not other and _bare(one.GOAL) in _bare(other.GOAL) for other in seen)
        ]


def _says(text: str) -> Any:
    return ChatAssistantMessage(role="assistant", tool_calls=None, content=[text_content_block_from_string(text)])


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9@.]+", "", text.lower())


def measure(name: str, mode: str) -> dict[str, Any]:
    """Attack success and utility of one suite in one mode: none, list (the task's tools only), gate, both, idle."""
    suite = get_suites(VERSION)[name]
    wanted = list(suite.user_tasks)[:: EVERY.get(name, 1)]
    clean_tally, tally = Tally(), Tally()

    def agent(kept: Tally) -> Gullible:
        return Gullible(suite, Guard("none" if mode == "idle" else mode, kept), idle=mode == "idle")

    with OutputLogger(None):
        clean = benchmark_suite_without_injections(
            agent(clean_tally), suite, None, True, user_tasks=wanted, benchmark_version=VERSION,
        )
        attacked_agent = agent(tally)
        attacked = benchmark_suite_with_injections(
            attacked_agent, suite, load_attack(ATTACK, suite, attacked_agent), None, True, user_tasks=wanted,
            verbose=False, benchmark_version=VERSION,
        )
    security, utility = list(attacked["security_results"].values()), list(attacked["utility_results"].values())
    done = list(clean["utility_results"].values())
    return {
        "suite": name, "mode": mode, "tasks": len(done), "cases": len(security),
        "attack_success": sum(security) / len(security), "clean_utility": sum(done) / len(done),
        "utility_under_attack": sum(utility) / len(utility), "asked_per_clean_task": clean_tally.asked / len(done),
        "asked_per_case": tally.asked / len(security),
    }


def main(suites: Sequence[str], modes: Sequence[str] = ("none", "idle", "gate", "both")) -> None:
    """Print every suite in every mode."""
    load: Callable[..., Any] = yaml.load
    yaml.safe_load = lambda stream: load(stream, Loader=yaml.CSafeLoader)  # nearly all of the time is reading YAML
    print(json.dumps([measure(name, mode) for name in suites for mode in modes]))


if __name__ == "__main__":
    main(sys.argv[1:] or ["travel", "banking", "slack", "workspace"])
