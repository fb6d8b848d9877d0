"""Which format a model's chat template belongs to. Must not know prompts, models or parsers."""

from collections.abc import Sequence

from offload.engine.formats.format import ToolFormat
from offload.engine.formats.gemma import Gemma
from offload.engine.formats.generic import Generic
from offload.engine.formats.hermes_json import HermesJson
from offload.engine.formats.lfm2 import Lfm2
from offload.engine.formats.llama3 import Llama3
from offload.engine.formats.minicpm5 import MiniCpm5
from offload.engine.formats.qwen_xml import QwenXml

__all__ = ["FORMATS", "format_of"]

FORMATS: Sequence[ToolFormat] = (Lfm2(), MiniCpm5(), QwenXml(), HermesJson(), Llama3(), Gemma(), Generic())
"""In the order in which they are tried: marks of one occur in templates of later ones. The last takes anything."""


def format_of(template: str | None) -> ToolFormat:
    """The format of a template's model; the generic one when it is unknown or there is no template."""
    return next((one for one in FORMATS[:-1] if template and one.matches(template)), FORMATS[-1])
