"""What the wire's refusal and error codes mean to the person whose request they end, on either side.

The wire carries a code and at most one number. Must not know who refused whom, or how a peer is called.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

__all__ = ["break_in_words", "limit_in_words", "refusal_in_words"]

_PLAIN: Mapping[str, str] = MappingProxyType({
    "not_granted": "it has not granted this device the use of its models",
    "grant_expired": "its grant for this device has run out",
    "quota": "this device's tokens there are used up for today",
    "busy": "it is busy with other requests",
    "model_absent": "it does not serve that model to this device",
    "context_too_long": "the text is longer than it takes",
    "lane_unsupported": "it can't compute in the exact lane",
    "tools_unsupported": "it takes no tools",
    "resume_unsupported": "it can't go on with another machine's answer",
    "offline": "it is offline",
    "shutting_down": "it is shutting down",
    "bad_request": "it can't serve a request of this form",
    "outside_hours": "its grant for this device does not hold at this time of the day",
})

_WITH_LIMIT: Mapping[str, Callable[[int], str]] = MappingProxyType({
    "quota": lambda n: f"this device may use {n:,} tokens a day there (UTC), and they are used up",
    "busy": lambda n: f"it runs at most {n:,} of this device's requests at once",
    "context_too_long": lambda n: f"the text and its answer are longer than the {n:,} tokens it allows this device",
})

_BREAKS: Mapping[str, str] = MappingProxyType({
    "revoked": "the grant there was withdrawn, changed or ran out",
    "grant_expired": "the grant there ran out",
    "outside_hours": "the hours that the grant there names were over",
    "narrowed": "the grant there was narrowed",
    "quota": "this device's tokens there are used up for today",
    "shutting_down": "it is shutting down",
    "deadline": "the time for this answer was over",
    "engine_failed": "its model failed",
    "engine_restarting": "its model is being restarted",
    "out_of_memory": "its memory ran out",
    "internal": "it failed in a way it should not have",
    "cancelled": "the answer was cancelled there",
    "stalled": "nothing moved for 3 seconds",
    "queued": "it stood still in its queue for a minute",
    "loading": "its model took too long to load",
    "lost": "the connection broke",
    "closed": "the connection was closed",
})

_LIMITS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "quota": ("token a day", "tokens a day"),
    "busy": ("request at once", "requests at once"),
    "context_too_long": ("token of context", "tokens of context"),
})


def refusal_in_words(code: str, limit: int | None, resets_in_s: int | None = None) -> str:
    """Why a peer does not compute, and when it may, as the asker reads it; an unknown code is shown as it is."""
    if limit is not None and code in _WITH_LIMIT:
        said = _WITH_LIMIT[code](limit)
    else:
        said = _PLAIN.get(code, f"it refused ({code})")
    return said if resets_in_s is None else f"{said} (again in {_span(resets_in_s)})"


def break_in_words(reason: str) -> str:
    """Why an answer ended in the middle, as the asker reads it; an unknown reason is shown as it is."""
    return _BREAKS.get(reason, reason)


def limit_in_words(code: str, limit: int | None) -> str:
    """Which limit of a grant was met, as its issuer reads it: "quota: 1,000 tokens a day"."""
    named = ""
    if limit is not None and code in _LIMITS:
        one, many = _LIMITS[code]
        named = f": {limit:,} {one if limit == 1 else many}"
    return code.replace("_", " ") + named


def _span(seconds: int) -> str:
    minutes = max(1, -(-seconds // 60))
    hours, rest = divmod(minutes, 60)
    return f"{minutes} min" if not hours else f"{hours} h {rest} min" if rest else f"{hours} h"
