"""Failures as a user meets them: every error of inference has its code, text, next step and exit code."""

import importlib

import pytest

from node.agent.tools import errors as tool_errors
from node.api.failures import INFERENCE_EXIT, describe_failure
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
