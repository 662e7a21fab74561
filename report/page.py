"""What would a lawyer read? The statement of a report as one page of HTML, which needs no network.

>>> page = statement_page({
...     "written": "2026-01-01T00:00:00+00:00",
...     "privacy": {"unit": "one record",
...                 "neighboring_relation": "replace-special",
...                 "mechanism": "Noise <was> added.", "covered": "the model",
...                 "not_covered": ["x"]},
...     "data": {"name": "a.csv", "read_from_data": []},
...     "runs": [{"epsilon": {"upper": 1.0, "accountant": "characteristic", "method": "contour"},
...               "delta": 1e-6, "complete": True, "message": "took all 3 planned steps"}],
...     "risk": {"false_positive_rate": 0.01, "true_positive_rate": 0.03},
...     "software": {"dpcal": "0.1.0"},
... }, pictures={})
>>> "Noise &lt;was&gt; added." in page, "at most 3.0 percent" in page, "http" in page
(True, True, False)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from html import escape
from typing import Any

__all__ = ["RELATIONS", "STYLE", "statement_page", "up"]

# This says what each relation means, for people who have not met the word.
RELATIONS = {
    "add-or-remove-one": "the record is in the table, or it is not",
    "replace-special": "the record is in the table, or it is blanked, so that it contributes "
    "nothing; the number of records is the same",
    "replace-one": "the record is in the table, or another one is in its place",
}

STYLE = """\
:root { color-scheme: light dark; --ink: #1a1d21; --quiet: #5a6270; --line: #d5d9e0;
  --paper: #ffffff; --soft: #f4f6f8; --mark: #005a9c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --quiet: #a3abb8; --line: #3a414c; --paper: #15181c; --soft: #1e2329;
    --mark: #7cc0f5; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 2.5rem 1.5rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
p, ul { margin: .5rem 0; }
li { margin: .3rem 0; }
.quiet { color: var(--quiet); font-size: .92rem; }
.claim { background: var(--soft); border-left: 4px solid var(--mark); padding: 1rem 1.2rem;
  margin: 1.4rem 0; font-size: 1.08rem; }
.early { border-left-color: #b25000; }
p, table:not(.grid) td { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; width: 36%; }
table.grid { display: block; overflow-x: auto; }
table.grid th { width: auto; }
code, pre { font: .9em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; }
figure { margin: 1rem 0; border: 1px solid var(--line); padding: .6rem; overflow-x: auto; }
figcaption { color: var(--quiet); font-size: .92rem; }
figure svg { display: block; width: 100%; min-width: 40rem; height: auto; }
@media (prefers-color-scheme: dark) { figure svg { filter: invert(.9) hue-rotate(180deg); } }
@media print {
  :root { --ink: #000; --quiet: #444; --line: #bbb; --paper: #fff; --soft: #fff; --mark: #000; }
  @page { margin: 16mm; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2, li, tr, figure, table, .claim { break-inside: avoid; }
  h2, li:first-child, p:has(+ ul), p:has(+ pre) { break-after: avoid; }
  li:last-child { break-before: avoid; }
  thead { display: table-header-group; }
  .details { break-before: page; }
  pre { white-space: pre-wrap; }
}
"""


def statement_page(document: Mapping[str, Any], *, pictures: Mapping[str, str]) -> str:
    """Return the statement of a report as a page of HTML.

    Parameters
    ----------
    document
        What ``report.json`` says.
    pictures
        SVG texts, by what they show.
    """
    name = document["data"]["name"]
    parts = [
        f"<h1>Privacy statement: {escape(name)}</h1>",
        f'<p class="quiet">Written {escape(document["written"])} by dpcal '
        f"{escape(document['software'].get('dpcal', ''))}</p>",
        *_risk(document),
        *_claim(document),
        *_released(document.get("release", {})),
        *_evaluation(document.get("evaluation", {})),
        *_numbers(document),
        '<div class="details">',
        *_read_from_data(document),
        *_steps(document.get("steps", ())),
        "<h2>What is covered</h2>",
        f"<p>{escape(_sentence(document['privacy']['covered']))}</p>",
        f"<p>{escape(document['privacy']['mechanism'])}</p>",
        "<h2>What is not covered</h2>",
        _listed(document["privacy"]["not_covered"]),
        *(
            f"<figure>{_inline(svg)}<figcaption>{escape(what)}</figcaption></figure>"
            for what, svg in pictures.items()
        ),
        *_verifying(document),
        "</div>",
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Privacy statement: {escape(name)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _claim(document: Mapping[str, Any]) -> list[str]:
    """Return the claim in words; of several runs, the claim of all of them together."""
    runs, count = document["runs"], _models(document)
    paid = runs[0] if len(runs) == 1 else document["everything"]
    upper, delta = float(paid["epsilon"]["upper"]), float(paid["delta"])
    relation = document["privacy"]["neighboring_relation"]
    factor = math.exp(upper) if upper < 700 else math.inf
    what = "trained model is" if count == 1 else f"{count} trained models together are"
    whole = "model" if count == 1 else "models"
    if "release" in document:
        what, whole = "released numbers together are", "numbers"
    words = (
        f"The {what} ({up(upper)}, {delta:g})-differentially private. Take two worlds "
        f"that differ in {document['privacy']['unit']}: {RELATIONS[relation]}. Whatever anybody "
        f"computes from the {whole}, and whatever they know already, no finding is more than "
        f"{up(factor, 3)} times as likely in one world as in the "
        f"other, apart from a probability of {delta:g}."
    )
    parts = [f'<p class="claim">{escape(words)}</p>']
    for run in runs:
        if not run["complete"]:
            early = (
                f"A run ended early: it {run['message']}. It is charged as planned all the same."
            )
            parts.append(f'<p class="claim early">{escape(early)}</p>')
    return parts


def _models(document: Mapping[str, Any]) -> int:
    """Return the number of models; silos have one in common."""
    runs = document["runs"]
    return 1 if all("silo" in run for run in runs) else len(runs)


def _numbers(document: Mapping[str, Any]) -> list[str]:
    """Return the section with the claim in numbers."""
    runs, privacy = document["runs"], document["privacy"]
    paid = runs[0] if len(runs) == 1 else document["everything"]
    price, relation = paid["epsilon"], privacy["neighboring_relation"]
    rows = [
        ("Epsilon, at most", up(float(price["upper"]), 6)),
        ("Delta", f"{paid['delta']:g}"),
        ("Unit of privacy", privacy["unit"]),
        ("Neighboring relation", f"{relation}: {RELATIONS[relation]}"),
        ("Computed by", f"{price['accountant']} accountant ({price['method']}), rounded up"),
    ]
    if price.get("label"):
        rows.append(("How sure the price is", str(price["label"])))
    budget = document.get("budget")
    if budget:
        rows.append(
            (
                "Budget book",
                f"run {budget['run']} of {budget['name']}: its runs spent at most epsilon "
                f"{up(float(budget['spent']))} of {budget['epsilon']:g} at delta "
                f"{budget['delta']:g}, for {budget['unit']}",
            )
        )
    for key, words in (
        ("public_training_records", "Public number of training records"),
        ("public_training_persons", "Public number of persons to train on"),
        ("training_records", "Training records"),
        ("training_persons", "Persons they are about"),
        ("held_out_records", "Held-out records"),
        ("holdout_records", "Records that candidates were tested on"),
        ("public_rows", "Public number of rows"),
        ("rows", "Rows"),
    ):
        if key in document["data"]:
            rows.append((words, str(document["data"][key])))
    parts = ["<h2>The claim in numbers</h2>", _table(rows)]
    if _models(document) == 1 < len(runs):
        parts += ["<p>Each silo pays for the answers of its own records alone.</p>"]
    elif len(runs) > 1:
        parts += [
            "<p>Whoever sees one of these models, and no other, sees what it costs alone:</p>",
            _each_run(runs),
        ]
    return parts


def _each_run(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with a row for the runs of each target."""
    groups: dict[tuple[float, float], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((float(run["plan"]["epsilon"]), float(run["delta"])), []).append(run)
    head = ["models", "epsilon of one, at most", "delta", "noise multiplier", "answers"]
    cells = []
    for (_, delta), group in groups.items():
        upper = max(float(run["epsilon"]["upper"]) for run in group)
        query = group[0]["plan"]["queries"][0]
        cells.append(
            [
                str(len(group)),
                up(upper, 6),
                f"{delta:g}",
                f"{query['noise_multiplier']:.5g}",
                f"{query['count']} x {query['kind']}",
            ]
        )
    return _grid(head, cells)


def _released(found: Mapping[str, Any]) -> list[str]:
    """Return the section with the released statistics."""
    if not found:
        return []
    keys = ("statistic", "value", "standard_error", "low", "high")
    cells = []
    for row in found["statistics"]:
        groups = [f"{name} {row[name]}" for name in row if name not in keys]
        numbers = ["-" if row[key] is None else f"{row[key]:.6g}" for key in keys[1:]]
        cells.append([str(row["statistic"]), ", ".join(groups), *numbers])
    words = (
        f"Each interval holds the table's own number with probability {found['confidence']:.0%} or "
        "more over the noise."
    )
    head = ["statistic", "of", "value", "standard error", "from", "to"]
    return ["<h2>What was released</h2>", f"<p>{words}</p>", _grid(head, cells)]


def _risk(document: Mapping[str, Any]) -> list[str]:
    """Return the sentence on the power of an attacker."""
    risk = document.get("risk")
    if not risk:
        return []
    rate, power = risk["false_positive_rate"], float(risk["true_positive_rate"])
    words = (
        f"An attacker who wants to tell who is in the table, and is wrong about {rate:.0%} of "
        f"those who are not, finds at most {up(100 * power, 2)} percent of those who are, "
        f"whatever the attack is. Guessing finds {rate:.0%}."
    )
    return [f'<p class="claim">{escape(words)}</p>']


def _read_from_data(document: Mapping[str, Any]) -> list[str]:
    """Return the section on what was read off the records without protection."""
    listed = document["data"].get("read_from_data", [])
    parts = ["<h2>What was read from the data</h2>"]
    if not listed:
        return [*parts, "<p>Nothing: everything else was given in public.</p>"]
    return [*parts, "<p>These may tell of records, and no noise covers them:</p>", _listed(listed)]


def _evaluation(found: Mapping[str, Any]) -> list[str]:
    """Return the section on the scores of the model, and how they were computed."""
    if not found:
        return []
    parts = ["<h2>How good the model is</h2>"]
    how = found.get("held_out")
    if how == "left out":
        reason = f": {found['reason']}" if "reason" in found else ""
        return [*parts, f"<p>{escape(_sentence(f'Not measured{reason}'))}</p>"]
    if how == "noisy":
        words = (
            "From noisy counts about records that played no part in training. These records are "
            f"protected by an epsilon of at most {up(float(found['epsilon']['upper']))} at delta "
            f"{found['delta']:g}; each record pays for training or for this, never for both."
        )
    else:
        words = (
            "From held-out records without noise. These records are not protected: the numbers "
            "below may tell of them."
        )
    parts.append(f"<p>{escape(words)}</p>")
    rows = []
    if "accuracy" in found:
        rows = [
            ("Area under the ROC curve", _scored(found, "auc")),
            ("Accuracy", _scored(found, "accuracy", "standard_error")),
            ("Always answering the larger class", f"{found['majority_baseline']:.3f}"),
        ]
    elif "baseline" in found:
        rows = [
            ("Root mean squared error", _scored(found, "root_mean_squared_error")),
            ("The same of a constant", _scored(found, "baseline")),
        ]
    parts.append(_table(rows))
    for sentence in found.get("warnings", []):
        parts.append(f'<p class="claim early">{escape(_sentence(sentence))}</p>')
    return [*parts, *(_tables(found) if "confusion" in found else ())]


def _tables(found: Mapping[str, Any]) -> list[str]:
    """Return the tables of a classifier: confusion, thresholds and calibration."""
    parts = []
    said = list(found["confusion"])
    head = ["true class", *(f"answered {label}" for label in said)]
    error = found["confusion_standard_error"]
    cells = [
        [true, *(_with_error(row[label], error, ".0f") for label in said)]
        for true, row in found["confusion"].items()
    ]
    parts.append(_grid(head, cells))
    names = ("recall", "false_alarms", "precision")
    head = ["said from", *(name.replace("_", " ") for name in names)]
    cells = [
        [f"{row['threshold']:g}", *(_scored(row, name) for name in names)]
        for row in found["thresholds"]
    ]
    parts.append(_grid(head, cells))
    head = ["probability said", "share observed", "records"]
    cells = [
        [
            f"{row['from']:g} to {row['to']:g}",
            _scored(row, "observed", "standard_error"),
            f"{row['records']:.0f}",
        ]
        for row in found["calibration"]
    ]
    parts.append(_grid(head, cells))
    return parts


def _scored(found: Mapping[str, Any], name: str, error: str = "") -> str:
    """Return a score with its standard error."""
    off = found[error or f"{name}_standard_error"]
    return _with_error(found[name], off, ".3f" if error or name in _SHARES else ".4g")


_SHARES = ("auc", "recall", "false_alarms", "precision")


def _with_error(value: float | None, error: float | None, digits: str) -> str:
    """Return a number with its standard error; a bar where the error is the larger one."""
    if value is None or error is None or error > abs(value):
        return "-"
    return f"{value:{digits}} \u00b1 {error:.2g}" if error else f"{value:{digits}}"


def _verifying(document: Mapping[str, Any]) -> list[str]:
    """Return the section on how to verify the report."""
    words = (
        "report.json, beside this page, lists every noisy answer that was planned and every one "
        "that was given. From it alone the claim can be computed again:"
    )
    parts = ["<h2>How to verify</h2>", f"<p>{escape(words)}</p>"]
    parts.append("<pre>dpcal verify FOLDER</pre>")
    mark = document["data"].get("fingerprint")
    if mark and mark["algorithm"].startswith("hmac"):
        told = (
            "Who holds the key of the fingerprint can show which records it was about: "
            f"{mark['algorithm']} {mark['value']}."
        )
        parts.append(f'<p class="quiet">{escape(told)}</p>')
    versions = ", ".join(f"{name} {version}" for name, version in document["software"].items())
    parts.append(f'<p class="quiet">{escape(versions)}</p>')
    return parts


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows]
    return f"<table>{''.join(lines)}</table>"


def _grid(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table class="grid"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _steps(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the section with the steps of a model."""
    words = [f"{step['name']} ({step['type']}): {step['is']}" for step in steps]
    return ["<h2>Steps of the model</h2>", _listed(words)] if words else []


def _listed(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def _inline(svg: str) -> str:
    """Return an SVG text without what stands before its first element."""
    return re.sub(r"^.*?(?=<svg)", "", svg, count=1, flags=re.DOTALL)


def up(value: float, digits: int = 4) -> str:
    """Return a number to so many significant digits, rounded up."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = exact.quantize(step, rounding=ROUND_CEILING)
    return f"{rounded:f}" if -5 < exact.adjusted() < 7 else f"{rounded:.{digits - 1}e}"
