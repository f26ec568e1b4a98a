"""Read the calibration behind prediction intervals from the catalog."""

from __future__ import annotations

import numpy as np

from models.statistics.intervals import TIERS
from planner.problem.intervals import LABELS, Calibration
from planner.resolve.ledger import Ledger


def calibration(ledger: Ledger, model: str) -> Calibration:
    """Read the calibration of a model ("training" or "serving"), its bands booked in the ledger."""
    catalog, labels = ledger.catalog, LABELS[model]
    bands = {
        (tier, label): (
            ledger.value("constants", f"{model}_interval", f"{tier}_{label}_low"),
            ledger.value("constants", f"{model}_interval", f"{tier}_{label}_high"),
        )
        for tier in TIERS
        for label in labels
    }
    seen = catalog.get("constants", f"{model}_seen").figures
    own: dict[tuple[str, str, str], list[float]] = {}
    for key in catalog.get("constants", f"{model}_anchor").figures:
        _, chip, precision, *label = key.split("|")
        for name in label or labels:  # an offset of training holds for all architectures
            own.setdefault((chip, precision, name), []).append(ledger.value("constants", f"{model}_anchor", key))
    missed = catalog.get("constants", f"{model}_residuals")
    return Calibration(
        bands=bands,
        chips=frozenset(name.removeprefix("chip ") for name in seen if name.startswith("chip ")),
        anchors={key: float(np.exp(np.mean(np.log(factors)))) for key, factors in own.items()},
        levels=missed.series("levels"),
        residuals={(tier, label): missed.series(f"{tier}_{label}") for tier in TIERS for label in labels},
        rank_correlation=np.reshape(missed.series("rank_correlation"), (len(labels), len(labels)))
        if missed.get("rank_correlation")
        else None,
    )
