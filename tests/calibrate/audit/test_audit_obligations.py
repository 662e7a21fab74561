"""Each check of the kernel is needed: without it, a forged proof of what is false passes.

The statements that check something are found in the kernel's source, so that a new one needs a
forged proof here, or a reason why no proof can pass for lack of it.
"""

import ast
import inspect

import pytest
from _forged_proofs import AT_ZERO, FORGED, E, images, let, monotone, plain, slope

from dpcal.calibrate.papers.claims import claims
from dpcal.calibrate.papers.claims.claims import Bound, Identity, Rate
from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.claims.language import Quantity, Schedule, Setting, standalone
from dpcal.calibrate.papers.kernel import balls, checker, rings, rules, terms
from dpcal.calibrate.papers.kernel.terms import Undecided, encode, negative, symbols

MODULES = {"balls": balls, "checker": checker, "rings": rings, "rules": rules, "terms": terms}
CHECKS = ("require", "require_defined", "require_small", "look", "check", "same")

# Checks for the sake of time and memory: a document that breaks them proves nothing.
LIMITS = {
    "checker.refusal: evidence of a sane size.",
    "rings._folded: a root of a sane order",
    "rings.Ring._generator: an identity with fewer parts",
    "rings.Ring._limit: a shorter identity",
    "rings.Ring._quotient: lower powers",
    "rings.Ring._quotient: a number with fewer digits",
    "rings.Ring._whole_power: a number with fewer digits",
    "rules.Context.look: a check within the time limit",
    "rules.Context.sign: look()",
    "rules.Context.require_defined: look()",
    "rules.check: look()",
    "rules._replace: look()",
    "rules._balls: look()",
    "rules.check: a proof that is less deep",
    "terms.require_small: a term with fewer parts",
}
# Checks that another one repeats, each with this other one.
REPEATED = {
    "balls.value: a finite enclosure": "a ball without a value is never above zero",
    "balls._value: a range of ": "the box has no such key",
    "balls._power: no power of what may be negative or zero": "its logarithm has no value",
    "checker._check: there is a proof for each goal.": "zip refuses lists of other lengths",
    "checker._check: an inequality.": "claims have goals of these relations only",
    "rings.Ring._whole_power: no division by zero": "the base of a defined power is not zero",
    "rules.check: a step that is an object": "another object has no get",
    "rules.check: a known rule, got ": "the table has no such rule",
    "rules.same: a base that is not negative": "the old term is defined where it occurs",
    "rules.same: a power that is positive": "the old term is defined where it occurs",
    "rules.same: another form of it that is positive": "a logarithm opens for positive parts only",
    "rules._cases: require_defined(on)": "no rule uses a fact that is not defined",
    "rules._replace: require_defined(part)": "terms that facts make equal are defined",
}


def statements():
    """Yield each statement of the kernel that checks something: its name, and how to remove it."""
    for stem, module in MODULES.items():
        tree = ast.parse(inspect.getsource(module))
        for path, function in functions(tree, stem):
            for node in ast.walk(function):
                if isinstance(node, ast.Expr) and is_check(node.value):
                    yield f"{path}: {label(node.value)}", stem, path, node.lineno


def functions(tree, path):
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{path}.{node.name}")
        if isinstance(node, ast.FunctionDef):
            yield f"{path}.{node.name}", node


def is_check(node):
    name = getattr(node, "func", None)
    return getattr(name, "attr", getattr(name, "id", "")) in CHECKS


def label(call):
    if len(call.args) == 2:
        parts = getattr(call.args[1], "values", [call.args[1]])
        return parts[0].value if isinstance(parts[0], ast.Constant) else ast.unparse(call.args[1])
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return f"{name}({', '.join(map(ast.unparse, call.args))[-30:]})"


STATEMENTS = {name: rest for name, *rest in statements()}


def mutate(monkeypatch, name):
    """Take a statement out of the running kernel."""
    stem, path, line = STATEMENTS[name]
    module = MODULES[stem]
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and node.lineno == line:
            node.value = ast.Constant(None)
    install(monkeypatch, module, path, tree)


def install(monkeypatch, module, path, tree):
    """Give a function of a module the code that it has in a tree."""
    space = {"__name__": module.__name__}
    exec(compile(ast.fix_missing_locations(tree), module.__file__, "exec"), space)
    live, changed = module, None
    for part in path.split(".")[1:]:
        live = getattr(live, part)
        changed = getattr(changed, part) if changed else space[part]
    assert live.__code__ != changed.__code__
    monkeypatch.setattr(live, "__code__", changed.__code__)


# ------------------------------------------------------------------------------------ forged proofs


# Statements that forged evidence of claims needs, with a status and an empty domain.
CLAIMS = {
    "checker.refusal: a ": (
        Bound("c", "x <= x + 1", on={"x": (0, 1)}),
        "REFUTED",
        {"witness": {"x": "1"}, "proofs": [plain("1")]},
    ),
    "checker._check: check(t, gap, relation == '<', proof)": (
        Bound("c", "x + 1 <= x", on={"x": (0, 1)}),
        "PROVED",
        {"witness": {"x": "1"}, "proofs": [plain()]},
    ),
    "checker._check: check(xt, gap, False, proof['below'])": (
        Identity("c", "x + 1 = 0*x", on={"x": (0, 1)}),
        "PROVED",
        {"witness": {"x": "1"}, "proofs": [{"below": plain("0")}]},
    ),
    "checker._check: check(ve(gap), False, proof['above'])": (
        Identity("c", "0*x = x + 1", on={"x": (0, 1)}),
        "PROVED",
        {"witness": {"x": "1"}, "proofs": [{"below": plain("x + 1"), "above": plain()}]},
    ),
    "checker._check: a witness in the domain.": (
        Bound("c", "2 <= 1 + 0*x", where=("x < y", "y - x <= 0"), on={"x": (0, 1), "y": (0, 1)}),
        "PROVED",
        {
            "witness": {"x": "1", "y": "1"},
            "proofs": [
                {
                    "rule": "absurd",
                    "fact": E("y - x"),
                    "have": [[encode(negative(parse("y - x"))), False, plain("0 - (y - x)")]],
                }
            ],
        },
    ),
}


def names_of(text):
    """Return the full names of the statements that a row is about."""
    return [name if name.startswith("balls.") else f"rules.{name}" for name in text.split(" & ")]


def read(text):
    facts = [part.strip() for part in text.split(",") if part.strip()]
    return [(parse(part.rstrip("*")), part.endswith("*")) for part in facts]


def case(row):
    names, facts, goal, strict, proof, point = row
    facts, goal = read(facts), parse(goal) if isinstance(goal, str) else goal
    # A name that only the proof and the goal have is not one of the claim.
    known = {s for term, _ in [*facts, (goal, 0)] for s in symbols(term)} - {"zz"}
    values = dict(zip(["x", "zz" if "zz" in symbols(goal) else "y"], point.split(), strict=False))
    return names_of(names), known, facts, goal, bool(strict), proof, values


def sign(term, values):
    """Return the sign of a term at a point, by the kernel's balls; None where it has no value."""
    return balls.sign_at(term, {name: parse(value)[1] for name, value in values.items()})


@pytest.mark.parametrize("row", FORGED, ids=lambda row: row[0])
def test_without_a_check_a_forged_proof_passes(row, monkeypatch):
    names, known, facts, goal, strict, proof, values = case(row)
    values = {**dict.fromkeys(known, "1"), **values}
    assert all(sign(fact, values) >= positive for fact, positive in facts)
    assert sign(goal, values) in ((None, -1, 0) if strict else (None, -1))
    with pytest.raises(Undecided):
        rules.check(rules.Context(known, facts), goal, strict, proof)
    for name in names:
        mutate(monkeypatch, name)
    rules.check(rules.Context(known, facts), goal, strict, proof)


# Conditions inside of expressions: a text of the kernel, a text without the condition, and a forged
# proof as above: facts, a goal, a form or a proof, and a point. Goals of the last rows are strict.
SIGN, KNOWN = "rules.Context._sign", "{True: 2, False: 1, None: 0}"
SIGNS = "{1: 2, 0: 1, -1: 0, None: 0}"
BOUNDS = "[(t.minus(a, term), False), (t.minus(t.plus(term"
OF_FLOOR, OF_MAX = ({"rule": "bound", "of": E(of)} for of in ("floor(x)", "Max(x, y)"))
OF_EXP, OF_POWER = images("exp", "x", "y"), "y**0 - x**0"
WEAK = [
    ("rules.obligations", '("log", "gamma", "uppergamma")', "()", "", "0*log(x)", "0", "-1"),
    ("rules.obligations", " or exponent[1] < 0", "", "", "1/x - 1/x", "0", "0"),
    ("rules.obligations", "if not whole or", "if whole and", "", "sqrt(x) - sqrt(x)", "0", "-1"),
    ("rules.obligations", '">=" if root else ">"', '">="', "x", "x**(-1/2) - x**(-1/2)", "0", "0"),
    (SIGN, "% 2 == 0", "% 1 == 0", "", "x**3", None, "-1"),
    (SIGN, '"exp", "erfc"', '"exp", "erfc", "erf"', "", "erf(x)", None, "-1"),
    (SIGN, SIGNS, SIGNS.replace("-1: 0", "-1: 1"), "", "1 - 2", None, ""),
    (SIGN, "0 if 0 in signs else max(signs)", "max(signs)", "x*", "x - 2", None, "1"),
    (SIGN, "return min(signs)", "return max(signs)", "x*", "x*y", None, "1 -1"),
    (SIGN, "int(signs[0] == 1 and root)", "int(root)", "x*", "x*y**3", None, "1 -1"),
    (SIGN, 'max(signs) if head == "max"', "max(signs) if signs", "x*", "log(x)", None, "1/2"),
    ("rules.Context.sign", "term[1] == 0", "term[1] <= 0", "", "-1", None, ""),
    ("rules._is_outside", "(strict and ball <= 0)", "ball <= 0", "x, -x", "-1", AT_ZERO, "0"),
    ("rules.bounds", "if all(map(context.is_at_least, gaps))", "if True", "", "x - Max(x, y)",
     OF_MAX, "0 1"),
]  # fmt: skip
STRICT = [
    (SIGN, "2 if self.sign(term[1]) == 2 or", "2 if True or", "", "x**2", None, "0"),
    (SIGN, SIGNS, SIGNS.replace("0: 1", "0: 2"), "", "1 - 1", None, ""),
    ("rules.Context.sign", KNOWN, KNOWN.replace("False: 1", "False: 2"), "x", "x", None, "0"),
    ("rules.Context.is_at_least", "1 + strict", "1", "x", "x", None, "0"),
    ("rules._monotone", "minus(high, low), strict)", "minus(high, low))", "y - x", OF_EXP,
     monotone("exp", "x", "y"), "1 1"),
    ("rules._monotone", "rest[0], strict)", "rest[0])", "x*, y - x*", OF_POWER,
     monotone("pow", "x", "y", "0"), "1 2"),
    ("rules._slope", "rises = context.is_at_least(t.minus(end, start), strict)",
     "rises = context.is_at_least(t.minus(end, start))", "y - x", "y - x",
     slope("z", "x", "y"), "1 1"),
    ("rules.bounds", BOUNDS, BOUNDS.replace("False", "True"), "", "x - floor(x)", OF_FLOOR, "1"),
]  # fmt: skip
REPLACED = [(*row, strict) for strict, rows in enumerate((WEAK, STRICT)) for row in rows]


@pytest.mark.parametrize("row", REPLACED, ids=lambda row: " ".join(row[:2]))
def test_without_a_condition_a_forged_proof_passes(row, monkeypatch):
    path, old, new, *rest = row
    module = MODULES[path.split(".")[0]]
    source = inspect.getsource(module)
    assert source.count(old) == 1
    facts, goal, form, point, strict = rest
    proof = form if isinstance(form, dict) else plain(form)
    _, known, facts, goal, strict, proof, values = case((path, facts, goal, strict, proof, point))
    values = {**dict.fromkeys(known, "1"), **values}
    assert all(sign(fact, values) >= positive for fact, positive in facts)
    assert sign(goal, values) in ((None, -1, 0) if strict else (None, -1))
    with pytest.raises(Undecided):
        rules.check(rules.Context(known, facts), goal, strict, proof)
    install(monkeypatch, module, path, ast.parse(source.replace(old, new)))
    rules.check(rules.Context(known, facts), goal, strict, proof)


@pytest.mark.parametrize("name", CLAIMS)
def test_without_a_check_forged_evidence_passes(name, monkeypatch):
    claim, status, evidence = CLAIMS[name]
    claim = standalone(claim)
    assert checker.refusal(claim, status, evidence)
    mutate(monkeypatch, name)
    assert checker.refusal(claim, status, evidence) == ""


def test_a_name_of_a_proof_as_the_constant_of_a_rate_would_prove_any_rate(monkeypatch):
    claim = TOY.resolve(Rate("c", "n**2 =O n", growth={"n": 1}))
    t = claim._size()
    below = let("zz", t, plain(f"(zz - {t})*{t}"))
    above = let("zz", t, plain(f"(zz - {t})*{t} + 2*{t}**2"))
    given = [["sym", "zz"], ["num", "1"], ["num", "0"]]
    evidence = {"witness": {t: "3"}, "given": given, "proofs": [plain(), below, above]}
    check = 'require(symbols(constant) | symbols(scale) <= fixed, "constants in declared symbols.")'
    source = inspect.getsource(claims)
    assert source.count(check) == 1
    assert checker.refusal(claim, "PROVED", evidence) == "constants in declared symbols."
    install(monkeypatch, claims, "claims.Rate.goals", ast.parse(source.replace(check, "pass")))
    assert checker.refusal(claim, "PROVED", evidence) == "a goal about known symbols"
    mutate(monkeypatch, "rules.check: a goal about known symbols")
    assert checker.refusal(claim, "PROVED", evidence) == ""


# Conditions of a point of the domain: each text is taken out, and a witness outside passes.
TOY = Schedule(
    name="toy",
    title="",
    citation="",
    quantities=(Quantity("n", "records", range="[1, oo)", whole=True), Quantity("x", "a number")),
    settings=(Setting("T", "n/x", source="1", rounding="up"),),
)
OUTSIDE = {
    "return whole and all(": ("return all(", {"n": "3/2", "x": "1"}),
    "claim.limits()": ("claim.facts()", {"n": "1", "x": "2"}),
    "sign == 1 or (sign == 0 and not strict) for": ("sign is not None for", {"n": "0", "x": "1"}),
}


@pytest.mark.parametrize("old", OUTSIDE)
def test_without_a_condition_a_witness_outside_passes(old, monkeypatch):
    new, witness = OUTSIDE[old]
    claim = TOY.resolve(Bound("c", "T <= T + 1"))
    evidence = {"witness": witness, "proofs": [plain("1")]}
    assert checker.refusal(claim, "PROVED", evidence) == "a witness in the domain."
    source = inspect.getsource(checker)
    assert source.count(old) == 1
    install(monkeypatch, checker, "checker.contains", ast.parse(source.replace(old, new)))
    assert checker.refusal(claim, "PROVED", evidence) == ""


def test_each_check_has_a_forged_proof_or_a_reason():
    forged = {name for row in FORGED for name in names_of(row[0])} | set(CLAIMS)
    for group, others in ((LIMITS, forged), (REPEATED.keys(), forged | LIMITS)):
        assert not set(group) & others
    assert forged | LIMITS | REPEATED.keys() == STATEMENTS.keys()
