"""python -m benchmarks: every area in turn, each in a process of its own; exit code 1 when a bound is not met."""

import subprocess
import sys
from pathlib import Path

AREAS = (
    "engine", "rivals", "shortcuts", "bfcl", "offload", "seamless", "household", "reaching", "privacy", "agent",
    "search", "messages",
)


def main() -> int:
    """Run the areas that exist, passing --quick and --json on."""
    here = Path(__file__).resolve().parent
    codes = [
        subprocess.run([sys.executable, "-m", f"benchmarks.{area}", *sys.argv[1:]], check=False).returncode
        for area in AREAS
        if (here / f"{area}.py").exists()
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
