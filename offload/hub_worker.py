"""The process that talks to a model hub: lists a repository, fetches a file. Run as `python -P -m offload.hub_worker`.

The only importer of huggingface_hub, which brings a second HTTP stack and event loop that the daemon must not load. It
sends no token and no telemetry, and goes on behind what an earlier try left in the target file. Must not know which
file is wanted or why.
"""

import argparse
import io
import os
import time
from pathlib import Path
from typing import Any

# Read at import: no telemetry, no token of anyone's, no other transfer service with addresses of its own.
os.environ.update({
    "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "30", "HF_HUB_ETAG_TIMEOUT": "20",
})

from huggingface_hub import HfApi, constants, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils._headers import build_hf_headers

from offload.child.box import limit_resources, tie_to_parent
from offload.child.frames import BlockingPipe
from offload.hub_frames import (
    HubFailed,
    HubFile,
    HubGet,
    HubGot,
    HubList,
    HubListing,
    HubProgress,
    HubReport,
    decode_order,
    encode,
)

__all__: list[str] = []

_AGENT = "kith"
_LIST_TIMEOUT_S = 30.0
_FILES_LIMIT = 2000
_REPORT_EVERY_S = 0.2
_OPEN_FILES = 256
_CHUNK_BYTES = 256 * 1024     # the library's own 10 MB would be lost each time a slow line breaks


class _Counted(io.BufferedRandom):
    """The target file; tells how much of it is there, and takes no more than was announced."""

    def __init__(self, path: Path, most_bytes: int, pipe: BlockingPipe) -> None:
        super().__init__(io.FileIO(path, "ab+"), 1024 * 1024)
        self._most_bytes = most_bytes
        self._pipe = pipe
        self._told_s = 0.0

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._most_bytes:
            raise ValueError("more bytes than were announced")
        count = super().write(data)
        if time.monotonic() - self._told_s >= _REPORT_EVERY_S:
            self._told_s = time.monotonic()
            self._pipe.write(encode(HubProgress(self.tell())))
        return count


def _list(order: HubList) -> HubListing:
    api = HfApi(endpoint=order.endpoint, token=False, user_agent=_AGENT)
    info = api.model_info(order.repository, files_metadata=True, timeout=_LIST_TIMEOUT_S, token=False)
    files = [
        HubFile(one.rfilename, one.size or 0, (one.lfs.sha256 if one.lfs else "") or "")
        for one in (info.siblings or [])[:_FILES_LIMIT]
    ]
    licence = getattr(info.card_data, "license", None) if info.card_data else None
    return HubListing(files, info.sha or "main", str(licence or ""))


def _get(order: HubGet, pipe: BlockingPipe) -> HubGot:
    url = hf_hub_url(order.repository, order.file.name, revision=order.commit, endpoint=order.endpoint)
    target = Path(order.target)
    with _Counted(target, order.file.size_bytes, pipe) as file:
        if file.seek(0, os.SEEK_END) > order.file.size_bytes:
            file.truncate(0)
        http_get(
            url, file, resume_size=file.tell(), expected_size=order.file.size_bytes,
            headers=build_hf_headers(token=False, user_agent=_AGENT))
        file.flush()
        os.fsync(file.fileno())
    return HubGot()


def _carry_out(payload: bytes, pipe: BlockingPipe) -> HubReport:
    order = decode_order(payload)
    try:
        return _list(order) if isinstance(order, HubList) else _get(order, pipe)
    except (HfHubHTTPError, HFValidationError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        return HubFailed(f"HTTP {status}" if status else type(error).__name__, refused=status is None or status < 500)
    except Exception as error:      # whatever the network and two HTTP libraries can raise: this process ends with it
        return HubFailed(type(error).__name__, refused=False)


def _main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fd", type=int, required=True)
    arguments.add_argument("--parent", type=int, required=True)
    given = arguments.parse_args()
    constants.DOWNLOAD_CHUNK_SIZE = _CHUNK_BYTES
    tie_to_parent(given.parent)
    limit_resources(_OPEN_FILES)
    pipe = BlockingPipe(given.fd)
    for payload in pipe.read_all():
        pipe.write(encode(_carry_out(payload, pipe)))


if __name__ == "__main__":
    _main()
