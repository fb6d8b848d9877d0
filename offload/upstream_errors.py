"""Every error of an upstream engine, drawn as a tree.

    EngineError (offload.errors)
    +-- UpstreamError
        +-- UpstreamMisconfigured   url, key file or model names can't be used
        +-- UpstreamUnreachable     no connection, no TLS, or no answer in time
        +-- UpstreamRefused         it answered with an error
        +-- UpstreamBroken          its answer ended early, is too large or is not understood
        +-- OutsideRefused          the request may not go to another machine

Each leaf has `code` (stable), its docstring is the text for the user, `hint` is the next command. Must not know who
raises or catches it.
"""

from offload.errors import EngineError

__all__ = [
    "OutsideRefused", "UpstreamBroken", "UpstreamError", "UpstreamMisconfigured", "UpstreamRefused",
    "UpstreamUnreachable",
]


class UpstreamError(EngineError):
    """The upstream engine could not answer."""

    code = "upstream"
    hint = "See its settings: kith config explain"


class UpstreamMisconfigured(UpstreamError):
    """The settings of the upstream engine can't be used."""

    code = "upstream_misconfigured"


class UpstreamUnreachable(UpstreamError):
    """The upstream engine does not answer."""

    code = "upstream_unreachable"
    hint = "Start it, or choose a model of this device: kith models use NAME"


class UpstreamRefused(UpstreamError):
    """The upstream engine refused the request."""

    code = "upstream_refused"


class UpstreamBroken(UpstreamError):
    """The answer of the upstream engine broke off or is not understood."""

    code = "upstream_broken"
    hint = "Ask again, or choose a model of this device: kith models use NAME"


class OutsideRefused(UpstreamError):
    """This request may not go to another machine."""

    code = "outside_refused"
    hint = "Choose a model of this device: kith models use NAME"
