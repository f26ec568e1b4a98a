"""Say what ended a search without a plan, and the change of the spec that makes the next search smallest.

The size of the search of operating points is counted, not timed: fleet options of each workload, and pairs of them for pools of prefill
and decode apart. The change that leaves the least of it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from catalog.units import GIGA
from models.arrays import sum_of
from planner.candidates.cache import OutOfMemory, OutOfTime
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.pairs import connected_pairs
from planner.candidates.points import Candidates
from planner.facts import Fact
from planner.messages import Message
from planner.problem.calendar import TYPICAL_DAY
from planner.problem.facts import ResolvedSpec
from planner.problem.reinforcement import ReinforcementFacts
from solvers.memory import resident_bytes
from solvers.solution import Solution

TIME, MEMORY = "solver.time_limit", "solver.memory"


def without_points(problem: ResolvedSpec, ended: OutOfTime) -> tuple[Fact, ...]:
    """Say why the operating points were not all evaluated."""
    options = len(build_fleet_options(problem)[0])
    counts = {"points": ended.evaluated, "options": options, **_held(problem)}
    if isinstance(ended, OutOfMemory):
        return Fact(MEMORY, Message.of("limit.points_memory", **counts)), _largest_change(problem)
    return Fact(TIME, Message.of("limit.points_time", **counts)), _largest_change(problem)


def without_program(problem: ResolvedSpec, candidates: Candidates, needed_bytes: float | None) -> tuple[Fact, ...]:
    """Say why the program was not solved: of the time (None), or of the memory that it takes."""
    points = sum(len(pool.points) for pool in candidates.pools) + sum(map(len, candidates.training.values()))
    counts = {"points": points, "slots": problem.calendar.slots, **_held(problem)}
    if needed_bytes is None:
        return Fact(TIME, Message.of("limit.program_time", **counts)), _smaller_program(problem)
    message = Message.of("limit.program_memory", needed=needed_bytes / GIGA, **counts)
    return Fact(MEMORY, message), _smaller_program(problem)


def without_solution(problem: ResolvedSpec, solution: Solution, memory_was_full: bool) -> tuple[Fact, ...]:
    """Say how large the program was in which no plan was found."""
    counts = {"columns": solution.columns, "integers": solution.integers, **_held(problem)}
    if memory_was_full:
        return Fact(MEMORY, Message.of("limit.solution_memory", **counts)), _smaller_program(problem)
    return Fact(TIME, Message.of("limit.solution_time", **counts)), _smaller_program(problem)


def without_conflict(problem: ResolvedSpec) -> tuple[Fact, ...]:
    """Say that there is no plan, and that time or memory ended the search for the limits that bar it."""
    return (Fact(TIME, Message.of("limit.conflict_not_found", **_held(problem))),)


def _held(problem: ResolvedSpec) -> dict[str, float]:
    """Return the limits of the spec and the memory that the process holds [s, GB]."""
    asked = problem.spec.solver
    return {"seconds": asked.time_limit, "allowed": asked.memory / GIGA, "held": resident_bytes() / GIGA}


def _smaller_program(problem: ResolvedSpec) -> Fact:
    """Name what makes a program smallest: a typical day in place of many, then divisible replicas, then fewer operating points."""
    spec = problem.spec
    if spec.horizon.calendar != TYPICAL_DAY:
        return Fact("horizon.calendar", Message.of("limit.change_calendar", slots=problem.calendar.slots))
    if spec.solver.whole:
        return Fact("solver.replicas", Message.of("limit.change_replicas"))
    return _largest_change(problem)


def _largest_change(problem: ResolvedSpec) -> Fact:
    """Name the change after which least is left of the search of operating points."""
    options = build_fleet_options(problem)[0]
    whole = _work(problem, options, apart=True)
    best = min(_changes(problem, options), key=lambda change: _work(problem, change.left, change.apart), default=None)
    left = whole if best is None else _work(problem, best.left, best.apart)
    if best is None or left >= whole:
        return Fact(TIME, Message.of("limit.change_none"))
    return Fact(best.path, Message.of(best.code, **best.counts, share=100 * left / whole))


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of the spec at a path: the fleet options that it leaves, and whether pools of prefill and decode may be apart."""

    path: str
    code: str
    left: list[FleetOption]
    apart: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)  # arguments of the message


def _changes(problem: ResolvedSpec, options: list[FleetOption]) -> Iterator[_Change]:
    """Yield the changes that may make the search smaller."""
    if any(workload.spec.disaggregation == "allowed" for workload in problem.serving):
        yield _Change("workloads", "limit.change_pools", options, apart=False)
    parts: list[tuple[str, str, Callable[[FleetOption], str]]] = [
        ("offers", "limit.change_systems", lambda option: option.system.name),
        ("sites", "limit.change_sites", lambda option: option.site.region),
    ]
    for path, code, part in parts:
        names = list(dict.fromkeys(map(part, options)))
        half = names[: len(names) // 2]
        if half:
            left = [option for option in options if part(option) in half]
            yield _Change(path, code, left, counts={"count": len(half), "of": len(names)})
    fabrics = list(dict.fromkeys(option.fabric for option in options if option.owned))
    if len(fabrics) > 1:
        left = [option for option in options if not option.owned or option.fabric == fabrics[0]]
        yield _Change("sites", "limit.change_networks", left, counts={"count": len(fabrics)})


def _work(problem: ResolvedSpec, options: Sequence[FleetOption], apart: bool) -> int:
    """Count the evaluations of a search: fleet options of each workload, and pairs of them where pools may be `apart`."""
    regions = dict.fromkeys(option.site.region for option in options)
    sites = [[option for option in options if option.site.region == region] for region in regions]
    pairs = sum(1 for here in sites for _ in connected_pairs(here))
    work = 0
    for workload in problem.serving:
        asked = workload.spec.disaggregation
        work += len(options) if asked != "always" else 0
        work += pairs if asked == "always" or (asked == "allowed" and apart) else 0
    return work + sum_of(pairs if isinstance(job, ReinforcementFacts) else len(options) for job in problem.training)
