"""llama.cpp's own C++ server with the embedded model, in a process of its own on loopback: the real upstream of tests.

`python tests/support/llama_server.py MODEL` prints its address and serves until its standard input closes.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["llama_server"]


@contextmanager
def llama_server(model: Path, *, context_tokens: int = 2048, streams: int = 2) -> Iterator[str]:
    """Its address while it runs; skips the test when the server is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp (llama.cpp's C++ server) is not installed: scripts/install --dev")
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, str(model), str(context_tokens), str(streams)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None and process.stdin is not None
        address = process.stdout.readline().strip()
        if not address:
            pytest.skip(f"xllamacpp does not start on this machine (exit status {process.wait(10)})")
        yield address
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _serve(model: str, context_tokens: int, streams: int) -> None:
    import os

    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.n_ctx, wanted.n_parallel, wanted.kv_unified = context_tokens, streams, True
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 2
    wanted.warmup, wanted.port, wanted.use_jinja = False, 0, True
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
