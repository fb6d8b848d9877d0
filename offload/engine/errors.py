"""Every error inside the engine, drawn as a tree.

    EngineFault
    +-- ModelNotLoadable      llama.cpp refused the file or had no memory for it
    +-- TextNotUsable         a prompt that the template or the vocabulary refuses
    +-- GrammarNotUsable      a grammar that can't be parsed, or that the text so far breaks

Each leaf has `code`, one of offload.errors. Must not know processes or the daemon.
"""

__all__ = ["EngineFault", "GrammarNotUsable", "ModelNotLoadable", "TextNotUsable"]


class EngineFault(Exception):
    """The engine could not do it."""

    code = "engine"


class ModelNotLoadable(EngineFault):
    """The model file could not be loaded."""

    code = "model_unusable"


class TextNotUsable(EngineFault):
    """The prompt is empty or does not fit the model."""

    code = "bad_prompt"


class GrammarNotUsable(EngineFault):
    """The grammar can't be used."""

    code = "bad_grammar"
