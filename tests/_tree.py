"""Where is the tree that is tested? Its root, wherever in the tree a test stands."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
