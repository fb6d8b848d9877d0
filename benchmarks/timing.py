"""Small instruments: medians, pinned cores, CPU time of short processes, use of running ones. Must not know nodes."""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

__all__ = ["Usage", "cpu_ms_of", "median", "pin_process", "pin_self", "use_of"]

ENGINE_CORE, REST_CORE = 0, 1


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def pin_self() -> bool:
    """Keep this process and what it starts on the second core; False on a machine with one."""
    if len(os.sched_getaffinity(0)) < 2:
        return False
    os.sched_setaffinity(0, {REST_CORE})
    return True


def pin_process(pid: int) -> None:
    """Move a process with all its threads to the first core."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {ENGINE_CORE})


def cpu_ms_of(command: Sequence[str]) -> float:
    """User and system time that a command took, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


@dataclass(frozen=True)
class Usage:
    """What a process and its children used over a while."""

    cpu_s_per_minute: float
    rss_mib: float
    children_cpu_s_per_minute: float
    children_rss_mib: float


def use_of(pids: Sequence[int], seconds: float) -> list[Usage]:
    """The use of each process over the same seconds."""
    begun_s = time.monotonic()
    before = [_times(pid) for pid in pids]
    time.sleep(seconds)
    after = [_times(pid) for pid in pids]
    minutes = (time.monotonic() - begun_s) / 60
    return [
        Usage((a[0] - b[0]) / minutes, *_rss(pid)[:1], (a[1] - b[1]) / minutes, *_rss(pid)[1:])
        for pid, b, a in zip(pids, before, after, strict=True)
    ]


def _times(pid: int) -> tuple[float, float]:
    process = psutil.Process(pid)
    own = process.cpu_times()
    children = [child.cpu_times() for child in process.children(recursive=True)]
    return own.user + own.system, sum(times.user + times.system for times in children)


def _rss(pid: int) -> tuple[float, float]:
    process = psutil.Process(pid)
    children = sum(child.memory_info().rss for child in process.children(recursive=True))
    return process.memory_info().rss / 2**20, children / 2**20
