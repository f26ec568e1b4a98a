"""Solve a spec again with one figure moved at a time, and compare objective and fleet.

Not here: which figures are moved and how far (`planner.studies.sensitivity_factors`), and the chart (`planner.studies.tornado_chart`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.formulate.limits import Unbounded
from planner.interpret.framing import sense_and_unit
from planner.messages import Message, listed, named
from planner.report.words import amount, counted, share_words
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Fleet, Variants, fleet_change, resolved
from planner.spec.document import at
from planner.studies.base.planned import SAME as ROUNDING
from planner.studies.base.planned import Base, planned, solved, study_options
from planner.studies.engines import Engine
from planner.studies.engines.calls import solved_on
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
                    amount=amount(strong[0].swing),
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
            words.append(Message.of("sensitivity.doubt", amount=amount(self._doubt()), unit=self.unit).text())
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
        return f"{'+' if difference > 0 else '-'}{amount(abs(difference))}"


def _gap(moved: Moved) -> float:
    if moved.status != SOLVED or moved.value is None or moved.bound is None:
        return 0.0
    return relative_gap(moved.value, moved.bound)


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
    engine: Engine | None = None,
) -> Sensitivity:
    """Solve the spec again with each figure at its low and at its high, all others unchanged.

    `vary`: "PATH=LOW:HIGH"; `defaults`: whether to move the usual figures (None: if `vary` names none); `so_far` is told the study after
    each figure. `engine`: where levels are solved, each on its own (`planner.studies.engines`), on machines whose clocks agree; without one they are solved one after
    another, each from the program of the one before.
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
    known = _Known.of(base, start.variants)
    ends_at = time.time() + began + total_s - time.perf_counter()
    levels = [_Asked(factor, level, ends_at) for factor in factors for level in (factor.low, factor.high)]
    stated, tried = start.base(base.value), dict[int, _Tried]()

    def found() -> Sensitivity:
        moved = [
            (factor, tried[2 * i].moved, tried[2 * i + 1].moved)
            for i, factor in enumerate(factors)
            if {2 * i, 2 * i + 1} <= tried.keys()
        ]
        bars = sorted(
            (Bar(factor, low, high, _swing(known.value, low, high)) for factor, low, high in moved),
            key=lambda bar: (not bar.no_plan, -bar.swing),
        )
        solved_count = sum(one.was_solved for one in tried.values())
        return Sensitivity(
            base.solution.status,
            unit,
            stated,
            base.value,
            base.solution.gap,
            tuple(bars),
            solved_count,
            time.perf_counter() - began,
        )

    own = _Study(start.variants, known, options, program)
    for number, one in _tried(own, levels, engine, tuple(overlays)):
        tried[number] = one
        if {number, number ^ 1} <= tried.keys():
            factor, low, high = factors[number // 2], tried[number & ~1].moved, tried[number | 1].moved
            swing = amount(_swing(known.value, low, high))
            say(
                f"{factor.name}: {low.status}, {high.status}, swing {swing} {unit}  {time.perf_counter() - began:.0f} s"
            )
            if so_far is not None:
                so_far(found())
    return found()


def _swing(value: float, *moved: Moved) -> float:
    """Return the range of the objective over the plan and both levels."""
    values = [value, *(one.value for one in moved if one.value is not None)]
    return max(values) - min(values)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A level to try, until a time of the clock [s since 1970]."""

    factor: Factor
    level: Level
    ends_at: float


@dataclass(frozen=True, slots=True)
class _Tried:
    """What a level came to, and whether its program was solved for that."""

    moved: Moved
    was_solved: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """What levels are compared with: value, bound and fleet of the plan, how much of each limit it uses, how it obtains what, and whether more is better."""

    value: float
    bound: float | None
    fleet: Fleet
    used: Mapping[str, float]
    held: frozenset[tuple[str, str]]
    maximises: bool

    @classmethod
    def of(cls, base: Answer, variants: Variants) -> _Known:
        """Read it from the answer that a study starts from."""
        assert base.value is not None
        fleet = base.fleet()
        used = {row["path"]: row["value"] for row in base.plan(variants.document).document["limits"]}
        held = frozenset((system, how) for _, system, how, _ in fleet)
        return cls(base.value, base.solution.bound, fleet, used, held, base.form.data.objective.maximises)


def _tried(
    own: _Study, asked: Sequence[_Asked], engine: Engine | None, overlays: tuple[Path, ...]
) -> Iterator[tuple[int, _Tried]]:
    """Yield (number, answer) of levels as they are solved: in their order, from the programs of the study, where there is no engine."""
    if engine is None:
        yield from ((number, own.tried(one)) for number, one in enumerate(asked))
        return
    left = []
    for number, one in enumerate(asked):
        if own.changes_nothing(one):
            yield number, own.tried(one)
        else:
            left.append(number)
    make = partial(_solver, own.document, own.known)
    for place, found in solved_on(engine, make, [asked[number] for number in left], overlays):
        words = asked[left[place]].level.words
        died = f"{words} ({Message.of('studies.process_died').text()})"
        yield left[place], found or _Tried(Moved(died, NOT_TRIED))


def _solver(document: dict[str, Any], known: _Known, overlays: Sequence[Path]) -> Callable[[_Asked], _Tried]:
    """Make what tries levels in a worker, each without the programs of others."""
    variants = Variants(document, overlays, resolved(document, overlays))
    options = study_options(variants.base, 1)  # the solves share the processors
    return lambda asked: _Study(variants, known, options, Reoptimizer()).tried(asked)


class _Study:
    """Solve one spec with one figure moved."""

    def __init__(self, variants: Variants, known: _Known, options: Options, program: Reoptimizer) -> None:
        self._variants, self.known, self._options, self._program = variants, known, options, program

    @property
    def document(self) -> dict[str, Any]:
        """Return the spec of which a figure is moved."""
        return dict(self._variants.document)

    def tried(self, asked: _Asked) -> _Tried:
        """Solve with a figure at a level, unless the answer cannot change."""
        factor, level, known = asked.factor, asked.level, self.known
        same = Moved(level.words, SAME, known.value, known.bound)
        if self.changes_nothing(asked):
            return _Tried(same)
        left = asked.ends_at - time.time()
        if left <= 0:
            return _Tried(Moved(level.words, NOT_TRIED))
        try:
            answer = self._answer(level, min(left, self._options.time_limit_s))
        except SpecError as error:  # a level that the spec may not hold
            return _Tried(Moved(f"{level.words} ({error.problems[0].message})", INVALID))
        except Unbounded:
            return _Tried(Moved(level.words, INVALID))
        if answer is None:
            return _Tried(Moved(level.words, NOT_TRIED))
        solution = answer.solution
        if answer.value is None:
            moved = Moved(level.words, NO_PLAN if solution.status == "infeasible" else NOT_TRIED)
        elif factor.kind in MONOTONE and level.wider and self._worse(answer.value):
            # the plan is still feasible, and the search found no better one
            moved = replace(same, status=SOLVED, bound=self._best_of(solution.bound))
        else:
            change = fleet_change(known.fleet, answer.fleet())
            moved = Moved(level.words, SOLVED, answer.value, solution.bound, change)
        return _Tried(moved, was_solved=True)

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
        return self.known.value if self._worse(bound) else bound

    def _worse(self, value: float) -> bool:
        return value < self.known.value if self.known.maximises else value > self.known.value

    def changes_nothing(self, asked: _Asked) -> bool:
        """Test whether the plan must stay optimal: nothing moves, an unpaid price rises, or a tighter limit is still met."""
        factor, level = asked.factor, asked.level
        if level.money is None and all(at(self._variants.document, path) == value for path, value in level.edits):
            return True
        if factor.kind == PRICE and not level.wider:
            return factor.way not in self.known.held
        if factor.kind == AMOUNT and not level.wider:
            return bool(self.known.used.get(factor.path, float("inf")) <= level.amount)
        return False
