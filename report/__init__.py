"""What does a finished run claim? A folder that says so, written whole or not at all.

``report.json`` holds the privacy statement, the plans, the ledgers, and epsilon recomputed from
the ledgers; :func:`verify` recomputes it again from the file alone.

>>> import tempfile
>>> from pathlib import Path
>>> parent = Path(tempfile.mkdtemp())
>>> with replacing(parent / "report") as folder:
...     _ = (folder / "report.json").write_text('{"format": "dpcal-report"}')
>>> [path.name for path in parent.iterdir()], (parent / "report" / "report.json").exists()
(['report'], True)
"""

from dpcal.report.composition import composed_reports
from dpcal.report.files import FORMAT, check_replaceable, read, replace_file, replacing
from dpcal.report.page import statement_page
from dpcal.report.saving import composed_by_silo, runs_of, save
from dpcal.report.statement import fingerprint, privacy_statement, released, software
from dpcal.report.verification import composed_epsilon, verify

__all__ = [
    "FORMAT",
    "check_replaceable",
    "composed_by_silo",
    "composed_epsilon",
    "composed_reports",
    "fingerprint",
    "privacy_statement",
    "read",
    "released",
    "replace_file",
    "replacing",
    "runs_of",
    "save",
    "software",
    "statement_page",
    "verify",
]
