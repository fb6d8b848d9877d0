"""Whether this CPU survives the engine's fast kernels, remembered for this build and this CPU.

A build can hold kernels that the CPU announces and still dies of (SIGILL at the first decode). The worker runs them
once while it starts; if that kills it, it is started without them from then on. Must not know how workers are started.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import signal
from pathlib import Path

from offload.child.process import Death

__all__ = ["KernelVerdict"]

_log = logging.getLogger(__name__)
_OF_THE_CPU = frozenset({signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT})


class KernelVerdict:
    """Use the fast kernels unless they are known to kill."""

    def __init__(self, path: Path | None) -> None:
        """path: where to remember; None remembers while this object lives."""
        self._path = path
        self._deadly = _read(path)
        self._build: str | None = None

    @property
    def fast(self) -> bool:
        """Whether to use them."""
        return self._key() not in self._deadly

    def blame(self, death: Death) -> bool:
        """A worker died while it tried the fast kernels; returns whether that was their fault, and remembers it."""
        if -death.return_code not in _OF_THE_CPU:
            return False
        self._deadly.add(self._key())
        if self._path is not None:
            try:
                self._remember(self._path)
            except OSError as error:    # a full disk: it is found out again at the next start
                _log.warning("the CPU's verdict on the fast kernels is not remembered: %s", error.strerror)
        return True

    def _remember(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.write_text(json.dumps(sorted(self._deadly)), encoding="utf-8")
        unfinished.replace(path)

    def _key(self) -> str:
        if self._build is None:
            self._build = hashlib.sha256(f"{_library()}|{_cpu()}".encode()).hexdigest()[:32]
        return self._build


def _read(path: Path | None) -> set[str]:
    if path is None:
        return set()
    try:
        keys = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return set()
    return {key for key in keys if isinstance(key, str)} if isinstance(keys, list) else set()


def _library() -> str:
    """Version, size and time of the installed library, found without loading it."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        return "none"
    files = sorted((Path(spec.origin).parent / "lib").glob("libggml-cpu*")) or sorted(
        Path(spec.origin).parent.glob("libggml-cpu*"))
    stats = ((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return f"{importlib.metadata.version('llama-cpp-python')} {list(stats)}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "unknown"
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))
