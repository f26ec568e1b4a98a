"""Run the stages from a spec to a plan: parse, resolve, candidates, formulate, solve, interpret."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import BrokenPlanError
from planner.facts import Fact
from planner.messages import Message
from planner.plan import Plan
from planner.solving.answer import answer
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.spec.document import read_spec

if TYPE_CHECKING:
    from planner.problem.facts import ResolvedSpec
    from planner.solving.kept.program import Kept


def solve(
    source: str | Path | Mapping[str, Any],
    *,
    overlays: Sequence[Path] = (),
    hourly: Sequence[Path] = (),
    progress: Progress | None = None,
    threads: int = THREADS,
) -> Plan:
    """Solve a spec, given as a file or as a mapping, and return its plan; `threads`: of the solver.

    `hourly`: folders of the CSV files that the spec names; those beside the spec's file are found in any case.
    A plan with an answer was verified (`planner.verify`). Raises SpecError for an invalid spec, OSError for an unreadable file, and
    BrokenPlanError for a plan that fails its own verification. Infeasible, unbounded and out of time are plans with that status.
    """
    document = read_spec(source, hourly, overlays)
    return solve_document(document, overlays=overlays, progress=progress, threads=threads)


def check_spec(
    source: str | Path | Mapping[str, Any], *, overlays: Sequence[Path] = (), hourly: Sequence[Path] = ()
) -> dict[str, int]:
    """Count the workloads, sites, systems, offers, slots and assumptions of a valid spec; raises SpecError with every problem of an invalid one."""
    document = read_spec(source, hourly, overlays)
    return check_document(document, overlays=overlays)


def check_document(document: dict[str, Any], *, overlays: Sequence[Path] = ()) -> dict[str, int]:
    """Count the same of a document in memory; see `check_spec`."""
    return checked(document, overlays=overlays)[0]


def resolved(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> ResolvedSpec:
    """Resolve a document. Raises SpecError with every problem of an invalid one."""
    from planner.resolve.resolver import resolve_document

    return resolve_document(document, overlays)


def checked(document: dict[str, Any], *, overlays: Sequence[Path] = ()) -> tuple[dict[str, int], tuple[Fact, ...]]:
    """Return the counts of a valid document in memory and the notes on it: how it was understood, and conflicts with known figures."""
    from planner.solving.variants import parsed_at_once
    from planner.spec.document import edited
    from planner.spec.load.closed_loop import at_rates, closed_loops, first_rate
    from planner.spec.load.length_pools import divided, pooled
    from planner.spec.model import parse_spec

    spec = parsed_at_once(document, overlays)
    if pools := pooled(spec):
        document = divided(document, spec, {i: each.pools.boundaries or () for i, each in pools.items()})
        spec = parse_spec(document)
    loops = closed_loops(spec)
    problem = resolved(edited(document, at_rates({i: first_rate(loop) for i, loop in loops.items()})), overlays)
    offers = [offer for offer in problem.offers if offer.how != "api"]
    counts = {
        "workloads": len(problem.demands()) + len(problem.training),
        "sites": sum(site.api is None for site in problem.sites),
        "systems": len({offer.system for offer in offers}),
        "offers": len(offers),
        "slots": problem.calendar.slots,
        "assumptions": len(problem.assumptions),
    }
    return counts, problem.notes


def solve_document(
    document: dict[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None, threads: int = THREADS, kept: Kept | None = None,
) -> Plan:  # fmt: skip
    """Solve a document in memory and verify its plan; see `solve`. `kept`: evaluations and points taken over from answers to similar specs."""
    from planner.verify.plan import verify_plan

    plan = solve_unverified(document, overlays=overlays, progress=progress, threads=threads, kept=kept)
    if plan.has_answer and (found := verify_plan(plan, overlays=overlays)):
        raise BrokenPlanError(map(str, found))
    return plan


def solve_unverified(
    document: dict[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None, threads: int = THREADS, kept: Kept | None = None,
) -> Plan:  # fmt: skip
    """Solve a document in memory, for a caller that verifies the plan; see `solve_document`."""
    from planner.candidates.cache import OutOfTime
    from planner.candidates.search import find_candidates
    from planner.candidates.unproven import points_considered
    from planner.interpret.framing import without_answer
    from planner.solving.closed_loop import is_closed, solve_closed
    from planner.solving.deadline import Deadline
    from planner.solving.pools.length_pools import has_pools, solve_pools
    from planner.solving.replicas import asking_for, solver_of
    from planner.solving.stopped import without_points

    say, began = progress or (lambda line: None), time.perf_counter()
    if document.get("adapt") is not None:
        from planner.adapt.plan import adaptive_plan

        resolved(document, overlays)  # with all its problems at once

        def plain(without: dict[str, Any]) -> Plan:
            return solve_unverified(without, overlays=overlays, progress=progress, threads=threads)

        return adaptive_plan(document, plain, overlays=overlays, progress=progress, threads=threads)
    if has_pools(document):
        return solve_pools(
            document,
            lambda part: solve_unverified(part, overlays=overlays, progress=progress, threads=threads),
            say,
            overlays,
            threads,
        )
    if is_closed(document):
        return solve_closed(
            document,
            lambda rated: solve_unverified(rated, overlays=overlays, progress=progress, threads=threads, kept=kept),
            say,
            overlays,
        )
    problem = resolved(document, overlays)
    if problem.spec.robust is not None:
        from planner.robust.plan import robust_plan

        return robust_plan(problem, document, overlays=overlays, progress=progress, threads=threads)
    solve_program = solver_of(problem.spec)
    if problem.spec.solver.replicas == "auto":
        problem = asking_for(problem, "whole")
    deadline = Deadline(began + problem.spec.solver.time_limit)
    try:
        grids = None if kept is None else kept.evaluations.of(problem)
        candidates = find_candidates(problem, grids, until=deadline.ends_s)
    except OutOfTime as ended:
        reasons = without_points(problem, ended)
        for reason in reasons:
            say(reason.message.text())
        return without_answer(problem, None, "limit", None, document, reasons=reasons)
    say(
        Message.of(
            "solving.points_found",
            points=candidates.evaluated,
            kept=points_considered(candidates),
            options=len(candidates.fleet_options),
            seconds=f"{time.perf_counter() - began:.1f}",
        ).text()
    )
    return answer(
        problem, candidates, document, overlays=overlays, progress=progress, threads=threads, deadline=deadline,
        solve_program=solve_program if kept is None else kept.solver(solve_program, problem, candidates),
    )  # fmt: skip
