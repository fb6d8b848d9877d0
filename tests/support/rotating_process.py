"""Begins or goes on with a rotation of a data folder, and says "begun" once the key file holds both keys. To be killed.

python rotating_process.py HOME SEED
"""

import sys
from pathlib import Path

from fixed import SeededEntropy

from node.daemon import rotation
from node.identity import keystore
from node.paths import Paths

if __name__ == "__main__":
    home, seed = Path(sys.argv[1]), int(sys.argv[2])
    paths, entropy = Paths.from_env({"KITH_HOME": str(home)}, home), SeededEntropy(seed)
    identity = keystore.load(paths.identity_file)
    identity = rotation.begin(paths, identity, None, entropy)
    print("begun", flush=True)
    rotation.finish(paths, identity, None, entropy)
    print("done", flush=True)
