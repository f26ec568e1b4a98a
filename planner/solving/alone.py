"""Ask each workload alone, with all that is on offer and as wide as may be: which limit it misses in any case, and by how much.

Closed forms over the operating points of the search, without a program: a workload that has no operating point in time is named at once,
with the least latency, the most iterations or the shortest run that there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from catalog.units import DAY_S, HOUR_S, MILLI
from planner.candidates.least import LeastLatency, least_latencies
from planner.candidates.points import Candidates, OperatingPoint
from planner.facts import Fact
from planner.interpret.phases import day_of
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts, WorkloadFacts
from planner.problem.reinforcement import ReinforcementFacts

KEPT = 1 - 1e-9  # relative: below this share of what is asked a figure misses it


def impossible_alone(problem: ResolvedSpec, candidates: Candidates) -> tuple[Fact, ...]:
    """List the workloads that nothing on offer can carry, each with the figure that it misses.

    Of a workload with several architectures to choose from each must fail.
    """
    found: list[Fact] = []
    for name in dict.fromkeys(workload.asked for workload in problem.serving):
        variants = [workload for workload in problem.serving if workload.asked == name]
        facts = [tuple(_serving(problem, candidates, workload)) for workload in variants]
        if all(facts):
            found += [fact for some in facts for fact in some]
    for job in problem.training:
        found += _job(job, candidates)
    return tuple(sorted(set(found)))


def _named(workload: WorkloadFacts) -> str:
    """Name a workload with its architecture."""
    return f"{workload.asked} ({workload.spec.architecture})"


def _job(job: TrainingFacts, candidates: Candidates) -> Iterator[Fact]:
    """State the most iterations or the shortest run of a job without operating points."""
    if candidates.training[job.name] or job.name not in candidates.fastest:
        return
    fastest, spec = candidates.fastest[job.name], job.spec
    if fastest <= 0.0:
        yield Fact(f"{job.path}.architecture", Message.of("alone.no_layout", name=_named(job)))
        return
    asked_s = spec.deadline - spec.start
    share = fastest * asked_s / spec.tokens
    if share >= KEPT:
        return
    if isinstance(job, ReinforcementFacts):
        asked = job.spec.all_iterations * HOUR_S / asked_s
        message = Message.of("alone.iterations", name=_named(job), best=asked * share, asked=asked)
        given = "iterations_per_hour" if job.spec.iterations_per_hour is not None else "iterations"
        yield Fact(f"{job.path}.{given}", message)
    else:
        best, asked = spec.tokens / fastest / DAY_S, asked_s / DAY_S
        yield Fact(f"{job.path}.deadline", Message.of("alone.run", name=_named(job), best=best, asked=asked))


def _serving(problem: ResolvedSpec, candidates: Candidates, workload: ServingFacts) -> Iterator[Fact]:
    """State the least latencies of a workload for the first demand that no operating point in time serves."""
    points: dict[str, list[OperatingPoint]] = {}
    for pool in candidates.pools:
        if pool.workload.name == workload.name:
            for region in pool.origins:
                points.setdefault(region, []).extend(pool.points)
    calendar = problem.calendar
    for origin, rate in zip(workload.spec.origins, workload.requests_by_slot(calendar), strict=True):
        busy = rate > 0.0
        if not busy.any():
            continue
        starts_s = float(calendar.edges_s[calendar.window[busy]].min())
        here = points.get(origin.region, [])
        ready_s = min((_ready_s(point) for point in here), default=None)
        if ready_s is not None and ready_s <= starts_s:
            continue
        if ready_s is not None:
            message = Message.of(
                "alone.late", name=_named(workload), ready=day_of(problem, ready_s), begins=day_of(problem, starts_s)
            )
            yield Fact(workload.path, message)
        by = day_of(problem, starts_s)
        yield from _missed(workload, least_latencies(problem, workload, origin.region, starts_s), by)
        return


def _ready_s(point: OperatingPoint) -> float:
    return max(use.option.offer.ready_s(use.option.site) for use in point.uses)


def _missed(workload: ServingFacts, least: Sequence[LeastLatency] | None, by: str) -> Iterable[Fact]:
    """State each limit that no layout keeps; where each is kept by some layout, those that none keeps beside the others.

    `by`: the day by which systems must be there.
    """
    name, path = _named(workload), f"{workload.path}.slo"
    if least is None:
        yield Fact(f"{workload.path}.architecture", Message.of("alone.fits_nowhere", name=name, by=by))
        return
    alone = [("alone.latency", each, each.least_s) for each in least]
    beside = [("alone.latency_beside", each, each.beside_s) for each in least if each.beside_s is not None]
    missed = [[row for row in rows if row[2] * KEPT > row[1].limit_s] for rows in (alone, beside)]
    for code, each, best_s in missed[0] or missed[1]:
        figures = {"best": best_s / MILLI, "asked": each.limit_s / MILLI}
        system = {"system": each.system} if missed[0] else {}
        message = Message.of(code, name=name, metric=each.key.replace(".", " "), by=by, **figures, **system)
        yield Fact(f"{path}.{each.key}", message)
