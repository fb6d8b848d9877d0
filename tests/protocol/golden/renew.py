"""Writes the golden bytes of every specimen frame: python tests/protocol/golden/renew.py --write

A changed line means a changed wire format: then the protocol's version in names.py changes too.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def lines() -> dict[str, str]:
    """File name -> its content: one line per specimen, name and bytes in hex."""
    from frame_samples import SAMPLES

    from protocol import canonical

    return {
        f"{protocol.strip('/').replace('/', '-')}.txt": "".join(
            f"{name} {canonical.encode(frame).hex()}\n" for name, frame in frames.items()
        )
        for protocol, frames in SAMPLES.items()
    }


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("golden bytes are renewed with --write only, by hand, when the wire format is meant to change")
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
    for name, text in lines().items():
        (HERE / name).write_text(text, encoding="ascii")
        print("wrote", name)
