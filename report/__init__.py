"""Report of a finished run: a folder with the privacy claim and its evidence.

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

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.report.files import (
        FORMAT as FORMAT,
        bind as bind,
        check_replaceable as check_replaceable,
        file_problems as file_problems,
        read as read,
        replace_file as replace_file,
        replacing as replacing,
    )
    from dpcal.report.pages import (
        answers_page as answers_page,
        sentences as sentences,
        statement_page as statement_page,
    )
    from dpcal.report.policy import Policy as Policy, facts_of as facts_of
    from dpcal.report.saving import (
        Runs as Runs,
        document_of as document_of,
        save as save,
        write as write,
    )
    from dpcal.report.signing import sign as sign, signature_problems as signature_problems
    from dpcal.report.statement import (
        about_data as about_data,
        fingerprint as fingerprint,
        privacy_statement as privacy_statement,
        released as released,
        risk as risk,
        software as software,
    )
    from dpcal.report.verification import (
        claims_of as claims_of,
        composed_epsilon as composed_epsilon,
        composed_reports as composed_reports,
        event_of as event_of,
        verify as verify,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
