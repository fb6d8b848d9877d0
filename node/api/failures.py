"""Any exception of the node as the record a user can act on: what happened, why, the next command, an exit code.

Unknown exceptions become exit code 70 with no text of their own: an exception's text may hold personal data.
"""

from node.agent.tools.errors import ToolError
from node.api.questions import NoSuchQuestion
from node.api.views import CommandError
from node.errors import KithError
from node.sources.errors import SourceError
from offload.errors import OffloadError
from protocol.errors import ProtocolError

__all__ = ["HTTP_STATUS", "Starting", "UsageFault", "describe_failure"]

HTTP_STATUS = {2: 400, 3: 503, 4: 403, 5: 502, 6: 403, 7: 409, 70: 500}

# Inference has its own tree of errors; what is not named here is exit code 1.
INFERENCE_EXIT = {
    "no_model": 7, "model_unknown": 7, "outside_refused": 4, "hub_unreachable": 5, "upstream_unreachable": 5,
    "hub_name": 2,
}


class Starting(KithError):
    """That part of the node is still starting."""

    code = "starting"
    exit_code = 3
    hint = "Try again in a moment; see: kith status"


class UsageFault(KithError):
    """The request is not of the form the node understands."""

    code = "usage"
    exit_code = 2
    hint = "See: kith --help"


def describe_failure(error: Exception) -> CommandError:
    """The record for one exception. Never raises."""
    if isinstance(error, KithError):
        return CommandError(code=error.code, message=str(error), hint=error.hint, exit_code=error.exit_code)
    if isinstance(error, OffloadError):
        exit_code = INFERENCE_EXIT.get(error.code, 1)
        return CommandError(code=error.code, message=str(error), hint=error.hint, exit_code=exit_code)
    if isinstance(error, ProtocolError):
        text = str(error) or (type(error).__doc__ or "").strip()
        return CommandError(code=error.code, message=text, hint=error.hint, exit_code=5)
    if isinstance(error, ToolError | SourceError):     # the owner's own tool or files: to undo what was sent, no access
        text = str(error) or (type(error).__doc__ or "").strip()
        return CommandError(code=error.code, message=text, hint=error.hint, exit_code=1)
    if isinstance(error, NoSuchQuestion):
        return CommandError(
            code="no_such_question", message=str(error), hint="It may have timed out; ask again.", exit_code=1
        )
    return CommandError(
        code="bug",
        message=f"Kith failed in a way it should not have ({type(error).__name__}). The log has the place.",
        hint="Please report it with the output of: kith doctor --json",
        exit_code=70,
    )
