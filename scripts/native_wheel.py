"""Installs llama-cpp-python built from its locked source, portable, from a wheel kept in the user's cache.

Knows compiler flags, and that pip reuses a wheel built under other flags unless told not to: hence a cache of our
own whose key names everything that shapes the binary. Must not know about models or the rest of the set-up.
Standard library only.

KITH_GPU=cuda|vulkan|metal builds the one GPU backend it names. CMAKE_ARGS of the caller are appended.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import locks
from cache import fetched, held, sha256_of

PACKAGE = "llama-cpp-python"

# AVX2 without -march=native: the native build contains matrix kernels that gcc 12 compiles wrongly, and they kill
# the process at the first decode on processors that have that unit. It also makes the wheel fit any x86-64-v3 machine.
_X86_64 = ("SSE42", "AVX", "AVX2", "FMA", "F16C", "BMI2")
_NOT_BUILT = ("-DLLAMA_BUILD_TOOLS=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF")
_GPU = {"": None, "cuda": "CUDA", "vulkan": "VULKAN", "metal": "METAL"}
_HEARTBEAT_S = 10.0
_STEP = re.compile(rb"\[(\d+)/(\d+)\]")


def flags(machine: str, gpu: str, extra: str) -> str:
    """Returns the CMAKE_ARGS of a build. Raises ValueError for an unknown `gpu`."""
    if gpu not in _GPU:
        raise ValueError(f"KITH_GPU={gpu} is unknown: set it to cuda, vulkan or metal, or leave it unset")
    chosen = ["-DGGML_NATIVE=OFF"]
    if machine.lower() in {"x86_64", "amd64"}:
        chosen += [f"-DGGML_{feature}=ON" for feature in _X86_64]
    chosen += _NOT_BUILT
    # Metal is on by default where it exists; one variable decides, also there
    chosen += [f"-DGGML_{_GPU[gpu]}=ON"] if gpu else []
    chosen += ["-DGGML_METAL=OFF"] if gpu != "metal" else []
    return " ".join([*chosen, *shlex.split(extra)])


def describe(locked: locks.Locked, cmake_args: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns everything that shapes the binary, for the key and for whoever looks into the cache."""
    compilers = {}
    for variable, default in (("CC", "gcc"), ("CXX", "g++")):
        command = shlex.split(environment.get(variable) or default)
        answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        compilers[variable] = answer.stdout.splitlines()[0]
    return {
        "package": f"{locked.name}=={locked.version}",
        "source": ",".join(sorted(locked.digests)),
        "cmake_args": cmake_args,
        "abi": f"{sysconfig.get_config_var('SOABI') or sys.implementation.cache_tag} {sysconfig.get_platform()}",
        "libc": " ".join(platform.libc_ver()),
        **compilers,
        **{name: environment[name] for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS") if environment.get(name)},
    }


def key(description: Mapping[str, str]) -> str:
    """Returns the cache key of a description."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def _say(text: str) -> None:
    print(f"      {text}", file=sys.stderr, flush=True)


def _progress(log: Path) -> str:
    steps = _STEP.findall(log.read_bytes()[-4096:])
    return f", step {int(steps[-1][0])} of {int(steps[-1][1])}" if steps else ""


def _build(source: Path, target: Path, cmake_args: str, jobs: int, log: Path) -> None:
    """Builds the wheel into `target`. Says every ten seconds how far it is. Raises RuntimeError on failure."""
    environment = {**os.environ, "CMAKE_ARGS": cmake_args, "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)}
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-cache-dir", "--no-deps"]
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*pip, "-w", str(target), str(source)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            process_group=0,  # so that giving up takes the compilers along
        )
        try:
            while True:
                try:
                    status = child.wait(_HEARTBEAT_S)
                    break
                except subprocess.TimeoutExpired:
                    minutes, seconds = divmod(int(time.monotonic() - started), 60)
                    _say(f"compiling: {minutes} min {seconds:02d} s{_progress(log)}")
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
    if status != 0:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:]
        raise RuntimeError("\n".join([*tail, f"the native build failed (exit {status}); the whole log: {log}"]))


def cached_wheel(locked: locks.Locked, cache: Path, cmake_args: str, jobs: int) -> tuple[str, Path]:
    """Returns the key and a wheel built under it, building it only when the cache has none."""
    description = describe(locked, cmake_args, os.environ)
    digest = key(description)
    folder = cache / "wheels" / f"{locked.name}-{locked.version}-{digest}"
    with held(folder):
        for wheel in folder.glob("*.whl"):
            record = wheel.with_suffix(".sha256")
            if record.exists() and record.read_text(encoding="ascii").strip() == sha256_of(wheel):
                _say(f"from the cache: {wheel.name} ({digest})")
                return digest, wheel
        source = fetched(locked, "source", cache / "sources")
        _say(f"building {source.name}, {jobs} compilers at once: 3 to 10 minutes, once per machine")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as scratch:
            _build(source, Path(scratch), cmake_args, jobs, folder.with_name(folder.name + ".log"))
            (built,) = Path(scratch).glob("*.whl")
            folder.mkdir(exist_ok=True)
            (folder / "description.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
            wheel = folder / built.name
            digest_text = sha256_of(built)
            os.replace(built, wheel)
            wheel.with_suffix(".sha256").write_text(digest_text + "\n", encoding="ascii")
            return digest, wheel


def installed_version() -> str | None:
    """Returns the version in this environment, None when there is none."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True, help="file that keeps the key of the installed build")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    locked = locks.find(options.lock.read_text(encoding="utf-8"), PACKAGE)
    cmake_args = flags(platform.machine(), os.environ.get("KITH_GPU", ""), os.environ.get("CMAKE_ARGS", ""))
    recorded = options.record.read_text(encoding="ascii").strip() if options.record.exists() else None
    if recorded == key(describe(locked, cmake_args, os.environ)) and installed_version() == locked.version:
        return
    digest, wheel = cached_wheel(locked, options.cache, cmake_args, options.jobs)
    install = ["install", "-q", "--no-deps", "--no-index", "--force-reinstall", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    options.record.write_text(digest + "\n", encoding="ascii")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError, LookupError, subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"kith set-up: {error}")
