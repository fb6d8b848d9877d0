"""A model file copied between two real nodes: kill -9 of the provider in mid-copy, a lie, a narrowed grant."""

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gguf_files import make_gguf
from running_nodes import Household, cli, household, kill, until

from node.cli.demo.nodes import DemoNode

pytestmark = pytest.mark.e2e

BALLAST_BYTES = 48_000_000
KILLED_AT_BYTES = 4_000_000


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    with household() as running:
        yield running


def offer(house: Household, name: str, vocabulary: int, ballast_bytes: int) -> tuple[Path, str]:
    """A model of the home PC's that the phone has been told of."""
    folder = house.home_pc.paths.models_dir
    file = make_gguf(folder / f"{name}.gguf", vocabulary=vocabulary, ballast_bytes=ballast_bytes, licence="mit")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    until(lambda: digest in digests(house.home_pc), "the home PC knows its new model")
    return file, digest


def digests(node: DemoNode) -> set[str]:
    return {model["digest"] for model in node.client().get("/v1/models")}


def copy(house: Household, name: str) -> subprocess.CompletedProcess[str]:
    """`kith models copy` at the phone, once it has heard of the model."""
    def tried() -> subprocess.CompletedProcess[str] | None:
        done = cli(house.phone, "models", "copy", name, "--from", "home-pc", "--json")
        return None if "offers no model called" in done.stdout else done

    return until(tried, f"the phone has heard of {name}")


def ledger(node: DemoNode) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = node.client().get("/v1/ledger")
    return [entry for entry in entries if entry["purpose"] == "model"]


def test_a_copy_outlives_kill_9_of_the_provider(house: Household) -> None:
    file, digest = offer(house, "big-one", 40, BALLAST_BYTES)
    part = house.phone.paths.models_dir / f".{digest}.part"
    done: list[subprocess.CompletedProcess[str]] = []
    copying = threading.Thread(target=lambda: done.append(copy(house, "big-one")), daemon=True)
    copying.start()
    until(lambda: part.is_file() and part.stat().st_size >= KILLED_AT_BYTES, "some of it has arrived")
    kill(house.home_pc)
    reached = part.stat().st_size
    assert KILLED_AT_BYTES <= reached < BALLAST_BYTES and not done, "killed in the middle of the copy"
    house.start(house.home_pc)
    copying.join(120)
    (outcome,) = done
    assert outcome.returncode == 0, outcome.stderr
    (added,) = json.loads(outcome.stdout)["items"]
    assert (added["digest"], added["name"], added["licence"]) == (digest, "big-one", "mit")
    copied = house.phone.paths.models_dir / "big-one.gguf"
    assert copied.read_bytes() == file.read_bytes() and not part.exists()
    assert "peer:home-pc" in copied.with_name("big-one.gguf.toml").read_text()

    # counted where it left: one entry per stream, and nothing that had arrived was sent twice
    entries = until(lambda: _closed(house.home_pc), "the home PC's entries are closed")
    assert {entry["outcome"] for entry in entries} == {"crashed", "end"}
    (last,) = [entry for entry in entries if entry["outcome"] == "end"]
    whole = file.stat().st_size
    assert whole - reached <= last["size_bytes"] <= 1.01 * (whole - KILLED_AT_BYTES)
    assert ledger(house.phone) == []
    house.wait_connected()
    house.check_data()


def _closed(node: DemoNode) -> list[dict[str, Any]] | None:
    entries = ledger(node)
    return entries if len(entries) >= 2 and all(entry["outcome"] for entry in entries) else None


def test_a_provider_that_lies_is_found_out(house: Household) -> None:
    """The file changes behind its digest: same size, same time of change, other bytes."""
    file, digest = offer(house, "liar", 41, 400_000)
    times = file.stat()
    data = bytearray(file.read_bytes())
    data[-1000] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    outcome = copy(house, "liar")
    assert outcome.returncode == 1
    assert json.loads(outcome.stdout)["error"]["code"] == "copy_mismatch"
    assert digest not in digests(house.phone)
    assert not list(house.phone.paths.models_dir.glob("*liar*")) and not _parts(house)


def _parts(house: Household) -> list[Path]:
    return list(house.phone.paths.models_dir.glob(".*.part"))


def test_only_while_it_is_granted(house: Household) -> None:
    offer(house, "secret-one", 42, 0)
    done = cli(house.home_pc, "grant", "edit", "phone", "--services", "infer,mail,search")
    assert done.returncode == 0, done.stderr
    until(lambda: "models" not in (house.phone.client().get("/v1/peers/home-pc/grant")["allows_us"] or ("models",)),
          "the phone hears it")
    refused = cli(house.phone, "models", "copy", "secret-one", "--from", "home-pc", "--json")
    assert refused.returncode == 6
    assert "not granted" in json.loads(refused.stdout)["error"]["message"]
    done = cli(house.home_pc, "grant", "edit", "phone", "--services", "infer,mail,models,search")
    assert done.returncode == 0, done.stderr
    until(lambda: "models" in (house.phone.client().get("/v1/peers/home-pc/grant")["allows_us"] or ()), "it hears that")
    assert copy(house, "secret-one").returncode == 0
