"""Questions that are refused in a sentence that says why: those of ``tests/data/refused.toml``."""

import builtins
import tomllib

import pytest
from _certificates import claim_about
from _tree import DATA
from contracts._events import NAMES
from dp_accounting.pld import privacy_loss_distribution as builders

from dpcal import accountants, calibrate, errors
from dpcal.accountants.certificates.composed import OrderProof
from dpcal.accountants.certificates.contour import ContourProof
from dpcal.accountants.certificates.mechanisms import Mechanism

REFUSED = tomllib.loads((DATA / "refused.toml").read_text(encoding="utf-8"))
ROWS = [(error, *row) for error, rows in REFUSED.items() for row in rows]


SCOPE = {each: getattr(accountants, each) for each in accountants.__all__} | NAMES
SCOPE |= {
    each: getattr(calibrate, each) for each in ("noise_multiplier", "noise_multiplier_for_risk")
}
SCOPE |= {each.__name__: each for each in (ContourProof, OrderProof, Mechanism)}
SCOPE |= {
    "claim": lambda event, count, *rest: claim_about([Mechanism(event, count)], "both", *rest)
}
SCOPE |= {"calibrate": calibrate, "builders": builders}


@pytest.mark.parametrize(("error", "call", "sentence"), ROWS)
def test_a_question_is_refused(error, call, sentence):
    kind = getattr(errors, error, None) or getattr(builtins, error)
    with pytest.raises(kind, match=sentence) as told:
        eval(call, SCOPE)
    assert str(told.value).rstrip().endswith(".")
