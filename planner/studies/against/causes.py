"""Say why a plan changed: the difference of two plans by cause, from new plans of the old spec with ever more of the new figures.

The old plan's spec is solved by this release with every figure that the old plan recorded, then with the new prices, the new figures of systems,
the other new figures and the new constants of the models, and last as the new spec. Each step's change is the amount of its cause; the rest of
the difference of both plans is the product's: models, rules and search of two releases, and whatever no figure states. The amounts add up to
the difference by construction. Not here: which parts of the plans differ (`planner.studies.compare`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.units import is_money
from planner.errors import Issue, SpecError
from planner.formulate.limits import Unbounded
from planner.messages import Message, enumerated, say
from planner.plan import Plan
from planner.report.words import amount, share_words, signed
from planner.solving.standing import Progress
from planner.solving.variants import Variants, resolved_anew
from planner.spec.changes import spec_changes
from planner.spec.document import edited
from planner.spec.model import parse_spec
from planner.studies.base.planned import SAME, solved, study_options
from planner.studies.compare import compare
from planner.studies.comparison_words import MAX_TEXT
from planner.verify.claims.earlier import recorded_figures

PRICES, HARDWARE, FIGURES, MODELS, SPEC, PRODUCT = "prices", "hardware", "figures", "models", "spec", "product"
CAUSES = (PRICES, HARDWARE, FIGURES, MODELS)
"""Causes that are figures of the catalog, in the order in which the new ones are taken up."""
OF_HARDWARE = ("chips", "systems", "fabrics", "power_curves")
ALIKE = 1e-9  # relative: figures that differ by less are the same
MOST_SHOWN = 20
TOTAL_S = 900.0
Figures = dict[str, dict[str, Any]]
"""Figures of the catalog by path, as a plan recorded them."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of the catalog, or a place of the spec, that differs; None where a plan does not have it."""

    cause: str
    path: str
    first: Any
    second: Any

    @property
    def size(self) -> float:
        """Return |ln(second / first)| of positive numbers, which sorts them; infinite for all else."""
        numbers = [value for value in (self.first, self.second) if isinstance(value, int | float) and value > 0]
        return abs(math.log(numbers[1] / numbers[0])) if len(numbers) == 2 else math.inf

    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        return {"cause": self.cause, "path": self.path, "first": self.first, "second": self.second}


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause with the number of its changes, and its amount of the objective; None where the step has no plan, and its amount is in the rest."""

    kind: str
    changes: int
    amount: float | None
    value: float | None = None

    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        return {"cause": self.kind, "changes": self.changes, "amount": self.amount, "value": self.value}


@dataclass(frozen=True, slots=True)
class Why:
    """The difference of two plans by cause. `start`: what the old spec with its own figures comes to in this release; None where nothing was solved."""

    first: Plan
    second: Plan
    start: float | None
    causes: tuple[Cause, ...]
    changes: tuple[Change, ...]

    @property
    def difference(self) -> float:
        """Subtract the objective of the first plan from that of the second."""
        return self.second.value - self.first.value

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "first": {"name": self.first.document["name"], "value": self.first.value, "release": _release(self.first)},
            "second": {"name": self.second.document["name"], "value": self.second.value, "release": _release(self.second)},
            "unit": self.first.objective["unit"],
            "difference": self.difference,
            "start": self.start,
            "causes": [cause.row() for cause in self.causes],
            "changes": [change.row() for change in self.changes],
        }  # fmt: skip

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the causes as one flat table."""
        return [cause.row() for cause in self.causes]

    @property
    def words(self) -> list[str]:
        """Say what the plans differ by, which causes make it up, and which releases made them."""
        words, unit = compare(self.first, self.second).words[:1], self.first.objective["unit"]
        known = [cause for cause in self.causes if abs(cause.amount or 0.0) > SAME * abs(self.first.value)]
        if known:
            parts = [say("cause.part", cause=say(f"cause.{c.kind}"), amount=_signed(c.amount or 0.0, unit)) for c in known]  # fmt: skip
            words.append(say("cause.parts", parts=enumerated(parts)))
        if self.start is not None and abs(self.start - self.first.value) > ALIKE * abs(self.first.value):
            words.append(say("cause.start", value=f"{amount(self.start)} {unit}", first=f"{amount(self.first.value)} {unit}"))  # fmt: skip
        releases = [_release(plan) for plan in (self.first, self.second)]
        if releases[0] != releases[1]:
            words.append(say("cause.releases", first=releases[0], second=releases[1]))
        lost = [say(f"cause.{cause.kind}") for cause in self.causes if cause.amount is None]
        return [*words, *([say("cause.without_plan", names=enumerated(lost))] if lost else [])]

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows): the causes, and the largest changes."""
        unit = self.first.objective["unit"]
        share = abs(self.first.value) or 1.0
        causes = [
            {
                say("cause.column_cause"): say(f"cause.{cause.kind}"),
                say("cause.column_changes"): "" if cause.kind == PRODUCT else f"{cause.changes:,}",
                say("cause.column_amount", unit=unit): "" if cause.amount is None else signed(cause.amount),
                say("cause.column_share"): "" if cause.amount is None else share_words(cause.amount / share, "+.2%"),
            }
            for cause in self.causes
        ]
        changes = [
            {
                say("cause.column_cause"): say(f"cause.{change.cause}"),
                say("cause.column_path"): change.path,
                say("against.first"): _shown(change.first),
                say("against.second"): _shown(change.second),
            }
            for change in self.changes[:MOST_SHOWN]
        ]
        return [(say("cause.head_causes"), causes), (say("cause.head_changes"), changes)]


def why(
    first: Plan, second: Plan, *, overlays: Sequence[Path] = (), limits: Mapping[str, str] = {}, total_s: float = TOTAL_S,
    progress: Progress | None = None,
) -> Why:  # fmt: skip
    """Attribute the difference of two plans to causes. `limits`: `time_limit` and `memory` of each new plan.

    Raises SpecError for a plan without an answer, and for plans in two currencies or with two objectives.
    """
    _check(first, second)
    say_, ends = progress or (lambda line: None), time.perf_counter() + total_s
    figures, new = recorded_figures(first.document), recorded_figures(second.document)
    changes = [*_changed_figures(figures, new), *_changed_spec(first, second)]
    changes.sort(key=lambda change: ((*CAUSES, SPEC).index(change.cause), -change.size, change.path))
    counts = {kind: sum(change.cause == kind for change in changes) for kind in (*CAUSES, SPEC)}
    specs = [_asked(plan, first, limits) for plan in (first, second)]
    start = before = _value(specs[0], figures, overlays, ends) if changes else None
    causes: list[Cause] = []
    for kind in (*CAUSES, SPEC) if before is not None else ():
        if not counts[kind]:
            continue
        figures |= {path: figure for path, figure in new.items() if cause_of(path, figure) == kind}
        after = _value(specs[kind == SPEC], figures, overlays, ends)
        causes.append(Cause(kind, counts[kind], None if after is None or before is None else after - before, after))
        before = before if after is None else after
        say_(say("cause.solved", cause=say(f"cause.{kind}")))
    rest = second.value - first.value - math.fsum(cause.amount or 0.0 for cause in causes)
    return Why(first, second, start, (*causes, Cause(PRODUCT, 0, rest)), tuple(changes))


def cause_of(path: str, figure: Mapping[str, Any]) -> str:
    """Name the cause that a figure of the catalog belongs to.

    >>> cause_of("chips/H100/tdp_w", {"unit": "W"}), cause_of("offers/X, buy/price", {"unit": "USD"}), cause_of("constants/serving.a/value", {"unit": "1"})
    ('hardware', 'prices', 'models')
    """
    kind = path.partition("/")[0]
    if kind == "constants":
        return MODELS
    if is_money(str(figure.get("unit") or "")):
        return PRICES
    return HARDWARE if kind in OF_HARDWARE else FIGURES


def _check(first: Plan, second: Plan) -> None:
    problems = [
        Issue(side, Message.of("actual.plan_without_answer", status=plan.status).text())
        for side, plan in (("first", first), ("second", second))
        if not plan.has_answer
    ]
    if not problems and [first.objective[key] for key in ("sense", "unit")] != [second.objective[key] for key in ("sense", "unit")]:  # fmt: skip
        told = {side: f"{plan.objective['sense']}, {plan.objective['unit']}" for side, plan in (("first", first), ("second", second))}  # fmt: skip
        problems.append(Issue("objective", Message.of("cause.two_objectives", **told).text()))
    if problems:
        raise SpecError(problems)


def _changed_figures(first: Figures, second: Figures) -> list[Change]:
    """List the figures whose values differ, and those that the new plan alone has."""
    found = []
    for path, figure in second.items():
        a, b = first.get(path, {}).get("value"), figure["value"]
        if not _alike(a, b):
            found.append(Change(cause_of(path, figure), path, a, b))
    return found


def _changed_spec(first: Plan, second: Plan) -> list[Change]:
    """List the places in which the specs differ, but those that only say how long to search."""
    rows = spec_changes(first.document["spec"], second.document["spec"])
    return [
        Change(SPEC, row["path"], row["first"], row["second"])
        for row in rows
        if not row["path"].startswith(("solver", "overrides", "note"))
    ]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=ALIKE, abs_tol=0.0)
    return bool(a == b)


def _asked(plan: Plan, first: Plan, limits: Mapping[str, str]) -> dict[str, Any]:
    """Return the spec of a plan with the limits of a study, and replicas as the first plan has them where the spec leaves them open."""
    spec = plan.document["spec"]
    stated = (spec.get("solver") or {}).get("replicas", "auto")
    replicas = first.document.get("replicas", "divisible") if stated == "auto" else stated
    return edited(spec, (("solver.replicas", replicas), *((f"solver.{name}", value) for name, value in limits.items())))


def _value(spec: Mapping[str, Any], figures: Figures, overlays: Sequence[Path], ends: float) -> float | None:
    """Solve a spec with recorded figures; None where there is no plan, or no time for one."""
    if time.perf_counter() > ends:
        return None
    try:
        problem = resolved_anew(parse_spec(spec), overlays, figures)
        answer = solved(Variants(spec, overlays, problem), (), study_options(problem), problem=problem)
    except (SpecError, Unbounded):
        return None
    return None if answer is None else answer.value


def _release(plan: Plan) -> str:
    """Return the release that made a plan; release 0.1 was called tokenwatt."""
    versions = plan.document["versions"]
    return str(versions.get("flopwatt") or versions.get("tokenwatt") or "-")


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value > 0 else '-'}{amount(abs(value))} {unit}"


def _shown(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}"
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
