"""What a built wheel contains: the four packages, the licence, the command, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest
from checkout import PACKAGES, ROOT, tracked_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("the environment's setuptools is older than the lock's: run scripts/install")
    folder = tmp_path_factory.mktemp("build")
    tree = folder / "tree"
    for path in tracked_files():
        target = tree / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "-w", str(folder), str(tree)], check=True, timeout=300, stdin=subprocess.DEVNULL)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        yield archive


def test_only_our_packages_are_in_it(wheel: zipfile.ZipFile) -> None:
    roots = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    (metadata,) = [root for root in roots if root.endswith(".dist-info")]
    assert roots - {metadata} == set(PACKAGES)


def test_every_tracked_module_is_in_it(wheel: zipfile.ZipFile) -> None:
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path.relative_to(ROOT).parts[0] in PACKAGES and (path.suffix == ".py" or path.name == "py.typed")
    }
    assert expected <= set(wheel.namelist())


def test_no_models_tests_or_data_folders(wheel: zipfile.ZipFile) -> None:
    suffixes = {Path(name).suffix for name in wheel.namelist()}
    assert suffixes & {".gguf", ".lock", ".ics", ".vcf", ".db", ".so"} == set()


def test_licence_and_command_are_declared(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
    (entries,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
    assert "License-Expression: Apache-2.0" in wheel.read(metadata).decode()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "kith = node.cli.main:main" in wheel.read(entries).decode()
