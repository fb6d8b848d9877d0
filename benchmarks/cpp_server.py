"""llama.cpp's own C++ server (package xllamacpp) as the one to compare with: a child process, asked over HTTP.

Must not know what is compared.
"""

import http.client
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import trio

__all__ = ["WAITING", "Cost", "CppServer", "cpp_server", "cpu_s"]

REPLY_WAIT_S = 300.0
# As the worker has it: threads that wait look for 20 us, then sleep.
WAITING = {"GOMP_SPINCOUNT": "500"}
SCRIPT = """
import os, sys, xllamacpp
wanted = xllamacpp.CommonParams()
wanted.model.path, wanted.n_ctx, wanted.n_parallel, wanted.kv_unified = sys.argv[1], int(sys.argv[2]), 8, True
wanted.n_batch = wanted.n_ubatch = 512
wanted.cache_idle_slots = False     # else it forgets in the slots what the calls share
wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = int(sys.argv[3])
wanted.warmup, wanted.port = False, 0
server = xllamacpp.Server(wanted)
print(server.listening_address, xllamacpp.get_system_info(), sep="\\t", flush=True)
sys.stdin.read()
os._exit(0)
"""


@dataclass
class Cost:
    """What some answers took."""

    cpu_s: list[float] = field(default_factory=list)
    decodes: int = 0
    tokens: int = 0
    texts: list[str] = field(default_factory=list)
    tokens_of: list[int] = field(default_factory=list)

    def rates(self) -> list[float]:
        """Tokens a CPU second of each ask."""
        return [tokens / spent_s for tokens, spent_s in zip(self.tokens_of, self.cpu_s, strict=True)]


def cpu_s(pid: int) -> float:
    """CPU time of a child process with all its threads."""
    return time.clock_gettime((~pid << 3) | 2)


class CppServer:
    """The running server."""

    def __init__(self, address: str, flags: str, pid: int) -> None:
        self.pid = pid
        switched_on = (part for part in flags.partition("CPU : ")[2].split(" | ") if " = 1" in part)
        self.flags = " ".join(part.split(" = ")[0] for part in switched_on)
        self._place = urlsplit(address)

    async def ask(self, cost: Cost, bodies: Sequence[dict[str, Any]]) -> None:
        """These at once; their cost is added."""
        answers: dict[int, dict[str, Any]] = {}
        begun_s = cpu_s(self.pid)

        async def one(place: int, body: dict[str, Any]) -> None:
            answers[place] = await trio.to_thread.run_sync(self._post, body)

        async with trio.open_nursery() as nursery:
            for place, body in enumerate(bodies):
                nursery.start_soon(one, place, body)
        cost.cpu_s.append(cpu_s(self.pid) - begun_s)
        cost.texts += [answers[place]["content"] for place in range(len(bodies))]
        tokens = sum(answer["timings"]["predicted_n"] for answer in answers.values())
        cost.tokens += tokens
        cost.tokens_of.append(tokens)

    async def first_token_s(self, body: dict[str, Any]) -> tuple[float, str]:
        """How long until the first text of a streamed answer, and the whole text."""
        return await trio.to_thread.run_sync(self._stream, body)

    def _connection(self, body: dict[str, Any]) -> http.client.HTTPConnection:
        link = http.client.HTTPConnection(str(self._place.hostname), self._place.port, timeout=REPLY_WAIT_S)
        link.request(
            "POST", "/completion", json.dumps({"cache_prompt": True, "temperature": 0, **body}),
            {"Content-Type": "application/json"})
        return link

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        link = self._connection(body)
        try:
            found: dict[str, Any] = json.load(link.getresponse())
        finally:
            link.close()
        return found

    def _stream(self, body: dict[str, Any]) -> tuple[float, str]:
        begun_s, first_s, text = time.perf_counter(), 0.0, ""
        link = self._connection({**body, "stream": True})
        try:
            for line in link.getresponse():
                if line.startswith(b"data: {"):
                    piece = json.loads(line[6:]).get("content", "")
                    if piece and not first_s:
                        first_s = time.perf_counter() - begun_s
                    text += piece
        finally:
            link.close()
        return first_s, text


@contextmanager
def cpp_server(model: str, *, context_tokens: int, threads: int) -> Iterator[CppServer | None]:
    """The server while it runs, None where it is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        yield None
        return
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SCRIPT, model, str(context_tokens), str(threads)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **WAITING})
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address, _, flags = process.stdout.readline().strip().partition("\t")
        yield CppServer(address, flags, process.pid)
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()
