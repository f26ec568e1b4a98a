"""Answer each variant of a case as `estimate` does, and compare it with the first.

Variants share the constants of the models, so that ratios between them are surer than the figures themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.units import MILLI
from models.training.layouts import CODES
from planner.errors import Issue, SpecError
from planner.estimate.answer import SERVING, TRAINING, estimate
from planner.estimate.limits import SearchLimits
from planner.estimate.profile.pooled import layout_words
from planner.messages import Message
from planner.studies.variants.features import without
from planner.studies.variants.values import swept
from planner.studies.variants.variant import Document, Variant


@dataclass(frozen=True, slots=True)
class Variants:
    """The answers of all variants: one row each, the first of which is the base that `relative` compares with."""

    rows: list[dict[str, Any]]
    left: dict[str, Any]

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON, in SI."""
        return {"variants": self.rows, **self.left}

    @property
    def table(self) -> list[dict[str, Any]]:
        """Return the rows for people."""
        return [_shown(row) for row in self.rows]


def variants_of(document: Document, names: Sequence[str] | None, texts: Sequence[str]) -> list[Variant]:
    """List the variants without the features of `names`, or with the values of `texts`. Raises SpecError, also where both are given."""
    if names is not None and texts:
        raise SpecError([Issue("--without", Message.of("estimate.without_or_sweep").text())])
    return swept(document, texts) if names is None else without(document, names)


def answer_variants(
    variants: Sequence[Variant], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> Variants:
    """Answer each variant as `estimate` does, as far as the limits let it. Raises SpecError with the problems of an invalid variant."""
    limits = limits or SearchLimits()
    rows: list[dict[str, Any]] = []
    for variant in limits.within(variants):
        found = estimate(variant.document, overlays, limits)
        if found.answer is not None and found.answer.get("layouts", {}).get("not_tried"):
            break  # the best layout of a search that was cut short compares with nothing
        figures = {"reason": found.reason} if found.answer is None else _figures(found.answer)
        rows.append({"changes": dict(variant.changes), **figures})
    if not rows:
        limits.check()
    base = rows[0].get("tokens_per_s")
    for row in rows:
        row["relative"] = row["tokens_per_s"] / base if base and "tokens_per_s" in row else None
    return Variants(rows, limits.left_out("variants", len(variants) - len(rows), len(variants)))


def _figures(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the figures of an answer that variants are compared by."""
    if answer["kind"] == SERVING:
        latency = answer["latency_s"]
        return {
            **{key: answer[key] for key in ("mode", "requests_per_s", "tokens_per_s", "tokens_per_s_per_chip")},
            **{f"{metric}_p95_s": latency[metric]["p95"] for metric in ("ttft", "tpot")},
        }
    time = "step_s" if answer["kind"] == TRAINING else "iteration_s"
    layout = {"layout": answer["layout"]} if answer["kind"] == TRAINING else {}
    return {**layout, time: answer[time], "tokens_per_s": answer["tokens_per_s"], "mfu": answer["mfu"]}


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Format the row of a variant."""
    shown = {**row["changes"]}
    if "reason" in row:
        return shown | {Message.of("estimate.head_reason").text(): row["reason"]}
    if "layout" in row:
        shown[Message.of("column.layout").text()] = layout_words(
            {name: size for name, size in row["layout"].items() if name not in CODES}
        )
    for key, code, scale, form in COLUMNS:
        if row.get(key) is not None:
            shown[Message.of(code).text()] = form.format(row[key] / scale)
    return shown


COLUMNS = (
    ("requests_per_s", "estimate.head_requests", 1.0, "{:,.4g}"),
    ("step_s", "estimate.head_step_time", 1.0, "{:.4g}"),
    ("iteration_s", "estimate.head_iteration_time", 1.0, "{:.4g}"),
    ("tokens_per_s", "estimate.head_tokens", 1.0, "{:,.0f}"),
    ("tokens_per_s_per_chip", "estimate.head_per_chip", 1.0, "{:,.1f}"),
    ("ttft_p95_s", "estimate.head_ttft", MILLI, "{:,.0f}"),
    ("tpot_p95_s", "estimate.head_tpot", MILLI, "{:,.1f}"),
    ("mfu", "column.mfu", 1.0, "{:.1%}"),
    ("relative", "estimate.head_relative", 1.0, "{:.4g}x"),
)
"""Figures of a row, with the head of their column, the unit in SI and the format."""
