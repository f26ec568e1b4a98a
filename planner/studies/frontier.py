"""Frontiers of cost against carbon, latency, throughput or quality: one least-cost plan per point, the dominated ones left out.

The spec stays the same but for one thing, so that the points of the workloads and the program are kept from point to point
(`planner.studies.whatif`). Not here: the chart (`planner.studies.frontier_chart`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message, named
from planner.plan import Plan
from planner.problem.quality import MEANS
from planner.report.words import amount, counted
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.spec.document import Edits, edited, read_spec
from planner.spec.model import parse_spec
from planner.spec.requirements.quality import Alternative
from planner.spec.workloads import Serving
from planner.studies.base.apart import Solved, solved_plans
from planner.studies.base.planned import SAME, Base, planned
from planner.studies.base.varied import latency_paths, times, work_path
from planner.studies.engines import Engine
from planner.studies.whatif import Changes, WhatIf
from solvers.mip import relative_gap

CARBON, LATENCY, THROUGHPUT, QUALITY = AGAINST = ("carbon", "latency", "throughput", "quality")
SPANS = {LATENCY: (0.5, 2.0), THROUGHPUT: (0.5, 1.5)}  # factors, where none are asked for
MORE_IS_BETTER = {CARBON: False, LATENCY: False, THROUGHPUT: True, QUALITY: True}
MEASURE = {CARBON: "carbon_kg", LATENCY: "latency_factor", THROUGHPUT: "demand_factor", QUALITY: "quality"}
AS_STATED = 1.0  # factor of the spec's own demand and latency limits
LEAST_LIMIT_KG = 1e-3  # that a spec may put on carbon
HELD_TOL = 1e-9  # relative: how far a value that is held fixed may move
TIE_SHARE = 0.1  # share of the time limit, to find the least carbon among plans of equal cost
COST_TOL = 1e-9  # relative: costs that differ by less are equal


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One plan of the frontier.

    `measure`: carbon, factor or quality; `name`: label of the request; `bound`: lower bound of the cost; `how`: way in which the program was solved, see `solvers.search.reoptimize`.
    """

    measure: float
    name: str
    changes: Changes
    plan: Plan
    cost: float
    bound: float
    how: str
    seconds: float

    @property
    def gap(self) -> float:
        """Compute the relative distance of the cost to its bound."""
        return relative_gap(self.cost, self.bound)


@dataclass(frozen=True, slots=True)
class Frontier:
    """`points` by rising measure; `left_out`: names of points with their reasons; `status`: of the worst plan."""

    against: str
    currency: str
    points: tuple[FrontierPoint, ...]
    left_out: tuple[tuple[str, str], ...]
    status: str
    seconds: float
    base: Base
    source: str = ""  # source of the scores

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        return [
            {"asked": point.name, MEASURE[self.against]: point.measure, "cost": point.cost, "bound": point.bound, "gap": point.gap, "per_unit": self._slope(i), "program": point.how}
            for i, point in enumerate(self.points)
        ]  # fmt: skip

    def _slope(self, i: int) -> float | None:
        """Compute the cost of one unit more of the measure, between this point and the one before."""
        if i == 0:
            return None
        one, other = self.points[i - 1], self.points[i]
        return (other.cost - one.cost) / (other.measure - one.measure)

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything but the plans as JSON."""
        return {
            "against": self.against,
            "measure": MEASURE[self.against],
            "currency": self.currency,
            "status": self.status,
            "base": self.base.row(),
            "source": self.source,
            "points": [
                {**row, "changes": dict(point.changes), "seconds": point.seconds}
                for row, point in zip(self.rows, self.points, strict=True)
            ],
            "left_out": [{"asked": name, "reason": reason} for name, reason in self.left_out],
            "seconds": self.seconds,
        }

    @property
    def words(self) -> list[str]:
        """Summarise the range of costs, and how the programs were solved."""
        stated = self.base.message.text()
        if not self.points:
            return [stated, Message.of("frontier.none", status=self.status).text()]
        programs = ", ".join(f"{count} {how}" for how, count in Counter(point.how for point in self.points).items())
        lines = [
            stated,
            self._of_points(),
            Message.of("frontier.programs", programs=programs, seconds=f"{self.seconds:.1f}").text(),
        ]
        return lines + ([Message.of("frontier.quality_by", source=self.source).text()] if self.source else [])

    def _of_points(self) -> str:
        """Say what the points cost, and how near to the least cost they are."""
        first, last, gap = self.points[0].cost, self.points[-1].cost, max(point.gap for point in self.points)
        known = {"against": self.against, "currency": self.currency, "first": amount(first)}
        if len(self.points) == 1:
            return Message.of("frontier.one", **known).text()
        known |= {"points": counted(len(self.points), "point"), "last": amount(last)}
        if gap <= SAME:
            return Message.of("frontier.least", **known).text()
        return Message.of("frontier.within", gap=f"{gap:.2%}" if gap >= 1e-4 else f"{gap:.2g}", **known).text()

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows) of both tables, formatted for people."""
        rows = [
            row
            | {"cost": amount(row["cost"]), "bound": amount(row["bound"]), "gap": f"{row['gap']:.2%}"}
            | {"per_unit": "" if row["per_unit"] is None else amount(row["per_unit"])}
            for row in self.rows
        ]
        return [
            ("Frontier", rows),
            ("Left out", [{"asked": name, "reason": reason} for name, reason in self.left_out]),
        ]

    def save(self, folder: Path) -> None:
        """Write the plan of each point to a file."""
        for i, point in enumerate(self.points):
            point.plan.save(folder / f"{i + 1:02d}.json")


def frontier(
    source: str | Path | Mapping[str, Any], against: str, points: int = 8, *, span: tuple[float, float] | None = None, overlays: Sequence[Path] = (),
    hourly: Sequence[Path] = (), progress: Progress | None = None, threads: int = THREADS, so_far: Callable[[Frontier], None] | None = None,
    engine: Engine | None = None,
) -> Frontier:  # fmt: skip
    """Find the plans of least cost over a range of `against`, whatever the objective of the spec.

    carbon: from the plan of least carbon (the cheapest of these) to the plan of least cost (that of least carbon among these), with
    evenly spaced limits on carbon between. latency, throughput: all latency limits, or the demand of all serving workloads, times evenly
    spaced factors over `span`. quality: as floor, the score of each of the `alternatives` of the one workload that has some; if the mean
    of a mix counts, evenly spaced floors between the lowest and the highest score. `so_far` is told the frontier after each point.
    `engine`: where points are solved, each on its own (`planner.studies.engines`); without one they are solved one after another, each from the program of the one before.
    Raises SpecError for a study that the spec does not allow.
    """
    _check(against, points, span)
    began = time.perf_counter()
    document = read_spec(source, hourly, overlays)
    scores = _scores(document) if against == QUALITY else ""
    start = planned(document, overlays, progress=progress, threads=threads)
    document = {key: value for key, value in start.document.items() if key != "robust"}
    study = _Study(
        edited(
            document,
            (
                ("objective", {"minimise": "cost"}),
                *(_lowest_floor(document) if against == QUALITY else ()),
            ),
        ),
        against,
        _Means(tuple(overlays), progress, threads, engine),
    )

    def found() -> Frontier:
        left_out = list(study.left_out)
        kept = _undominated(study.points, against, left_out)
        statuses = [point.plan.status for point in kept] or [study.last_status]
        status = max(statuses, key=("optimal", "within_gap", "limit", "unbounded", "infeasible").index)
        currency = study.kept.document.get("currency", "USD")
        own = _cost(study.kept.base) if study.kept.base.has_answer and against != QUALITY else None
        base = start.base_at_cost(own, currency)
        seconds = time.perf_counter() - began
        return Frontier(against, currency, tuple(kept), tuple(left_out), status, seconds, base, scores)

    if so_far is not None:
        study.taken = lambda: so_far(found())
    if against == CARBON:
        study.carbon(points)
    elif against == QUALITY:
        study.quality(points)
    else:
        study.factors(points, span or SPANS[against])
    return found()


def _check(against: str, points: int, span: tuple[float, float] | None) -> None:
    if against not in AGAINST:
        raise SpecError(
            [
                Issue(
                    "--against",
                    Message.of("studies.choice_expected", names=", ".join(AGAINST), given=against).text(),
                )
            ]
        )
    if not 2 <= points <= 200:
        raise SpecError([Issue("--points", Message.of("studies.points_out_of_range", given=points).text())])
    if span is not None and against not in SPANS:
        raise SpecError(
            [Issue("--span", Message.of("studies.option_of_another_study", what=" and ".join(SPANS)).text())]
        )
    if span is not None and not 0 < span[0] < span[1] < 1e3:
        raise SpecError(
            [
                Issue(
                    "--span",
                    Message.of("studies.rising_factors", low=f"{span[0]:g}", high=f"{span[1]:g}").text(),
                )
            ]
        )


def _with_alternatives(document: Mapping[str, Any]) -> list[tuple[int, Serving, list[Alternative]]]:
    """List the serving workloads with alternatives: position, workload, alternatives."""
    return [
        (i, workload, workload.alternatives)
        for i, workload in enumerate(parse_spec(document).workloads)
        if isinstance(workload, Serving) and workload.alternatives
    ]


def _scores(document: Mapping[str, Any]) -> str:
    """Name the source of the scores. Raises SpecError unless exactly one serving workload has alternatives."""
    scored = _with_alternatives(document)
    if len(scored) != 1:
        scored_names = ", ".join(workload.name for _, workload, _ in scored) or "none"
        raise SpecError(
            [
                Issue(
                    "workloads",
                    Message.of("studies.quality_needs_one_workload", given=scored_names).text(),
                )
            ]
        )
    return scored[0][2][0].source


def _lowest_floor(document: Mapping[str, Any]) -> Edits:
    """Set the floor so low that every alternative may answer, with the mix of the spec."""
    ((i, workload, alternatives),) = _with_alternatives(document)
    floor = {"least": min(each.quality for each in alternatives), "source": alternatives[0].source}
    return (
        (
            f"workloads[{i}].quality_floor",
            floor | ({"mix": workload.quality_floor.mix} if workload.quality_floor else {}),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Means:
    """With which overlays, threads and engine a study solves its points."""

    overlays: tuple[Path, ...]
    progress: Progress | None
    threads: int
    engine: Engine | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A point to solve; `measure`: None where the plan tells it."""

    name: str
    changes: Changes
    measure: float | None = None


class _Study:
    """Solve the points: one after another with one program that is re-optimised, or each on its own on an engine."""

    def __init__(self, document: Mapping[str, Any], against: str, means: _Means) -> None:
        self.means = means
        self.say = means.progress or (lambda line: None)
        self.kept = WhatIf(
            document, overlays=means.overlays, progress=means.progress, threads=means.threads, diagnosing=False
        )
        self.against = against
        self.points: list[FrontierPoint] = []
        self.left_out: list[tuple[str, str]] = []
        self.last_status = self.kept.base.status
        self.taken: Callable[[], None] = lambda: None

    # -- kinds -----------------------------------------------------------------------------------------------------

    def carbon(self, points: int) -> None:
        """Solve for the cheapest and the cleanest plan, and for carbon limits between."""
        base = self.kept.base
        if not base.has_answer:
            return
        began = time.perf_counter()
        cheapest = self._cheapest_with_least_carbon(base)
        asked = _Asked(Message.of("studies.least_cost").text(), {})
        timed = Solved(cheapest, self.kept.timing.how, time.perf_counter() - began)
        self.points.append(self._point(asked, cheapest, _carbon(cheapest), base.document["bound"], timed))
        self.taken()
        cleanest = self.kept.plan({"objective": {"minimise": "carbon"}}, diagnosing=False)
        if not cleanest.has_answer:  # out of time
            self.left_out.append((Message.of("studies.least_carbon").text(), named("outcome", cleanest.status)))
            return
        least, most = _carbon(cleanest), _carbon(cheapest)
        further = [_at_most(least * (1 + HELD_TOL), Message.of("studies.least_carbon").text(), least)]
        if most > least + LEAST_LIMIT_KG:
            further += [_at_most(least + (most - least) * i / (points - 1)) for i in range(points - 2, 0, -1)]
        self._solve(further)

    def _cheapest_with_least_carbon(self, base: Plan) -> Plan:
        """Find the plan of least carbon among those that cost no more than this one."""
        budget = f"{_cost(base) * (1 + HELD_TOL):.15g} {self.kept.document.get('currency', 'USD')}"
        limit = f"{parse_spec(self.kept.document).solver.time_limit * TIE_SHARE:.3g} s"  # only breaks a tie: not worth the time of a point
        found = self.kept.plan(
            {"objective": {"minimise": "carbon"}, "limits.budget": budget, "solver.time_limit": limit}, diagnosing=False
        )
        better = (
            found.has_answer and _cost(found) <= _cost(base) * (1 + 2 * HELD_TOL) and _carbon(found) < _carbon(base)
        )
        return found if better else base

    def factors(self, points: int, span: tuple[float, float]) -> None:
        """Solve for factors on latency limits or demand."""
        factors = [span[0] + (span[1] - span[0]) * i / (points - 1) for i in range(points)]
        if points > 2 and span[0] < AS_STATED < span[1]:  # the nearest point makes room for the spec's own figures
            factors[min(range(1, points - 1), key=lambda i: abs(factors[i] - AS_STATED))] = AS_STATED
        code = "frontier.demand" if self.against == THROUGHPUT else "frontier.latency"
        self._solve(
            [_Asked(Message.of(code, factor=f"{factor:.4g}").text(), self._times(factor), factor) for factor in factors]
        )

    def _times(self, factor: float) -> Changes:
        """Multiply the demand, or the latency limits, of all serving workloads by a factor."""
        changes: dict[str, Any] = {}
        for i, workload in enumerate(self.kept.document["workloads"]):
            if workload["kind"] != "serving":
                continue
            paths = (
                [work_path(self.kept.document, i)]
                if self.against == THROUGHPUT
                else latency_paths(self.kept.document, i)
            )
            for path in paths:
                changes[path] = times(self.kept.document, path, factor)
        if not changes:
            raise SpecError(
                [
                    Issue(
                        "workloads",
                        Message.of(
                            "studies.nothing_to_vary",
                            what="a demand" if self.against == THROUGHPUT else "latency limits",
                        ).text(),
                    )
                ]
            )
        return changes

    def quality(self, points: int) -> None:
        """Solve for each quality floor."""
        ((i, workload, alternatives),) = _with_alternatives(self.kept.document)
        levels = sorted({each.quality for each in alternatives})
        if workload.quality_floor is not None and workload.quality_floor.mix in MEANS:
            levels = [levels[0] + (levels[-1] - levels[0]) * k / (points - 1) for k in range(points)]
        path = f"workloads[{i}].quality_floor.least"
        self._solve(
            [_Asked(Message.of("studies.at_least", amount=f"{level:.6g}").text(), {path: level}) for level in levels]
        )

    # -- the points ------------------------------------------------------------------------------------------------

    def _solve(self, asked: Sequence[_Asked]) -> None:
        """Solve points, and list them in the order in which they are asked for, whichever is solved first."""
        changes, points, left_out = [one.changes for one in asked], list(self.points), list(self.left_out)
        known: dict[int, FrontierPoint] = {}
        reasons: dict[int, tuple[str, str]] = {}
        for number, solved in solved_plans(self.kept, changes, self.means.engine, self.means.overlays):
            plan, one = solved.plan, asked[number]
            if plan is None or not plan.has_answer:
                self.last_status = "limit" if plan is None else plan.status
                reasons[number] = one.name, _why_none(plan)
                self.left_out = left_out + [reasons[k] for k in sorted(reasons)]
                continue
            measure = self._measured(plan) if one.measure is None else one.measure
            known[number] = self._point(one, plan, measure, plan.document["bound"], solved)
            self.points = points + [point for _, point in sorted(known.items())]
            self.taken()

    def _measured(self, plan: Plan) -> float:
        """Read the measure from a plan."""
        return float(plan.document["quality"][0]["reached"]) if self.against == QUALITY else _carbon(plan)

    def _point(self, asked: _Asked, plan: Plan, measure: float, bound: float | None, solved: Solved) -> FrontierPoint:
        """Make a point of a plan, and tell it."""
        name, cost, how, seconds = asked.name, _cost(plan), solved.how, solved.seconds
        self.say(Message.of("progress.point", name=name, cost=amount(cost), how=how, seconds=f"{seconds:.1f}").text())
        if bound is None:
            raise ValueError(Message.of("studies.no_bound_known", name=name).text())
        return FrontierPoint(measure, name, asked.changes, plan, cost, min(bound, cost), how, seconds)


def _why_none(plan: Plan | None) -> str:
    """Say why a point has no plan: by its status, or since its workers died."""
    if plan is None:
        return Message.of("studies.process_died").text()
    return Message.of("studies.no_plan", status=named("outcome", plan.status)).text()


def _at_most(limit: float, name: str = "", measure: float | None = None) -> _Asked:
    """Ask for the point with a limit on carbon."""
    stated = max(limit, LEAST_LIMIT_KG)
    words = name or Message.of("studies.at_most_t", amount=amount(limit / 1000.0)).text()
    return _Asked(words, {"limits.carbon": f"{stated:.15g} kg"}, measure)


def _undominated(points: Sequence[FrontierPoint], against: str, left_out: list[tuple[str, str]]) -> list[FrontierPoint]:
    """Keep the points that are not dominated in cost and measure, by rising measure; of equal ones the first.

    The plan of the spec's own demand and latency limits stays in any case: it is what the others are compared with.
    """
    sign = -1.0 if MORE_IS_BETTER[against] else 1.0
    front: list[FrontierPoint] = []
    cheapest: FrontierPoint | None = None
    for point in sorted(points, key=lambda p: (sign * p.measure, p.cost)):
        if cheapest is None or point.cost < cheapest.cost * (1 - COST_TOL):
            cheapest = point
            front.append(point)
        elif against in SPANS and point.measure == AS_STATED:
            front.append(point)
        else:
            left_out.append((point.name, Message.of("studies.dominated_by", name=cheapest.name).text()))
    return sorted(front, key=lambda p: p.measure)


def _cost(plan: Plan) -> float:
    return float(plan.totals["cost"])


def _carbon(plan: Plan) -> float:
    return float(plan.totals["carbon_kg"])
