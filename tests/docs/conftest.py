"""The site's own generators are importable; no Sphinx is needed for them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
