"""Pages of the reference that follow from the code: the API, the command line, the optimizers.

``docs/conf.py`` calls :func:`write_reference` before Sphinx reads the pages. A page is written only
where its text has changed, and none of them is in git.
"""

import doctest
import importlib
import inspect
import re
from argparse import SUPPRESS

from generate import write

from dpcal.commands import GROUPS
from dpcal.commands.cli import _parser
from dpcal.optim.registry import OPTIMIZERS

# Packages and modules with public names. An object is described under the first that has it.
PUBLIC = (
    *(
        "errors",
        "accountants",
        "accountants.events",
        "accountants.correlated",
        "accountants.matrix",
    ),
    *("calibrate", "calibrate.correlated", "calibrate.papers"),
    *("optim", "optim.minimax", "optim.attacks", "optim.registry"),
    *("estimators", "tables", "report", "plot", "adapters.torch", "adapters.opacus"),
    *("adapters.optax", "adapters.flower", "adapters.pipeline_dp", "adapters.loaders"),
    *("adapters.ranks", "adapters.rounds", "adapters.stepwise"),
)

# Names by the question that they answer; a name without a package is of the one before it.
QUESTIONS = {
    "What does a run cost?": """
        accountants.epsilon delta log_delta compare epsilon_profile privacy_profile Epsilon Delta
        LogDelta EpsilonProfile PrivacyProfile Comparison
        CharacteristicAccountant RenyiAccountant renyi_order
        calibrate.compare_samplers SamplerRow compare_batches BatchTable BatchRow Batches
        SampledRun SampledBatches register_sampler""",
    "What does it mean for a person?": """
        accountants.attack_risk trade_off true_positive_rate advantage bayes_success gdp_mu
        trade_off_from_deltas TradeOff Risk""",
    "How much noise does a target need?": """
        calibrate.noise_multiplier noise_multipliers noise_multiplier_for_risk batch_size steps
        sampling_probability compare Calibrated Noise Needed Needs Correlation
        recommend Recommendation""",
    "How is a bound proved?": """
        accountants.certify verify_certificate Certificate""",
    "Which mechanisms are there?": """
        accountants.events accountants.from_pmf from_pld from_profile PrivacyLoss Gaussian
        SampledGaussian grid Grid""",
    "What does correlated noise cost?": """
        accountants.correlated accountants.matrix calibrate.correlated
        calibrate.compare_strategies""",
    "Which plan spends a target?": """
        calibrate.dpsgd noisy_gd correlated_dpsgd kl_spider proximal_point adaptive_gd spiderboost
        tree_spider recursive_regularization jl_glm gauss_psgd distributed_psgd silo_plans dp_rgda
        dp_sgda privatediff sto_spider ada_dp_spider select_point Plan Query Constants""",
    "Which optimizer runs a plan?": """
        optim.run dpsgd noisy_gd correlated_dpsgd kl_spider proximal_point adaptive_gd spiderboost
        tree_spider recursive_regularization jl_glm gauss_psgd distributed_psgd dp_rgda dp_sgda
        privatediff sto_spider ada_dp_spider select_point fit_linear LinearSettings algorithm Run
        Result Progress Trace Selection DistributedResult SecondOrderResult curvature Curvature
        released replaying optim.registry""",
    "Which losses are there?": """
        optim.Logistic Softmax Squared Huber Cauchy Welsch Sigmoid MLP KAN FromGradients Users
        Objective check_objective optim.Minimax optim.minimax""",
    "Who keeps the budget?": """
        optim.BudgetBook Ledger PrivateOracle Oracle Partitioned Silo accountants.Account Odometer
        PrivacyFilter calibrate.releases Release tuning TuningPrice choose_examples""",
    "Is a paper right?": "calibrate.audit theory theorem_at calibrate.papers",
    "Does a run keep its claim?": "optim.attacks",
    "A table": "tables report",
    "scikit-learn": "estimators",
    "PyTorch, Opacus, JAX, Flower, PipelineDP": """
        adapters.torch adapters.opacus adapters.optax adapters.flower adapters.pipeline_dp
        adapters.loaders adapters.ranks adapters.rounds adapters.stepwise""",
    "Pictures": "plot",
    "Errors": "errors",
    "Other names": " ".join(PUBLIC),
}


def write_reference(folder):
    """Write the pages of the reference into a folder, and remove API pages of names that left."""
    pages = {"command_line.md": command_line(), "optimizers.md": optimizers(), **api()}
    for old in {*(folder / "api").glob("*.rst")} - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        write(folder / name, text)


def home(thing):
    """Return the full name under which a function or class is defined; None for other objects."""
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    return None


def public_names():
    """Return the public name of each function and class, by the name where it is defined."""
    found = {}
    for module in PUBLIC:
        for name in importlib.import_module(f"dpcal.{module}").__all__:
            thing = getattr(importlib.import_module(f"dpcal.{module}"), name)
            full = home(thing)
            if full and full.startswith(("dpcal.", "dp_accounting.")):
                found.setdefault(full, f"dpcal.{module}.{name}")
    return found


def grouped():
    """Return public names by question, each name once."""
    left = list(dict.fromkeys(public_names().values()))
    groups = {}
    for question, words in QUESTIONS.items():
        groups[question], module = [], ""
        for word in words.split():
            if word in PUBLIC:
                chosen = [name for name in left if name.rpartition(".")[0] == f"dpcal.{word}"]
            else:
                module = word.rpartition(".")[0] or module
                name = f"dpcal.{module}.{word.rpartition('.')[2]}"
                chosen = [name] if name in left else []
            groups[question] += chosen
            left = [name for name in left if name not in chosen]
    return groups


def api():
    """Return the page of the API, and a page for each public name."""
    lines = [
        titled("API", "="),
        "Every public function and class has a page. Import a name from its package, for example",
        "``from dpcal.accountants import epsilon``; the most common names are also names of",
        "``dpcal`` itself. The :doc:`tutorials </docs/tutorials/first_epsilon>` show how",
        "the names work together.\n",
    ]
    pages = {}
    for question, names in grouped().items():
        if not names:
            continue
        rows = "\n   ".join(f"~{name}" for name in names)
        lines += [titled(question, "-"), f".. autosummary::\n   :nosignatures:\n\n   {rows}\n"]
        for name in names:
            package, _, last = name.rpartition(".")
            thing = getattr(importlib.import_module(package), last)
            kind = "class" if inspect.isclass(thing) else "function"
            kind = "exception" if kind == "class" and issubclass(thing, Exception) else kind
            pages[f"api/{name}.rst"] = (
                f":orphan:\n\n{titled(last, '=')}\n:doc:`API </docs/reference/api>`: {question}\n\n"
                f".. auto{kind}:: {name}\n"
            )
    return {"api.rst": "\n".join(lines), **pages}


def titled(text, line):
    """Return a title in reStructuredText."""
    return f"{text}\n{line * len(text)}\n"


def command_line():
    """Return the page of the commands, from their parsers."""
    lines = [
        "# Command line\n",
        "You can ask every question of this page in a shell: `dpcal COMMAND ...`. For example:\n",
        "    dpcal epsilon --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 "
        "--delta 1e-6\n",
        "Every command can print one JSON document instead of text (`--json`). The exit status is",
        "0 if the command has answered, 1 if a check failed, and 2 for wrong input, with one",
        "sentence that says what is wrong. For Python's names see the [API](api.rst).\n",
    ]
    for group, commands in GROUPS.items():
        lines.append(f"## {group[0].upper()}{group[1:]}\n")
        for name in commands:
            lines += described(name)
    return "\n".join(lines)


def described(name):
    """Return the lines of a command: its use, its options and its examples."""
    parser = _parser(name)
    summary, examples = parser.description, parser.epilog.partition("\n  ")[2]
    use = parser.format_usage().removeprefix("usage: ")
    lines = [f"### dpcal {name}\n", f"{escaped(summary)}\n", "```text", *wrapped(use), "```\n"]
    for action in parser._actions:
        if action.dest in ("help", "json") or action.help == SUPPRESS:
            continue
        words = [f"`{word}`" for word in action.option_strings] or [f"`{action.metavar}`"]
        value = ""
        if action.option_strings and action.nargs != 0:
            value = "" if action.choices else f" `{action.metavar or action.dest.upper()}`"
        meaning = " ".join((action.help or "").replace("%%", "%").split())
        lines.append(f"- {', '.join(words)}{value}: {escaped(meaning)}")
    lines += ["\nFor example:\n", "```sh"]
    for example in examples.splitlines():
        lines += wrapped(example.strip(), " \\")
    return [*lines, "```\n"]


def escaped(text):
    """Return a text in which no character has a meaning of Markdown's."""
    return re.sub(r"([\\`*_<>\[\]|$])", r"\\\1", text)


def wrapped(text, end="", width=84):
    """Return a command in lines that fit a page; each but the last has an end."""
    lines = [""]
    for word in re.findall(r"'[^']*'\S*|\S+", text):
        if len(lines[-1]) + len(word) > width:
            lines[-1] += end
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
    return lines


def example(name, docstring):
    """Return the lines of a docstring's example of an optimizer, up to what its run prints."""
    lines, called = [], False
    for each in doctest.DocTestParser().get_examples(docstring):
        lines += [*each.source.splitlines(), *(f"# {line}" for line in each.want.splitlines())]
        called = called or re.search(rf"(?<!calibrate\.)\b{name}\(", each.source) is not None
        if called and each.want:
            break
    imported = f"from dpcal.optim import {name}"
    known = re.search(rf"import .*\b{name}\b|optim\.{name}\(", "\n".join(lines))
    return lines if known else [imported, *lines]


def optimizers():
    """Return the page of the optimizers, from their rows."""
    lines = [
        "# Optimizers\n",
        "You can call every optimizer on this page in two steps: the plan builder of its name in",
        "`dpcal.calibrate` solves for the noise of a target, and the function of its name in",
        "`dpcal.optim` runs the plan. For example:\n",
        "```python",
        ">>> import numpy as np",
        ">>> from dpcal import calibrate, optim",
        ">>> X = np.random.default_rng(0).standard_normal((5_000, 4))",
        ">>> X /= np.linalg.norm(X, axis=1, keepdims=True)",
        ">>> objective = optim.Logistic(X, X[:, 0] > 0, classes=[0, 1])",
        ">>> plan = calibrate.dpsgd(n=5_000, batch_size=250, epochs=10, epsilon=1.0, delta=1e-6)",
        ">>> print(f'{optim.run(objective, plan, seed=0).epsilon(1e-6).upper:.4f}')",
        "1.0000\n",
        "```\n",
        "Which one to take: [how to choose](../explanation/optimizers.md). Rates leave out",
        "logarithms; n is the number of records, d that of parameters.\n",
        "| optimizer | what it does | for losses that are | rate |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| [`{name}`](#{name.replace('_', '-')}) | {escaped(row.summary)} | {escaped(row.problem)}"
        f" | {escaped(row.measure)} {escaped(row.rate)} |"
        for name, row in OPTIMIZERS.items()
    ]
    for name, row in OPTIMIZERS.items():
        note = " It is here for comparisons, and is not recommended." if row.comparator else ""
        if row.beaten:
            note += f" On convex losses take `{row.beaten}`, which ended lower at the same epsilon."
        lines += [
            f"\n## {name}\n",
            f"{row.summary[0].upper()}{escaped(row.summary[1:])}.{note}\n",
            f"- Plan: {{py:func}}`dpcal.calibrate.{name}`; optimizer: "
            f"{{py:func}}`dpcal.optim.{name}`.",
            f"- Problem: {escaped(row.problem)}.",
            f"- You need to know: {escaped(', '.join(row.needs))}.",
            f"- Rate, {escaped(row.measure)}: {escaped(row.rate)}.",
            f"- Theorem: {escaped(row.theorem)}.",
            f"- Neighboring relations: {', '.join(row.relations)}.",
            f"- Settings of its plan: {', '.join(f'`{each}`' for each in row.options)}.",
        ]
        shown = example(name, inspect.getmodule(row.optimizer()).__doc__)
        if any(f"{name}(" in line for line in shown):
            lines += ["\nFor example:\n\n```python", *shown, "```"]
    lines += ["\n## Next\n", "To add an optimizer, see [your own](../how_to/own_optimizer.md).\n"]
    return "\n".join(lines)
