"""Choose the figures of a spec that are worth moving, and the values that a slider offers. No Streamlit here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.dashboard.editing import Field
from planner.plan import Plan
from planner.report.story import cost_of_kinds, tightest
from planner.spec.document import at
from planner.spec.workloads import WORK
from planner.studies.base.varied import is_whole, multiplied, takes_fractions

MOST = 8
SHARE = 0.1  # by which a figure is moved to compare what it is worth
FACTORS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0)


@dataclass(frozen=True, slots=True)
class Lever:
    """A figure with a slider: the values that it offers, that of the base among them."""

    field: Field
    base: Any
    values: tuple[Any, ...]
    worth: float = 0.0
    """What a tenth of it is worth [as the objective, or in money]; 0 where that is not known."""

    @property
    def path(self) -> str:
        """Return the place of the figure in the spec."""
        return self.field.key

    def place(self, value: Any) -> int:
        """Return the position of a value; that of the base for one that the slider does not offer."""
        return self.values.index(value) if value in self.values else self.values.index(self.base)


def levers(document: Mapping[str, Any], fields: list[Field], plan: Plan | None) -> list[Lever]:
    """Choose at most `MOST` figures of the base spec by what a tenth of each is worth in its plan, the tightest latency among them.

    Without a plan: the first ones of the form.
    """
    by_path = {field.key: lever for field in fields if (lever := _lever(document, field)) is not None}
    worth: dict[str, float] = {}
    for path, gain in _worths(document, plan) if plan is not None and plan.has_answer else ():
        if path in by_path:
            worth[path] = max(gain, worth.get(path, 0.0))
    ranked = sorted(worth, key=lambda path: -worth[path])
    latency = _tightest(document, plan) if plan is not None and plan.has_answer else None
    if latency in by_path:
        ranked = [path for path in ranked if path != latency]
        ranked.insert(min(len(ranked), MOST - 1), latency)
    ranked += [path for path in by_path if path not in ranked]
    return [replace(by_path[path], worth=worth.get(path, 0.0)) for path in ranked[:MOST]]


def _lever(document: Mapping[str, Any], field: Field) -> Lever | None:
    """Build the slider of a field; None where the spec states no number there, and the catalog none or a range."""
    if field.group == "solver":
        return None
    written = at(document, field.key)
    base = field.fallback if written is None and " – " not in field.fallback else written
    fractions = is_whole(base) and takes_fractions(document, field.key)
    if base in (None, "") or multiplied(base, 1.0, fractions=fractions) is None:
        return None
    values = dict.fromkeys(
        base if factor == 1.0 else multiplied(base, factor, fractions=fractions) for factor in FACTORS
    )
    return Lever(field, base, tuple(values)) if len(values) > 2 else None


def _worths(document: Mapping[str, Any], plan: Plan) -> Iterator[tuple[str, float]]:
    """Yield what a tenth of each figure is worth, in the unit of the objective or of money."""
    for row in plan.document["limits"]:
        marginal = max(abs(row["marginal_value"] or 0.0), abs(row["marginal_value_divisible"] or 0.0))
        if marginal:
            yield row["path"], SHARE * marginal * abs(row["limit"])
    kinds = cost_of_kinds(plan)
    offers: dict[str, tuple[str, str]] = {row["offer"]: (row["system"], row["how"]) for row in plan.document["fleet"]}
    for offer, kind in offers.items():
        yield f"{offer}.price", SHARE * kinds.get(kind, 0.0)
    names = {workload["name"]: i for i, workload in enumerate(document["workloads"])}
    for workload in plan.document["workloads"]:
        i = names.get(workload.get("of", workload["name"]))
        for unit in WORK[workload["kind"]]:
            if i is not None:
                yield f"workloads[{i}].{unit}", SHARE * (workload["cost"] or 0.0)


def _tightest(document: Mapping[str, Any], plan: Plan) -> str | None:
    """Return the place of the latency limit that is nearest to its end."""
    names = {workload["name"]: i for i, workload in enumerate(document["workloads"])}
    found = []
    for workload in plan.document["workloads"]:
        row, i = tightest(workload), names.get(workload.get("of", workload["name"]))
        if row is not None and row["slack_s"] is not None and i is not None:
            found.append((row["slack_s"] / row["limit_s"], f"workloads[{i}].slo.{row['metric']}.{row['percentile']}"))
    return min(found)[1] if found else None
