"""Say what ended a search without a plan, and the change of the spec that makes the next search smallest.

The size of the search of operating points is counted, not timed: fleet options of each workload, and pairs of them for pools of prefill
and decode apart. The change that leaves the least of it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog.units import GIGA
from planner.candidates.cache import OutOfMemory, OutOfTime
from planner.candidates.disaggregated import connected_pairs
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.points import Candidates
from planner.facts import Fact
from planner.messages import Message
from planner.problem.calendar import TYPICAL_DAY
from planner.problem.facts import Problem
from planner.problem.reinforcement import ReinforcementFacts
from solvers.memory import resident_bytes
from solvers.solution import Solution

TIME, MEMORY = "solver.time_limit", "solver.memory"


def without_points(problem: Problem, ended: OutOfTime) -> tuple[Fact, ...]:
    """Say why the operating points were not all evaluated."""
    options = len(build_fleet_options(problem)[0])
    counts = {"points": ended.evaluated, "options": options, **_held(problem)}
    if isinstance(ended, OutOfMemory):
        return Fact(MEMORY, Message.of("limit.points_memory", **counts)), _largest_change(problem)
    return Fact(TIME, Message.of("limit.points_time", **counts)), _largest_change(problem)


def without_program(problem: Problem, candidates: Candidates, needed_bytes: float | None) -> tuple[Fact, ...]:
    """Say why the program was not solved: of the time (None), or of the memory that it takes."""
    points = sum(len(pool.points) for pool in candidates.pools) + sum(map(len, candidates.training.values()))
    counts = {"points": points, "slots": problem.calendar.slots, **_held(problem)}
    if needed_bytes is None:
        return Fact(TIME, Message.of("limit.program_time", **counts)), _smaller_program(problem)
    message = Message.of("limit.program_memory", needed=needed_bytes / GIGA, **counts)
    return Fact(MEMORY, message), _smaller_program(problem)


def without_solution(problem: Problem, solution: Solution, memory_was_full: bool) -> tuple[Fact, ...]:
    """Say how large the program was in which no plan was found."""
    counts = {"columns": solution.columns, "integers": solution.integers, **_held(problem)}
    if memory_was_full:
        return Fact(MEMORY, Message.of("limit.solution_memory", **counts)), _smaller_program(problem)
    return Fact(TIME, Message.of("limit.solution_time", **counts)), _smaller_program(problem)


def _held(problem: Problem) -> dict[str, float]:
    """Return the limits of the spec and the memory that the process holds [s, GB]."""
    asked = problem.spec.solver
    return {"seconds": asked.time_limit, "allowed": asked.memory / GIGA, "held": resident_bytes() / GIGA}


def _smaller_program(problem: Problem) -> Fact:
    """Name what makes a program smallest: a typical day in place of many, then divisible replicas, then fewer operating points."""
    spec = problem.spec
    if spec.horizon.calendar != TYPICAL_DAY:
        return Fact("horizon.calendar", Message.of("limit.change_calendar", slots=problem.calendar.slots))
    if spec.solver.whole:
        return Fact("solver.replicas", Message.of("limit.change_replicas"))
    return _largest_change(problem)


def _largest_change(problem: Problem) -> Fact:
    """Name the change after which least is left of the search of operating points."""
    options = build_fleet_options(problem)[0]
    whole = _work(problem, options)
    changes = (
        [(_work(problem, left, **never) / whole, fact) for left, never, fact in _changes(problem, options)]
        if whole
        else []
    )
    share, fact = min(changes, key=lambda change: change[0], default=(1.0, None))
    if fact is None or share >= 1.0:
        return Fact(TIME, Message.of("limit.change_none"))
    return Fact(fact.path, Message.of(fact.message.code, **fact.message.arguments, share=100 * share))


def _changes(problem: Problem, options: list[FleetOption]) -> Iterator[tuple[list[FleetOption], dict[str, bool], Fact]]:
    """Yield the fleet options that a change leaves, whether it rules out pools apart, and its words."""
    if any(workload.spec.disaggregation == "allowed" for workload in problem.serving):
        yield options, {"apart": False}, Fact("workloads", Message.of("limit.change_pools", share=0))
    systems = list(dict.fromkeys(option.system.name for option in options))
    if len(systems) > 1:
        half = set(systems[: len(systems) // 2])
        message = Message.of("limit.change_systems", count=len(half), of=len(systems), share=0)
        yield [option for option in options if option.system.name in half], {}, Fact("offers", message)
    regions = list(dict.fromkeys(option.site.region for option in options))
    if len(regions) > 1:
        half = set(regions[: len(regions) // 2])
        message = Message.of("limit.change_sites", count=len(half), of=len(regions), share=0)
        yield [option for option in options if option.site.region in half], {}, Fact("sites", message)
    fabrics = list(dict.fromkeys(option.fabric for option in options if option.owned))
    if len(fabrics) > 1:
        left = [option for option in options if not option.owned or option.fabric == fabrics[0]]
        yield left, {}, Fact("sites", Message.of("limit.change_networks", count=len(fabrics), share=0))


def _work(problem: Problem, options: Iterable[FleetOption], apart: bool = True) -> float:
    """Count the evaluations of a search: fleet options of each workload, and pairs of them where pools may be apart."""
    options = list(options)
    pairs = sum(1 for region in {option.site.region for option in options}
                for _ in connected_pairs([option for option in options if option.site.region == region]))  # fmt: skip
    work = 0.0
    for workload in problem.serving:
        asked = workload.spec.disaggregation
        work += (asked != "always") * len(options)
        work += (asked == "always" or (asked != "never" and apart)) * pairs
    return work + sum(pairs if isinstance(job, ReinforcementFacts) else len(options) for job in problem.training)
