"""The set-up: what it finds missing, what it says, and that a second run does nothing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from checkout import ROOT


def executable(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def shell(script: str, *, path: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    search = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
    variables = {"PATH": search, "HOME": os.environ.get("HOME", "/"), **environment}
    command = ["sh", "-eu", "-c", f". scripts/preflight.sh\n{script}"]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60, check=False)


# ---- preflight

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")


@needs_compiler
@pytest.mark.parametrize(
    ("header", "package"),
    [("gmp.h", "libgmp-dev"), ("Python.h", f"python{sys.version_info[0]}.{sys.version_info[1]}-dev")],
)
def test_a_missing_header_is_named_as_its_package(tmp_path: Path, header: str, package: str) -> None:
    body = f'source=$(cat)\ncase $source in *{header}*) exit 1 ;; esac\nprintf "%s" "$source" | gcc "$@"'
    compiler = executable(tmp_path / "cc", body)
    answer = shell(f'missing_packages "{sys.executable}"', CC=str(compiler))
    whole = shell(f'missing_packages "{sys.executable}"')
    assert set(answer.stdout.split()) - set(whole.stdout.split()) == {package}


def test_a_missing_compiler_is_named_as_its_package() -> None:
    assert "build-essential" in shell(f'missing_packages "{sys.executable}"', CC="false").stdout.split()


def test_nothing_missing_installs_nothing(tmp_path: Path) -> None:
    executable(tmp_path / "apt-get", "echo called; exit 9")
    answer = shell("supply_packages ''", path=tmp_path)
    assert (answer.returncode, answer.stdout) == (0, "")


def test_without_rights_one_line_is_printed_and_nothing_is_run(tmp_path: Path) -> None:
    executable(tmp_path / "id", "echo 1000")
    executable(tmp_path / "apt-get", f"touch {tmp_path}/ran")
    executable(tmp_path / "sudo", f"touch {tmp_path}/ran")
    answer = shell("supply_packages 'libgmp-dev python3-dev'", path=tmp_path)
    lines = [line.strip() for line in answer.stderr.splitlines() if "apt-get" in line]
    assert lines == ["sudo apt-get update && sudo apt-get install -y libgmp-dev python3-dev"]
    assert answer.returncode == 1
    assert not (tmp_path / "ran").exists()


def test_as_root_the_packages_are_installed(tmp_path: Path) -> None:
    executable(tmp_path / "id", "echo 0")
    executable(tmp_path / "apt-get", f'echo "$@" >>{tmp_path}/ran')
    answer = shell("supply_packages 'libgmp-dev python3-dev'", path=tmp_path)
    assert answer.returncode == 0, answer.stderr
    update, install = (tmp_path / "ran").read_text().splitlines()
    assert update.startswith("update")
    assert install.endswith("libgmp-dev python3-dev")


def test_a_failing_package_manager_stops_the_set_up(tmp_path: Path) -> None:
    executable(tmp_path / "id", "echo 0")
    executable(tmp_path / "apt-get", "exit 100")
    answer = shell("supply_packages libgmp-dev; echo went on", path=tmp_path)
    assert answer.returncode == 1
    assert "could not install: libgmp-dev" in answer.stderr
    assert "went on" not in answer.stdout


def test_too_little_disk_is_said_before_anything_is_done(tmp_path: Path) -> None:
    answer = shell(f"require_disk {tmp_path} 1000000; echo went on")
    assert answer.returncode == 1
    assert "set-up needs 1000000 GB" in answer.stderr
    assert "went on" not in answer.stdout
    assert shell(f"require_disk {tmp_path} 0; echo went on").stdout == "went on\n"


def test_an_old_interpreter_is_passed_over(tmp_path: Path) -> None:
    executable(tmp_path / "python3", "exit 1")  # what the version check answers on an unsupported interpreter
    found = shell("find_python", path=tmp_path, KITH_PYTHON=sys.executable).stdout.strip()
    assert Path(found).resolve() == Path(sys.executable).resolve()


# ---- install: a second run does nothing


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose environment is a recorder: it notes every call and succeeds."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "scripts", tree / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("requirements*"), ROOT / "pyproject.toml"):
        shutil.copy(path, tree)
    for environment in (".venv", ".venv/share/kith/agentdojo"):
        executable(tree / environment / "bin" / "python", f'echo "$@" >>{tmp_path}/calls')
    executable(tmp_path / "bin" / "df", "printf 'h\\nd 9 9 99999999 0%% /\\n'")
    return tree


def install(tree: Path, *options: str, **environment: str) -> list[str]:
    calls = tree.parent / "calls"
    calls.unlink(missing_ok=True)
    variables: Mapping[str, str] = {
        "PATH": f"{tree.parent}/bin:{os.environ['PATH']}",
        "HOME": str(tree.parent / "home"),
        "KITH_PYTHON": sys.executable,
        **environment,
    }
    command = ["sh", str(tree / "scripts" / "install"), *options]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return [line for line in calls.read_text().splitlines() if line.strip() != "-c"]


@needs_compiler
def test_a_second_run_calls_nothing(checkout: Path) -> None:
    first = install(checkout)
    assert any("--require-hashes" in call for call in first)
    assert any("native_wheel.py" in call for call in first)
    assert any("data_wheels.py" in call for call in first)
    assert install(checkout) == []


@needs_compiler
def test_test_tools_come_only_when_asked_for(checkout: Path) -> None:
    assert not any("requirements-dev.lock" in call for call in install(checkout))
    calls = install(checkout, "--dev")
    assert any("requirements-dev.lock" in call for call in calls)
    assert any("requirements-agentdojo.lock" in call for call in calls)
    assert install(checkout, "--dev") == []


@needs_compiler
@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml", "requirements-data.txt"])
def test_a_changed_file_sets_up_again(checkout: Path, name: str) -> None:
    install(checkout)
    with (checkout / name).open("a") as file:
        file.write("\n# changed\n")
    assert install(checkout) != []
    assert install(checkout) == []


@needs_compiler
def test_another_gpu_sets_up_again(checkout: Path) -> None:
    install(checkout)
    assert install(checkout, KITH_GPU="vulkan") != []


@needs_compiler
def test_a_failed_step_leaves_no_stamp(checkout: Path) -> None:
    recorder = checkout / ".venv" / "bin" / "python"
    body = recorder.read_text()
    executable(recorder, 'case "$*" in *data_wheels*) exit 1 ;; esac')
    command = ["sh", str(checkout / "scripts" / "install")]
    environment = {
        "PATH": f"{checkout.parent}/bin:{os.environ['PATH']}",
        "HOME": str(checkout.parent / "home"),
        "KITH_PYTHON": sys.executable,
    }
    failed = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert failed.returncode != 0
    recorder.write_text(body)
    assert install(checkout) != []


@needs_compiler
@pytest.mark.parametrize("moved", [False, True])
def test_a_moved_checkout_gets_a_new_environment(checkout: Path, moved: bool) -> None:
    body = (
        f'case "$*" in\n'
        f'*"print(sys.executable)"*) echo "$0" ;;\n'
        f'"-m venv"*) echo "$@" >>{checkout.parent}/made ;;\n'
        f'*) exec {sys.executable} "$@" ;;\nesac'
    )
    interpreter = executable(checkout.parent / "python", body)
    install(checkout, KITH_PYTHON=str(interpreter))
    assert not (checkout.parent / "made").exists()
    if moved:
        (checkout / ".venv" / "share" / "kith" / "place").write_text("/somewhere/else\n")
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n# set up again\n")
    install(checkout, KITH_PYTHON=str(interpreter))
    assert (checkout.parent / "made").exists() == moved
