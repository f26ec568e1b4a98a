"""Split the carbon that the points of a frontier save into what moving work in time, in space and in both gives at the same cost.

At the cost of each point, the least carbon is sought with work that may wait, with work that may move to other sites, with both and with neither:
neither saves by the choice of systems and networks alone. Not here: what each way holds (`planner.studies.carbon.ways`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message, named
from planner.plan import Plan
from planner.report.words import amount
from planner.solving.deadline import THREADS, options_of
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Variants, resolved
from planner.spec.document import Edits, edited
from planner.studies.base.planned import solved
from planner.studies.carbon.ways import BOTH, NEITHER, SPACE, TIME, WAYS, holding
from planner.studies.frontier import Frontier

COST_TOL = 1e-9  # relative: by which a plan may cost more than the point that it is compared with


@dataclass(frozen=True, slots=True)
class Found:
    """The least carbon found in a way at a cost [kg], with its bound, None where none is known; `status`: of the search.

    Where the search finds no plan in its time, or none as good, `plan` is the one of least cost, which every way allows.
    """

    way: str
    carbon_kg: float
    bound_kg: float | None
    status: str
    plan: Plan = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the frontier: its `name`, its cost, and the answer of each way."""

    name: str
    cost: float
    found: tuple[Found, ...]

    def of(self, way: str) -> Found | None:
        """Return the answer of a way; None where it was not asked for."""
        return next((each for each in self.found if each.way == way), None)


@dataclass(frozen=True, slots=True)
class CarbonSplit:
    """A frontier with the split of what its points save; `base_kg`: the carbon of its plan of least cost."""

    frontier: Frontier
    ways: tuple[str, ...]
    base_kg: float | None
    points: tuple[Point, ...]

    @property
    def status(self) -> str:
        """Return the status of the frontier."""
        return self.frontier.status

    def saving(self, found: Found | None) -> float | None:
        """Compute the share of the carbon of the plan of least cost that a way saves; None where the search ended with neither plan nor bound."""
        if found is None or not self.base_kg or (found.bound_kg is None and found.carbon_kg >= self.base_kg):
            return None
        return 1.0 - found.carbon_kg / self.base_kg

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each point: savings by way as shares, and the part of `both` that time and space alone leave."""
        return [
            {"asked": point.name, "cost": point.cost, **{way: self.saving(point.of(way)) for way in self.ways}}
            for point in self.points
        ]

    @property
    def document(self) -> Mapping[str, Any]:
        """Return the frontier with the split as JSON."""
        split = {
            "base_carbon_kg": self.base_kg,
            "points": [
                {
                    "asked": point.name, "cost": point.cost,
                    "ways": [
                        {"way": each.way, "carbon_kg": each.carbon_kg, "bound_kg": each.bound_kg, "saving": self.saving(each), "status": each.status}
                        for each in point.found
                    ],
                }
                for point in self.points
            ],
        }  # fmt: skip
        return {**self.frontier.document, "split": split}

    @property
    def words(self) -> list[str]:
        """Say what the ways save at the cleanest point, after the words of the frontier."""
        said = list(self.frontier.words)
        savings = {way: self.saving(self.points[0].of(way)) if self.points else None for way in self.ways}
        known = {way: share for way, share in savings.items() if share is not None}
        if BOTH in known and set(self.ways) >= set(WAYS):
            rest = {way: f"{known[way]:.1%}" if way in known else "–" for way in WAYS}
            said.append(
                Message.of(
                    "split.saves", cost=amount(self.points[0].cost), currency=self.frontier.currency, **rest
                ).text()
            )
        return said

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return the tables of the frontier, and the savings by way, formatted for people."""
        rows = [
            {
                "asked": point.name,
                "cost": amount(point.cost),
                **{named("split", way): _share(self.saving(point.of(way))) for way in self.ways},
            }
            for point in self.points
        ]
        return [*self.frontier.sections, (Message.of("split.heading").text(), rows)]

    def save(self, folder: Path) -> None:
        """Write the plan of each point of the frontier to a file."""
        self.frontier.save(folder)


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def ways_of(text: str | None) -> tuple[str, ...]:
    """Read ways such as "time,space,both"; `neither` is always among them. Raises SpecError."""
    asked = [each.strip() for each in (text or "").split(",") if each.strip()]
    if not asked or (unknown := [each for each in asked if each not in WAYS]):
        given = ", ".join(unknown) if asked else str(text)
        raise SpecError(
            [
                Issue(
                    "--by",
                    Message.of("studies.choice_expected", names=", ".join((TIME, SPACE, BOTH)), given=given).text(),
                )
            ]
        )
    return tuple(way for way in WAYS if way in (*asked, NEITHER))


def split_carbon(
    found: Frontier,
    ways: Sequence[str],
    *,
    overlays: Sequence[Path] = (),
    progress: Progress | None = None,
    threads: int = THREADS,
) -> CarbonSplit:
    """Seek the least carbon in each way at the cost of each point of a frontier against carbon, the cleanest point first.

    Raises SpecError where the frontier is of something else.
    """
    if found.against != "carbon":
        raise SpecError([Issue("--by", Message.of("split.carbon_alone", against=found.against).text())])
    if not found.points:
        return CarbonSplit(found, tuple(ways), None, ())
    cheapest = found.points[-1].plan
    document = dict(cheapest.document["spec"])
    problem = resolved(document, overlays)
    variants, options = Variants(document, overlays, problem), options_of(problem.spec, threads, progress)
    points = []
    for point in found.points:
        budget = f"{point.cost * (1 + COST_TOL):.15g} {found.currency}"
        edits: Edits = (("objective", {"minimise": "carbon"}), ("limits.budget", budget))
        ways_found = []
        for way in ways:
            answer = solved(variants, edits, options, prepare=holding(way, cheapest, problem))
            known = point.plan if way == BOTH else cheapest
            ways_found.append(_found(way, answer, edited(document, edits), known))
        points.append(Point(point.name, point.cost, tuple(ways_found)))
    return CarbonSplit(found, tuple(ways), float(cheapest.totals["carbon_kg"]), tuple(points))


def _found(way: str, answer: Answer | None, document: Mapping[str, Any], known: Plan) -> Found:
    """Take the better of an answer and of a plan that the way is known to allow."""
    status = "limit" if answer is None else answer.solution.status
    bound = None if answer is None else answer.solution.bound
    plan = known if answer is None or answer.value is None else answer.plan(document)
    plan = min(plan, known, key=lambda each: float(each.totals["carbon_kg"]))
    carbon = float(plan.totals["carbon_kg"])
    return Found(way, carbon, None if bound is None else min(bound, carbon), status, plan)
