"""Failures as a user meets them: every error of inference has its code, text, next step and exit code."""

import importlib

import msgspec
import pytest

from node.agent.tools import errors as tool_errors
from node.api.exchange import whole_number
from node.api.failures import INFERENCE_EXIT, UsageFault, describe_failure
from node.api.mail_routes import SearchInput
from offload.errors import NoModel, OffloadError
from offload.model_errors import HubUnreachable, NoRoom
from offload.upstream_errors import OutsideRefused, UpstreamRefused

TREES = ("offload.errors", "offload.model_errors", "offload.upstream_errors", "offload.evaluation.errors")


def leaves():
    for name in TREES:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and issubclass(value, OffloadError):
                yield value


@pytest.mark.parametrize("error", sorted(set(leaves()), key=lambda one: one.__name__))
def test_an_error_of_inference_is_no_bug(error):
    view = describe_failure(error())
    assert view.code == error.code and view.hint and view.message and view.exit_code not in (0, 70)
    assert not view.message.startswith("Kith failed")


def test_exit_codes_that_scripts_look_at():
    codes = {error.code: describe_failure(error("x")).exit_code
             for error in (NoModel, NoRoom, HubUnreachable, OutsideRefused, UpstreamRefused)}
    assert codes == {"no_model": 7, "no_room": 1, "hub_unreachable": 5, "outside_refused": 4, "upstream_refused": 1}
    assert set(INFERENCE_EXIT) <= {error.code for error in leaves()}


@pytest.mark.parametrize("name", sorted(set(tool_errors.__all__) - {"BadArgument", "AmbiguousName", "ToolError"}))
def test_what_a_tool_refuses_is_no_bug(name):
    """Such as to undo a message that was sent: said in the tool's words, to the owner alone."""
    error = getattr(tool_errors, name)("It was sent.")
    view = describe_failure(error)
    assert (view.code, view.message, view.exit_code) == (error.code, "It was sent.", 1) and view.hint


def test_an_unknown_exception_shows_nothing_of_itself():
    """Control: only known trees are quoted."""
    view = describe_failure(ValueError("Dana Whitfield"))
    assert view.exit_code == 70 and "Dana" not in view.message


@pytest.mark.parametrize("text", ["0", "10001", "-1", "1.5", "", "9" * 5_000])
def test_a_count_that_is_none_is_the_callers_mistake_however_long(text: str) -> None:
    with pytest.raises(UsageFault):
        whole_number(text, 50)
    assert (whole_number(None, 50), whole_number("10000", 50)) == (50, 10_000)


@pytest.mark.parametrize("limit", [0, -3, 101])
def test_a_search_wants_a_number_of_passages_that_there_can_be(limit: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"query": "x", "limit": limit}, SearchInput)
    assert msgspec.convert({"query": "x", "limit": 100}, SearchInput).limit == 100
