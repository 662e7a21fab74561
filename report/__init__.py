"""What does a finished run claim? A folder that says so, written whole or not at all.

``report.json`` holds the privacy statement, the plans, the ledgers, and epsilon recomputed from
the ledgers; :func:`verify` recomputes it again from the file alone.

>>> import tempfile
>>> from pathlib import Path
>>> from dpcal.report import replacing
>>> parent = Path(tempfile.mkdtemp())
>>> with replacing(parent / "report") as folder:
...     _ = (folder / "report.json").write_text('{"format": "dpcal-report"}')
>>> [path.name for path in parent.iterdir()], (parent / "report" / "report.json").exists()
(['report'], True)
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
