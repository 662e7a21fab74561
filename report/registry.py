"""What does a report know of an entry in the registry of deployments? Its fields, others marked.

The fields are those of the entries of the Differential Privacy Deployments Registry (Nanayakkara,
Ghazi and Vadhan 2025, Practitioners' perspectives on a differential privacy deployment registry,
arXiv:2509.13509, section 3; github.com/opendp/deployments-registry-data). Its files are YAML, of
which JSON is a part.

>>> from dpcal.report.registry import UNKNOWN
>>> UNKNOWN
'(not known to dpcal)'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["UNKNOWN", "registry_entry"]

# What stands where only the deployment's owner can tell.
UNKNOWN = "(not known to dpcal)"

_METRICS = {
    "add-or-remove-one": "symmetric distance: a record is added or removed",
    "replace-one": "change-one distance: a record is replaced",
    "replace-special": "a record is blanked, and contributes nothing; their number is the same",
}


def registry_entry(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a draft of the registry's entry for a report.

    Parameters
    ----------
    document
        A ``report.json`` whose claims hold.
    """
    released = "release" in document
    privacy, whole = document["privacy"], document["everything"]
    name, price = str(document["data"]["name"]), whole["epsilon"]
    unprotected = [str(each) for each in document["data"].get("read_from_data", [])]
    return {
        "url_slug": UNKNOWN,
        "status": "Draft",
        "tier": UNKNOWN,
        "deployment": {
            "product": {
                "name": name,
                "data_curators": [UNKNOWN],
                "intended_use": UNKNOWN,
                "data_product_type": "Summary statistics" if released else "Machine learning model",
                "data_product_region": UNKNOWN,
                "description": UNKNOWN,
                "publication_date": UNKNOWN,
                "data_product_sector": UNKNOWN,
            },
            "dp_flavor": {
                "name": "Approximate DP",
                "input_metric": _METRICS[privacy["neighboring_relation"]],
                "bound_on_input_distance": 1,
                "output_measure": "hockey-stick divergence at e^epsilon",
                "bound_on_output_distance": whole["delta"],
                "data_domain": UNKNOWN,
                "unprotected_quantities": ", ".join(unprotected) or "None.",
            },
            "privacy_loss": {
                "privacy_unit": "User-level" if "person" in privacy["unit"] else "Record-level",
                "privacy_unit_description": privacy["unit"],
                "privacy_parameters": {"epsilon": price["upper"], "delta": whole["delta"]},
                "privacy_parameters_description": "Upper bounds of everything in the report, "
                "computed again from its ledger by 'dpcal verify'.",
            },
            "model": {
                "model_name": "Central" if "silo" not in document["runs"][0] else "Distributed",
                "actors": UNKNOWN,
                "release_type": UNKNOWN,
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": UNKNOWN,
                "composition": _composition(document),
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": UNKNOWN,
                "mechanisms": " ".join([privacy["mechanism"], *privacy["not_covered"]]),
                "justification": UNKNOWN,
            },
            "resources": {"sources": UNKNOWN, "registry_authors": [UNKNOWN]},
        },
    }


def _composition(document: Mapping[str, Any]) -> str:
    """Return how the answers of all runs were composed, and by which software."""
    price, runs = document["everything"]["epsilon"], document["runs"]
    answers = sum(query["count"] for run in runs for query in run["plan"]["queries"])
    return (
        f"{len(runs)} runs with {answers} planned answers, composed by the {price['accountant']} "
        f"accountant of dpcal {document['software'].get('dpcal', '')}, rounded up. Runs of other "
        "reports about the same records are not in it."
    )
