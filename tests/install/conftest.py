"""Makes the scripts for environments and releases importable."""

import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path[:0] = [str(SCRIPTS / "release"), str(SCRIPTS / "envs")]
