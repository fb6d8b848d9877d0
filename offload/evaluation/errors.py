"""Errors of an evaluation.

    OffloadError (offload.errors)
    +-- EvaluationError
        +-- BadCases        the file holds no cases that can be used

Must not know who raises or catches it.
"""

from offload.errors import OffloadError

__all__ = ["BadCases", "EvaluationError"]


class EvaluationError(OffloadError):
    """The evaluation could not be done."""

    code = "evaluation"


class BadCases(EvaluationError):
    """The file holds no function-calling cases."""

    code = "bad_cases"
    hint = "Give files in the JSON shape of the Berkeley Function Calling Leaderboard: kith eval --help"
