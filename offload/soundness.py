"""Which model files are damaged, as far as is known, so that none of them is taken while a sound one is there.

Known from the first bytes, from a boxed look at the header of a file that came without a record, and from a worker that
could not load it. Forgotten when this process ends. Must not know how a header is laid out, requests or defaults.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from offload.catalogue import ModelFile
from offload.errors import ModelUnusable
from offload.gguf import ModelFacts
from offload.jobs import shown
from offload.model_facts import model_facts

__all__ = ["Soundness"]

_log = logging.getLogger(__name__)


class Soundness:
    """What is wrong with each model file, by digest."""

    def __init__(self, look: Callable[[Path], Awaitable[ModelFacts]] = model_facts) -> None:
        """look: reads a header without risk; raises ModelUnusable."""
        self._look = look
        self._damage: dict[str, str] = {}

    async def examine(self, models: Iterable[ModelFile]) -> None:
        """Judge those not judged yet. One process for each without a record, which is only written after a look."""
        for model in models:
            if model.digest in self._damage or model.changed:
                continue
            if model.damage or model.recorded:
                found = model.damage
            else:
                found = await self._header_damage(model.path)
            self.note(model.digest, found)
            if found:
                _log.warning("%s is broken and not used while there is another model: %s", model.path.name, found)

    def note(self, digest: str, damage: str) -> None:
        """What was just found out; "" for a model that was loaded."""
        self._damage[digest] = damage

    def damage(self, digest: str) -> str:
        """What is wrong in a few words, "" when nothing is known to be."""
        return self._damage.get(digest, "")

    async def _header_damage(self, path: Path) -> str:
        try:
            facts = await self._look(path)
        except ModelUnusable as error:
            return shown(str(error))
        except OSError as error:    # no process for it now: the worker will tell
            _log.warning("the header of %s was not checked: %s", path.name, error.strerror)
            return ""
        return "It is an adapter for a model, not a model." if facts.adapter else ""
