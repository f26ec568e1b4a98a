"""Solve a spec again with one figure moved at a time, and compare objective and fleet.

Not here: which figures are moved and how far (`planner.studies.sensitivity_factors`), and the chart (`planner.studies.tornado_chart`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.formulate.limits import Unbounded
from planner.interpret.framing import sense_and_unit
from planner.messages import Message, listed, named
from planner.report.words import counted, share_words
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Fleet, Variants, fleet_change, resolved
from planner.spec.document import at
from planner.studies.base.planned import SAME as ROUNDING
from planner.studies.base.planned import Base, planned, solved, study_options
from planner.studies.sensitivity_factors import AMOUNT, DEADLINE, LATENCY, PRICE, Factor, Level, factors_of
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.search.reoptimize import Reoptimizer

TOTAL_S = 900.0  # time for all variants
VALUE_TOL = 1e-9  # relative: objectives that differ by less are equal
MONOTONE = (PRICE, AMOUNT, LATENCY, DEADLINE)  # a cheaper or wider level of these leaves the plan feasible and no worse
SAME, SOLVED, NO_PLAN, NOT_TRIED, INVALID = (
    "same",
    "solved",
    "no plan",
    "not tried",
    "invalid",
)


@dataclass(frozen=True, slots=True)
class Moved:
    """The answer with one figure at one level. `status`: "same" if it cannot differ from the plan's and was not solved."""

    words: str
    status: str
    value: float | None = None
    bound: float | None = None
    change: str = ""  # change of the fleet

    def row(self) -> dict[str, Any]:
        """Return its figures as a row."""
        return {
            "level": self.words,
            "status": self.status,
            "value": self.value,
            "bound": self.bound,
            "fleet": self.change,
        }


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure at both levels. `swing`: the range of the objective over both levels and the plan."""

    factor: Factor
    low: Moved
    high: Moved
    swing: float

    @property
    def no_plan(self) -> bool:
        """Tell whether one level has no plan."""
        return NO_PLAN in (self.low.status, self.high.status)

    @property
    def keeps_the_fleet(self) -> bool:
        """Tell whether both levels have a plan, with the fleet of the base."""
        return all(moved.status in (SAME, SOLVED) and not moved.change for moved in (self.low, self.high))


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """All bars: those without a plan at one level first, then by falling swing."""

    status: str
    unit: str
    base: Base
    value: float | None = None
    gap: float | None = None
    bars: tuple[Bar, ...] = ()
    solved: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        value = self._known_value
        return [
            {
                "path": bar.factor.path, "name": bar.factor.name, "swing": bar.swing, "share": bar.swing / abs(value),
                "low": bar.low.row(), "high": bar.high.row(), "fleet_changes": bool(bar.low.change or bar.high.change),
            }
            for bar in self.bars
        ]  # fmt: skip

    @property
    def _known_value(self) -> float:
        """Return the objective of the plan; without a plan there are no bars."""
        return 1.0 if self.value is None else self.value

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything as JSON."""
        return {
            "status": self.status,
            "base": self.base.row(),
            "unit": self.unit,
            "value": self.value,
            "gap": self.gap,
            "solved": self.solved,
            "factors": self.rows,
        }

    @property
    def words(self) -> list[str]:
        """Summarise levels without a plan, the widest swing, and unchanged fleets."""
        words = [self.base.message.text()]
        if self.value is None:
            return words
        several = {} if self.solved == 1 else {"count": self.solved}
        words.append(Message.of("sensitivity.solved" if several else "sensitivity.solved_one", **several).text())
        if lost := [
            Message.of("sensitivity.level", name=bar.factor.name, level=moved.words).text()
            for bar in self.bars
            for moved in (bar.low, bar.high)
            if moved.status == NO_PLAN
        ]:
            words.append(Message.of("sensitivity.lost", names=listed(lost)).text())
        if strong := [bar for bar in self.bars if bar.swing > self._doubt()]:
            words.append(
                Message.of(
                    "sensitivity.most",
                    name=strong[0].factor.name,
                    low=strong[0].low.words,
                    high=strong[0].high.words,
                    amount=_amount(strong[0].swing),
                    unit=self.unit,
                    share=share_words(strong[0].swing / abs(self.value)),
                ).text()
            )
        if still := [bar.factor.name for bar in self.bars if bar.keeps_the_fleet]:
            words.append(Message.of("sensitivity.still", names=listed(still)).text())
        levels = [moved.status for bar in self.bars for moved in (bar.low, bar.high)]
        if skipped := levels.count(NOT_TRIED):
            words.append(Message.of("sensitivity.not_tried", count=skipped, all=len(levels)).text())
        if self._doubt() > ROUNDING * abs(self.value):
            words.append(Message.of("sensitivity.doubt", amount=_amount(self._doubt()), unit=self.unit).text())
        return words

    def _doubt(self) -> float:
        """Add up the gaps of two answers: differences up to this sum may be due to the gaps alone."""
        largest = max((_gap(m) for bar in self.bars for m in (bar.low, bar.high)), default=0.0)
        return abs(self._known_value) * ((self.gap or 0.0) + largest)

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        if self.value is None:
            return []
        rows = [
            {
                "figure": bar.factor.name, "low": bar.low.words, "high": bar.high.words, "at low": self._told(bar.low), "at high": self._told(bar.high),
                "swing": share_words(bar.swing / abs(self.value), ".2%"), "fleet at low": bar.low.change, "fleet at high": bar.high.change,
            }
            for bar in self.bars
        ]  # fmt: skip
        return [(Message.of("studies.head_swings", unit=self.unit).text(), rows)]

    def _told(self, moved: Moved) -> str:
        if moved.value is None:
            return named("outcome", moved.status)
        difference = moved.value - self._known_value
        if abs(difference) <= VALUE_TOL * abs(self._known_value):
            return "no change"
        return f"{'+' if difference > 0 else '-'}{_amount(abs(difference))}"


def _gap(moved: Moved) -> float:
    if moved.status != SOLVED or moved.value is None or moved.bound is None:
        return 0.0
    return relative_gap(moved.value, moved.bound)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def sensitivity(
    document: dict[str, Any],
    *,
    vary: Sequence[str] = (),
    defaults: bool | None = None,
    overlays: Sequence[Path] = (),
    total_s: float = TOTAL_S,
    progress: Progress | None = None,
    threads: int = THREADS,
    so_far: Callable[[Sensitivity], None] | None = None,
) -> Sensitivity:
    """Solve the spec again with each figure at its low and at its high, all others unchanged.

    `vary`: "PATH=LOW:HIGH"; `defaults`: whether to move the usual figures (None: if `vary` names none); `so_far` is told the study after
    each figure.
    Raises SpecError for a place that is not in the spec.
    """
    began, say = time.perf_counter(), progress or (lambda line: None)
    usual = not vary if defaults is None else defaults
    factors_of(document, resolved(document, overlays), vary, usual)  # a mistake is told before a plan is solved
    start = planned(document, overlays, progress=progress, threads=threads)
    factors = factors_of(start.document, start.problem, vary, usual)
    program, options, unit = Reoptimizer(), study_options(start.problem, threads), sense_and_unit(document)[1]
    base = solved(start.variants, (), options, solve_program=program.solve) if start.plan.has_answer else None
    if base is None or base.value is None:
        return Sensitivity(start.plan.status if base is None else base.solution.status, unit, start.base(None))
    say(
        Message.of(
            "progress.plan",
            status=base.solution.status,
            seconds=f"{base.solution.seconds:.1f}",
            figures=counted(len(factors), "figure"),
        ).text()
    )
    study = _Study(start.variants, base, program, options, began + total_s)
    stated = start.base(base.value)
    bars: list[Bar] = []

    def found() -> Sensitivity:
        bars.sort(key=lambda bar: (not bar.no_plan, -bar.swing))
        return Sensitivity(
            base.solution.status,
            unit,
            stated,
            base.value,
            base.solution.gap,
            tuple(bars),
            study.solved,
            time.perf_counter() - began,
        )

    for factor in factors:
        low, high = study.moved(factor, factor.low), study.moved(factor, factor.high)
        values = [base.value, *(m.value for m in (low, high) if m.value is not None)]
        swing = max(values) - min(values)
        bars.append(Bar(factor, low, high, swing))
        say(
            f"{factor.name}: {low.status}, {high.status}, swing {_amount(swing)} {unit}  {time.perf_counter() - began:.0f} s"
        )
        if so_far is not None:
            so_far(found())
    return found()


class _Study:
    """Solve one spec with one figure moved."""

    def __init__(self, variants: Variants, base: Answer, program: Reoptimizer, options: Options, ends: float) -> None:
        self._program = program
        self._variants, self._base, self._options, self._ends, self.solved = variants, base, options, ends, 0
        assert base.value is not None
        self._base_value = base.value
        self._fleet: Fleet = base.fleet()
        self._used = {row["path"]: row["value"] for row in base.plan(variants.document).document["limits"]}
        self._held = {(system, how) for _, system, how, _ in self._fleet}

    def moved(self, factor: Factor, level: Level) -> Moved:
        """Solve with a figure at a level, unless the answer cannot change."""
        same = Moved(level.words, SAME, self._base_value, self._base.solution.bound)
        if self._changes_nothing(factor, level):
            return same
        left = self._ends - time.perf_counter()
        if left <= 0:
            return Moved(level.words, NOT_TRIED)
        try:
            answer = self._answer(level, min(left, self._options.time_limit_s))
        except SpecError as error:  # a level that the spec may not hold
            return Moved(f"{level.words} ({error.problems[0].message})", INVALID)
        except Unbounded:
            return Moved(level.words, INVALID)
        if answer is None:
            return Moved(level.words, NOT_TRIED)
        self.solved += 1
        solution = answer.solution
        if answer.value is None:
            return Moved(level.words, NO_PLAN if solution.status == "infeasible" else NOT_TRIED)
        if factor.kind in MONOTONE and level.wider and self._worse(answer.value):
            # the plan is still feasible, and the search found no better one
            return replace(same, status=SOLVED, bound=self._best_of(solution.bound))
        return Moved(level.words, SOLVED, answer.value, solution.bound, fleet_change(self._fleet, answer.fleet()))

    def _answer(self, level: Level, limit_s: float) -> Answer | None:
        problem = self._variants.problem(level.edits)
        if level.money is not None:
            problem = level.money(problem)
        limits, of_points = replace(self._options, time_limit_s=limit_s), () if level.only_money else level.edits
        return solved(
            self._variants, level.edits, limits, problem=problem, of_points=of_points, solve_program=self._program.solve
        )

    def _best_of(self, bound: float | None) -> float | None:
        """Return the bound, or the plan's own value if that is better (other points may have been kept for the level)."""
        if bound is None:
            return None
        return self._base_value if self._worse(bound) else bound

    def _worse(self, value: float) -> bool:
        maximises = self._base.form.data.objective.maximises
        return value < self._base_value if maximises else value > self._base_value

    def _changes_nothing(self, factor: Factor, level: Level) -> bool:
        """Test whether the plan must stay optimal: nothing moves, an unpaid price rises, or a tighter limit is still met."""
        if level.money is None and all(at(self._variants.document, path) == value for path, value in level.edits):
            return True
        if factor.kind == PRICE and not level.wider:
            return factor.way not in self._held
        if factor.kind == AMOUNT and not level.wider:
            return bool(self._used.get(factor.path, float("inf")) <= level.amount)
        return False
