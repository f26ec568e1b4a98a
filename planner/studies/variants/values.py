"""Give a case other values of its own keys, or of the latency of its fabric: `layouts --sweep` and `estimate --sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.spec.document import edited
from planner.spec.stack.case import Case
from planner.studies.sweeps.varied import Varied, grid, read_varied
from planner.studies.variants.variant import Document, Variant

OPTION = "--sweep"
HOP_LATENCY = "fabric.latency"
"""Short name of the latency of a hop through a switch of the case's fabric."""


def swept(document: Document, texts: Sequence[str]) -> list[Variant]:
    """List all combinations of values, each text `PATH=V1,V2` or `PATH=A:B:N`; PATH is a key of the case, or `fabric.latency`.

    Raises SpecError with every text that is not understood and every path that leads nowhere.
    """
    hops = [text for text in texts if text.partition("=")[0].strip() == HOP_LATENCY]
    own = [text for text in texts if text not in hops]
    problems: list[Issue] = []
    varied: list[Varied] = []
    for group, base in ((own, document), (hops, {})):
        try:
            varied += read_varied(group, base, OPTION) if group or not texts else []
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return [Variant(point, _edited(document, point)) for point in grid(varied, OPTION)]


def _edited(document: Document, point: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a case with the values of one combination."""
    changed = edited(document, tuple((path, value) for path, value in point.items() if path != HOP_LATENCY))
    if HOP_LATENCY in point:
        fabric = changed.get("fabric", Case.model_fields["fabric"].default)
        note = Message.of("estimate.swept_latency").text()
        overrides = changed.setdefault("overrides", {})
        overrides[f"fabrics/{fabric}/hop_latency_s"] = {"value": point[HOP_LATENCY], "note": note}
    return changed
