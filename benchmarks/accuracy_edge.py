"""Write the chapter on edge devices of the accuracy report: rows of serving.csv on chips that are sold as boards and modules."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from accuracy_scores import Scored, checks, errors, percent
from accuracy_serving import METRICS

from catalog.lookup import Catalog
from planner.tables import as_markdown

FORMS = ("module", "card", "board", "computer")  # forms of the systems of one chip that stand outside a data centre
GOALS = {"tpot": "≤ 15 %", "throughput": "≤ 15 %", "ttft": "≤ 35 %"}
CAUSES = Path(__file__).with_name("accuracy_edge_causes.md")  # what is off, and what was tried


def chapter(path: Path, catalog: Catalog) -> tuple[str, dict[str, str]]:
    """Return (text, no plots)."""
    scored = Scored(path, catalog, ("group",))
    chips = edge_chips(catalog)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i in np.flatnonzero(scored.use & np.array([m.chip in chips for m in scored.rows])):
        signed = math.expm1(scored.left["group"][i] - scored.measured[i])
        for name in ("all", scored.rows[i].chip):
            found[name, scored.labels[i]].append(signed)
    goals = [
        (f"edge devices, leave-group-out, {METRICS[name]}: median", goal, f"{percent(np.median(np.abs(found['all', name])))} of {len(found['all', name])}")
        for name, goal in GOALS.items()
    ]  # fmt: skip
    by_chip = sorted(found.items(), key=lambda item: (item[0][0] != "all", item[0][0], list(METRICS).index(item[0][1])))
    table = [{"chip": chip, "metric": METRICS[name], **errors(signed)} for (chip, name), signed in by_chip]
    parts = [
        "## Edge",
        "Rows of grade A and B on the chips of boards, modules, cards and small computers of the catalog, and their relatives of one family. "
        "All constants are fitted anew without the five folds of (source, architecture, chip) in turn, on servers and edge devices alike.",
        as_markdown(checks(goals)),
        as_markdown(table),
        "Rows without a prediction: " + refused(scored, catalog, chips),
        CAUSES.read_text(encoding="utf-8"),
    ]  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n", {}


def edge_chips(catalog: Catalog) -> set[str]:
    """List the chips that are sold in systems of one chip for the edge, and unsold ones of families that are sold in no other way."""
    sold: dict[str, list[bool]] = defaultdict(list)
    for system in catalog.records("systems"):
        name = system.words("chip") or ""
        if catalog.has("chips", name):
            edge = system.words("form") in FORMS and system.value("chips") == 1.0
            sold[catalog.get("chips", name).name].append(edge)
    own = {name for name, each in sold.items() if any(each)}
    family = {chip.name: chip.words("family") for chip in catalog.records("chips")}
    elsewhere = {family[name] for name in sold if name not in own}
    relatives = {family[name] for name in own} - elsewhere
    return own | {name for name in family if name not in sold and family[name] in relatives}


def refused(scored: Scored, catalog: Catalog, chips: set[str]) -> str:
    """Count the rows on these chips that are not predicted, by reason."""
    found = Counter(
        reason
        for row, reason in scored.measurements.refused
        if catalog.has("chips", row.text["chip"]) and catalog.get("chips", row.text["chip"]).name in chips
    )
    return "; ".join(f"{reason}: {count}" for reason, count in found.most_common()) + "."
