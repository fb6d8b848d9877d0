"""Every error of inference, drawn as a tree.

    OffloadError
    +-- EngineError                 an engine could not answer
        +-- NoModel                 no model file was found
        +-- ModelUnknown            the model asked for is not here
        +-- ModelChanged            the file is not the one that was installed
        +-- ModelUnusable           the file does not load
        +-- EngineBusy              queue full, or another model is at work
        +-- EngineStopped           the engine is shutting down
        +-- WorkerDied              the worker process ended in mid-answer, more than once
        +-- WorkerQuarantined       the worker process keeps dying
        +-- WorkerStalled           the worker process no longer moves
        +-- RequestRefused          this request can't be served as it is
            +-- PromptTooLong       the prompt leaves no room for an answer
            +-- BadPrompt           empty, unknown token ids, or the model's template refuses it
            +-- BadGrammar          the grammar can't be parsed, or the text so far breaks it
            +-- BadRequest          a number or text outside its limits
            +-- LaneUnsupported     the exact lane is not available
            +-- BadAdapter          the adapter is not here, or does not fit the model

Each leaf has `code` (stable), its docstring is the text for the user, `hint` is the next command.
Must not know who raises or catches it.
"""

__all__ = [
    "BadAdapter", "BadGrammar", "BadPrompt", "BadRequest", "EngineBusy", "EngineError", "EngineStopped",
    "LaneUnsupported", "ModelChanged", "ModelUnknown", "ModelUnusable", "NoModel", "OffloadError", "PromptTooLong",
    "RequestRefused", "WorkerDied", "WorkerQuarantined", "WorkerStalled",
]


class OffloadError(Exception):
    """Inference failed."""

    code = "offload"
    hint = "Run: kith doctor"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


class EngineError(OffloadError):
    """The local engine could not answer."""

    code = "engine"


class NoModel(EngineError):
    """There is no model on this device, so nothing can be answered here."""

    code = "no_model"
    hint = "Add one with: kith models add FILE.gguf"


class ModelUnknown(EngineError):
    """The model that was asked for is not on this device."""

    code = "model_unknown"
    hint = "See what is here: kith models"


class ModelChanged(EngineError):
    """The model file is not the one that was installed: its digest differs from the record beside it."""

    code = "model_changed"
    hint = "Add it again with: kith models add FILE.gguf"


class ModelUnusable(EngineError):
    """The model file could not be loaded."""

    code = "model_unusable"
    hint = "Check the file, or choose another model: kith models"


class EngineBusy(EngineError):
    """The engine has as much work as it takes at once."""

    code = "busy"
    hint = "Try again in a moment; kith status shows the queue."


class EngineStopped(EngineError):
    """The engine is shutting down."""

    code = "engine_stopped"
    hint = "Start the node again with: kith up"


class WorkerDied(EngineError):
    """The worker process ended while it wrote this answer, and again when it went on."""

    code = "worker_died"
    hint = "Ask again with other words or another model; kith doctor shows the cause."


class WorkerQuarantined(EngineError):
    """The worker process died too often, so it is not started again for now."""

    code = "worker_quarantined"
    hint = "Choose another model, or see the cause with: kith doctor"


class WorkerStalled(EngineError):
    """The worker process no longer moved and was ended."""

    code = "worker_stalled"
    hint = "Ask again; kith doctor shows the load."


class RequestRefused(EngineError):
    """This request can't be served as it is."""

    code = "refused"
    hint = "Change the request; its limits are in the protocol reference."


class PromptTooLong(RequestRefused):
    """The prompt leaves no room for an answer in the model's context."""

    code = "prompt_too_long"
    hint = "Shorten the text, or choose a model with a longer context: kith models"


class BadPrompt(RequestRefused):
    """The prompt is empty or does not fit the model."""

    code = "bad_prompt"


class BadGrammar(RequestRefused):
    """The grammar can't be used."""

    code = "bad_grammar"


class BadRequest(RequestRefused):
    """A value of the request is outside its limits."""

    code = "bad_request"


class LaneUnsupported(RequestRefused):
    """The exact lane is not available for this request."""

    code = "lane_unsupported"
    hint = "Ask in the normal lane."


class BadAdapter(RequestRefused):
    """The adapter that was asked for is not on this device, or does not fit the model."""

    code = "bad_adapter"
    hint = "See which there are and for what: kith models"
