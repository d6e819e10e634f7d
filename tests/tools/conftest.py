"""Makes the scripts in `tools/` importable, as they are for each other when they run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
