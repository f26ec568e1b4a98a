"""Write the chapter on published rates of whole systems: each with its prediction, and the cause where it lies outside the interval."""

from __future__ import annotations

from pathlib import Path

from catalog.lookup import Catalog
from planner.resolve.stack.anchors import anchor_prediction
from planner.tables import as_markdown


def chapter(path: Path, catalog: Catalog) -> tuple[str, dict[str, str]]:
    """Return the text of the chapter and no plots; the rates are the catalog's, so that `path` is not read."""
    rows = []
    for anchor in catalog.records("anchors"):
        found = anchor_prediction(catalog, anchor)
        predicted = "none" if found is None else f"{found.rate:,.0f} ({found.low:,.0f} to {found.high:,.0f})"
        rows.append({
            "published rate": anchor.name, "grade": anchor.words("grade"), "tokens/s per chip": f"{anchor.value('rate'):,.0f}",
            "predicted, 80 % of runs": predicted, "cause": anchor.words("cause"),
        })  # fmt: skip
    intro = "Rates of whole systems that the catalog cites, predicted at their own conditions. A cause stands where the prediction lies outside its interval, or where there is none."
    return f"## Anchors\n\n{intro}\n\n{as_markdown(rows)}\n", {}
