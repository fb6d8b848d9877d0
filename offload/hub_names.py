"""References to models on a hub, and which of a repository's files one means. Pure.

Must not know how a hub is asked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from offload.hub_frames import HubFile
from offload.model_errors import HubName

__all__ = ["HubReference", "choose_file", "parse_reference"]

PREFIX = "hf:"
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_FILE = re.compile(r"[A-Za-z0-9._()+-]+(?:/[A-Za-z0-9._()+-]+)*")
_QUANTISATION = re.compile(r"(?i)(?<![a-z0-9])(IQ\d_\w+|Q\d(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4)(?![a-z0-9])")
_PIECE = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_SMALL_SHARE = 10           # the best quantisation is taken when it needs at most this part of the memory
_BEST = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0")
_SMALL = ("Q4_K_M", "Q4_0", "Q4_K_S", "Q5_K_M", "Q5_0", "Q6_K", "Q8_0", "IQ4_NL", "IQ4_XS", "Q3_K_M", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class HubReference:
    """owner/repository, and which file: its path, a quantisation such as Q8_0, or empty for a good one."""

    repository: str
    wanted: str = ""

    def __str__(self) -> str:
        return f"{PREFIX}{self.repository}" + (f":{self.wanted}" if self.wanted else "")


def parse_reference(text: str) -> HubReference:
    """The reference in `hf:OWNER/REPOSITORY[:FILE or QUANTISATION]`. Raises HubName."""
    repository, _, wanted = text.removeprefix(PREFIX).partition(":")
    owner, slash, name = repository.partition("/")
    if not text.startswith(PREFIX) or not slash or not _PART.fullmatch(owner) or not _PART.fullmatch(name):
        raise HubName(f"{text!r} names no repository of a model hub.")
    if ".." in repository or "--" in repository:
        raise HubName(f"{text!r} names no repository of a model hub.")
    if wanted and (not _FILE.fullmatch(wanted) or ".." in wanted):
        raise HubName(f"{wanted!r} names no file.")
    return HubReference(repository, wanted)


def choose_file(reference: HubReference, files: Sequence[HubFile], memory_bytes: int) -> HubFile:
    """The file that is meant. Raises HubName, listing what there is, when none or several fit.

    With nothing said: Q8_0 when it is small for this memory (a small model loses most by fewer bits), else one of about
    4 bits.
    """
    models = [one for one in files if one.name.endswith(".gguf") and not _is_projector(one.name)]
    whole = [one for one in models if not _PIECE.search(one.name)]
    if not whole:
        what = "its models are in several pieces, which kith can't join" if models else "it holds no GGUF model"
        raise HubName(f"{reference.repository} can't be used: {what}.")
    if reference.wanted:
        return _named(reference, whole)
    if len(whole) == 1:
        return whole[0]
    by_kind: dict[str, HubFile] = {}
    for one in whole:
        by_kind.setdefault(_kind(one.name), one)
    best = (by_kind[kind] for kind in _BEST if kind in by_kind)
    small = (by_kind[kind] for kind in _SMALL if kind in by_kind)
    fitting = [*(one for one in best if one.size_bytes * _SMALL_SHARE <= memory_bytes), *small]
    if not fitting:
        raise HubName(f"Say which file of {reference.repository}: {_listed(whole)}")
    return fitting[0]


def _named(reference: HubReference, files: Sequence[HubFile]) -> HubFile:
    exact = [one for one in files if one.name == reference.wanted]
    kind = [one for one in files if _kind(one.name) == reference.wanted.upper()]
    found = exact or kind
    if len(found) != 1:
        what = "several files" if found else "no such file"
        raise HubName(f"{reference.repository} has {what}; there is: {_listed(found or files)}")
    return found[0]


def _kind(name: str) -> str:
    """The quantisation in a file's name, in capitals; "" for none."""
    found = _QUANTISATION.findall(name.rpartition("/")[2])
    return found[-1].upper() if found else ""


def _is_projector(name: str) -> bool:
    return "mmproj" in name.lower()


def _listed(files: Sequence[HubFile]) -> str:
    shown = ", ".join(one.name for one in files[:12])
    return shown + (" and more" if len(files) > 12 else "")
