"""Answer a problem with given candidates: the steps from program data to a plan, in order.

`FINDING` ends with a solution, or a document without a plan; `CHOOSING` takes other solutions within the band; `WRITING` builds the
document. Each step takes the state before it and returns another one (`planner.solving.standing`), and says what it replaces and what
it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner.facts.later_steps import CONFIDENCE, DISPATCH, LOOSER, MEASURED, ORDER, PRICES, RUNNERS_UP, SIMPLEST
from planner.messages import Message
from planner.plan import Plan
from planner.solving.deadline import LEAST_S, PROGRAM_SHARE, SHARE_BEFORE_DISPATCH, THREADS, Deadline, options_of
from planner.solving.standing import Asked, Progress, Solved, Standing, Step, left_out, versions, walked

if TYPE_CHECKING:
    from planner.candidates.points import Candidates
    from planner.facts import Fact
    from planner.formulate.formulation import Formulation
    from planner.problem.facts import ResolvedSpec
    from planner.solving.priority import Postponement
    from solvers.interface import Options
    from solvers.model.data import PlanData
    from solvers.solution import Solution


Part = TypeVar("Part")

NAMED_SHARE = 0.25  # share of the time left for the limits in conflict, where a workload alone has none


def answer(
    problem: ResolvedSpec, candidates: Candidates, document: dict[str, Any], *, overlays: Sequence[Path] = (), progress: Progress | None = None,
    threads: int = THREADS, solve_program: Callable[[PlanData, Options], Solution] | None = None, diagnosing: bool = True,
    prepare: Callable[[Formulation], Formulation] | None = None, deadline: Deadline | None = None,
) -> Plan:  # fmt: skip
    """Solve a problem and build its plan by the `deadline`, or within the time limit of the spec from now on.

    `solve_program`: used in place of `solvers.search.joint.solve`. `diagnosing`: say why there is no plan, or what the next best
    architecture would cost and how sure the plan is. `prepare`: changes the program's input before it is solved.
    """
    until = deadline or Deadline.after(problem.spec.solver.time_limit)
    asked = Asked(problem, candidates, document, overlays, progress, threads, until, diagnosing, solve_program, prepare)
    found = walked(FINDING, asked, Standing())
    if found.plan is not None:
        return found.plan
    kept = versions(CHOOSING, asked, found)
    return _last_that_holds(asked, kept if asked.improving else kept[-1:])


def _last_that_holds(asked: Asked, kept: Sequence[tuple[str, Standing]]) -> Plan:
    """Build the plan of the last of several solutions whose plan passes its own check; a note names each that did not.

    The first one is the plan found before all later steps; its plan is checked by the caller.
    """
    from planner.solving.replicas import asking_for
    from planner.verify.plan import findings

    *earlier, (name, chosen) = kept
    if not earlier:
        return _written(asked, chosen)
    stated = asking_for(asked.problem, (asked.document.get("solver") or {}).get("replicas", "auto"))
    try:
        plan = _written(asked, chosen)
        wrong = [*map(str, findings(stated, plan.document, asked.overlays))] if plan.has_answer else ["no plan"]
    except Exception as error:  # whatever is wrong with a later step, the plan before it stands
        wrong = [f"{type(error).__name__}: {error}"]
    if not wrong:
        return plan
    *first, (before, stands) = earlier
    return _last_that_holds(
        asked, [*first, (before, left_out(name, asked, replace(stands, notes=chosen.notes), wrong[0]))]
    )


def _written(asked: Asked, chosen: Standing) -> Plan:
    """Build the plan of a solution, with the notes on the steps that were left out."""
    from planner.facts import rows

    done = walked(WRITING, asked, chosen)
    plan, solved = _there(done.plan), _there(done.solved)
    if not done.notes:
        return plan
    notes: Any = rows((*solved.problem.notes, *done.notes))
    return Plan({**plan.document, "notes": notes})


def _there(part: Part | None) -> Part:
    """Return a part of the state that an earlier step brought."""
    assert part is not None
    return part


# -- finding: from a problem to a solution, or to a document without a plan -------------------------------------------------


def _formulated(asked: Asked, now: Standing) -> Standing:
    """Build the program. Replaces nothing; ends without a plan where nothing limits the objective."""
    from planner.formulate.formulation import formulate
    from planner.formulate.limits import Unbounded

    try:
        form = formulate(asked.problem, asked.candidates)
    except Unbounded:
        return replace(now, plan=asked.unanswered("unbounded"))
    return replace(now, form=form if asked.prepare is None else asked.prepare(form))


def _given_room(asked: Asked, now: Standing) -> Standing:
    """Give the search its time and memory. Replaces nothing; ends without a plan where neither is left for any search."""
    within = _room_to_solve(asked, _there(now.form))
    if isinstance(within, tuple):
        return replace(now, plan=asked.unanswered("limit", reasons=asked.told(within)))
    return replace(now, within=within)


def _room_to_solve(asked: Asked, form: Formulation) -> Options | tuple[Fact, ...]:
    """Return the options for the search of the program, or why there is no time or memory left for any."""
    from planner.solving.full_year_dispatch import is_asked
    from planner.solving.stopped import without_program
    from solvers.memory import MemoryWatch, TimeWatch, most_for_a_step, resident_bytes
    from solvers.model.size import least_program_bytes

    if asked.until.left_s < -LEAST_S:  # up to then a program that takes no time may still be solved
        return without_program(asked.problem, asked.candidates, None)
    watch = MemoryWatch(most_for_a_step(asked.problem.spec.solver.memory))
    free = watch.most_bytes - resident_bytes()
    if (needed := least_program_bytes(form.data, free)) > free:
        return without_program(asked.problem, asked.candidates, needed)
    share = SHARE_BEFORE_DISPATCH if is_asked(asked.problem) else PROGRAM_SHARE
    limits = asked.until.options(options_of(asked.problem.spec, asked.threads, asked.progress), share)
    return replace(limits, memory=watch, clock=TimeWatch())


def _searched(asked: Asked, now: Standing) -> Standing:
    """Solve the program. Replaces nothing: what was found, and its bound, stay in the state to the end."""
    from solvers.search.joint import solve as solve_cold

    found = (asked.solve_program or solve_cold)(_there(now.form).data, _there(now.within))
    asked.say(_solved_words(found))
    return replace(now, found=found)


def _explained(asked: Asked, now: Standing) -> Standing:
    """End without a plan, or with the plan in which jobs wait, where the search found none; keeps a solution as it is."""
    from planner.solving.reach import is_none

    found = _there(now.found)
    if is_none(asked.problem, found) or not found.values:
        return replace(now, plan=_without_plan(asked, _there(now.form), found, _there(now.within)))
    return now


FINDING = (
    Step("program", _formulated, needed=True),
    Step("room", _given_room, needed=True),
    Step("search", _searched, needed=True),
    Step("no plan", _explained, needed=True),
)


# -- choosing: other solutions within the band ------------------------------------------------------------------------------


def _best(asked: Asked, now: Standing) -> Standing:
    """Take the best solution found, with whole replicas or divisible ones as it holds them. Replaces nothing."""
    from planner.solving.replicas import as_found

    found = _there(now.found)
    problem, form = as_found(asked.problem, _there(now.form), found)
    return replace(now, solved=Solved(problem, asked.candidates, form, found.earlier or found))


def _simplest(asked: Asked, now: Standing) -> Standing:
    """Take the solution of fewest parts within the band, if another; may replace the solution alone, under the same program and bound."""
    return replace(now, solved=replace(_there(now.solved), solution=_there(now.found)))


def _most_confident(asked: Asked, now: Standing) -> Standing:
    """Take the solution that keeps all promises in most scenarios; may replace solution and fleet within the band, and widen the program.

    Problem, candidates, bound and ending stay; so does a solution that is not surer, of which the scenarios are kept.
    """
    from planner.solving.confidence_gain import most_confident

    solved, within = _there(now.solved), _there(now.within)
    if not asked.improving or within.noted(asked.until.left_s) <= 0:
        return now
    sure = most_confident(solved.problem, asked.candidates, solved.form, solved.solution, _searching(asked, within))
    return replace(
        now, solved=replace(solved, form=sure.form, solution=sure.solution), gain=sure.row, measured=sure.measured
    )


def _in_order(asked: Asked, now: Standing) -> Standing:
    """Let jobs make room in order of priority; may replace when work runs, as far as the asked gap allows, never the program or its bound."""
    from planner.solving.priority import making_room_in_order

    solved, within = _there(now.solved), _there(now.within)
    found = making_room_in_order(solved.problem, solved.form, solved.solution, _searching(asked, within))
    return replace(now, solved=replace(solved, solution=found))


def _searching(asked: Asked, within: Options) -> Options:
    """Return the options with the time that is left, which note on the watch of the search whether it was up."""
    return replace(asked.options_left, clock=within.clock)


CHOOSING = (
    Step("best", _best, needed=True),
    Step(SIMPLEST, _simplest, needed=True),  # left out where its plan does not pass the check
    Step(CONFIDENCE, _most_confident),
    Step(ORDER, _in_order),
)


# -- writing: from a solution to a plan document ----------------------------------------------------------------------------


def _settled(asked: Asked, now: Standing) -> Standing:
    """Solve the chosen architectures alone, with the fleet of the solution; ends without a plan where that has none.

    The solution with all architectures stays beside it, for its ending and the runners-up; bound and status refer to it.
    """
    from planner.solving.quality import settle
    from planner.solving.stopped import without_solution

    solved, within = _there(now.solved), _there(now.within)
    if asked.prepare is not None:  # the program has more in it than its architectures
        return replace(now, settled=solved)
    alone = Solved(*settle(solved.problem, solved.candidates, solved.form, solved.solution, _searching(asked, within)))
    if alone.solution.values:
        return replace(now, settled=alone)
    full = within.memory is not None and within.memory.was_full
    reasons = asked.told(without_solution(alone.problem, alone.solution, full))
    return replace(now, settled=alone, plan=asked.unanswered("limit", alone.solution, reasons=reasons))


def _priced(asked: Asked, now: Standing) -> Standing:
    """Compute the marginal values of the limits. Replaces nothing."""
    from planner.interpret.framing import sense_and_unit
    from planner.solving.marginal_values import compute_marginal_values

    it = _there(now.settled)
    unit = sense_and_unit(asked.document)[1]
    return replace(now, values=compute_marginal_values(it.problem, it.form, it.solution, unit, asked.options_left))


def _documented(asked: Asked, now: Standing) -> Standing:
    """Build the plan document, and say what ended the search. Replaces nothing."""
    from planner.interpret.document import interpret
    from planner.interpret.framing import with_ending
    from planner.interpret.marginal_values import unpriced

    it = _there(now.settled)
    values = now.values if now.values is not None else unpriced()
    plan = interpret(it.problem, it.candidates, it.form, it.solution, asked.document, values)
    return replace(now, plan=with_ending(plan, _there(now.solved).solution, _there(now.within)))


def _with_runners_up(asked: Asked, now: Standing) -> Standing:
    """Price the next best architectures; may replace the rows `quality` of the plan, never its solution."""
    from planner.solving.quality import with_runners_up

    every = _there(now.solved).problem
    if not every.quality or not asked.diagnosing:
        return now
    plan = with_runners_up(_there(now.plan), every, asked.candidates, lambda: asked.options_left, asked.say)
    return replace(now, plan=plan)


def _with_confidence(asked: Asked, now: Standing) -> Standing:
    """Add how sure the plan is, and what its choice gained; keeps all other sections."""
    from planner.solving.confidence import with_confidence
    from planner.solving.confidence_gain import stated

    if not asked.diagnosing or asked.until.left_s <= 0:
        return now
    it = _there(now.settled)
    plan = with_confidence(_there(now.plan), it.problem, it.candidates, it.form, it.solution, now.measured)
    return replace(now, plan=stated(now.gain, plan))


def _with_looser_limits(asked: Asked, now: Standing) -> Standing:
    """Add the latency limits of which a little more is worth much; keeps all other sections."""
    from planner.interpret.load.looser import with_looser_limits

    if not asked.diagnosing or asked.until.left_s <= 0:
        return now
    it = _there(now.settled)
    return replace(now, plan=with_looser_limits(_there(now.plan), it.problem, it.candidates, it.form, it.solution))


def _with_dispatch(asked: Asked, now: Standing) -> Standing:
    """Add the dispatch on all hours of the year to a plan on fewer, null where the time was up; keeps all other sections."""
    from planner.solving.full_year_dispatch import dispatched, is_asked

    it, plan = _there(now.settled), _there(now.plan)
    if not is_asked(it.problem):
        return now
    found = dispatched(it.problem, it.candidates, it.form, it.solution, plan.totals, asked.overlays, asked.options_left)
    if found is None:
        asked.say(Message.of("progress.dispatch_time").text())
    else:
        asked.say(
            Message.of(
                "progress.dispatched",
                count=f"{found['slots']:,}",
                difference=f"{found['difference']:+.3%}",
                seconds=f"{found['seconds']:.1f}",
            ).text()
        )
    return replace(now, plan=Plan({**plan.document, "dispatch": found}))


WRITING = (
    Step("architectures", _settled, needed=True),
    Step(PRICES, _priced),
    Step("document", _documented, needed=True),
    Step(RUNNERS_UP, _with_runners_up),
    Step(MEASURED, _with_confidence),
    Step(LOOSER, _with_looser_limits),
    Step(DISPATCH, _with_dispatch),
)


# -- without a plan -----------------------------------------------------------------------------------------------------------


def _without_plan(asked: Asked, form: Formulation, solution: Solution, within: Options) -> Plan:
    """Answer without a plan: why there is none, or the plan in which jobs of less priority wait."""
    from planner.interpret.framing import with_ending
    from planner.solving.alone import impossible_alone
    from planner.solving.priority import has_priorities, postponed
    from planner.solving.reach import demand_within_reach, is_none
    from planner.solving.stopped import without_conflict, without_solution
    from solvers.search.joint import is_small

    problem, nothing = asked.problem, is_none(asked.problem, solution)
    status = "infeasible" if nothing and solution.status != "limit" else solution.status
    diagnosis: dict[str, Any] | None = None
    reasons = asked.told(impossible_alone(problem, asked.candidates)) if asked.diagnosing else ()
    if reasons:
        asked = replace(asked, until=asked.until.share(NAMED_SHARE))
    if status == "infeasible" and asked.diagnosing:
        if has_priorities(problem):
            asked.say(Message.of("progress.jobs_that_wait").text())
            waiting = postponed(asked.document, asked.overlays, asked.options, asked.until)
            if waiting is not None:
                return _answer_without_the_late(waiting, asked)
        asked.say(Message.of("solving.no_plan").text())
        reach = [] if nothing else demand_within_reach(problem, form, asked.options_left)
        diagnosis = _diagnosed(asked, solution, nothing, is_small(form.data))
        if diagnosis is not None and not diagnosis["conflict"] and not reasons:
            reasons = asked.told(without_conflict(problem))
        if diagnosis is not None and reach:
            diagnosis = {**diagnosis, "reach": reach}
    if status == "limit":
        full = within.memory is not None and within.memory.was_full
        reasons = (*reasons, *asked.told(without_solution(problem, solution, full)))
    return with_ending(asked.unanswered(status, solution, diagnosis, reasons), solution, within)


def _solved_words(solution: Solution) -> str:
    """State the size of a program and how its search ended."""
    size = {name: f"{getattr(solution, name):,}" for name in ("rows", "columns", "integers")}
    told = {**size, "status": solution.status, "seconds": f"{solution.seconds:.1f}"}
    if solution.gap is None:
        return Message.of("progress.size", **told).text()
    return Message.of("progress.size_gap", **told, gap=f"{solution.gap:.3%}").text()


def _diagnosed(asked: Asked, solution: Solution, nothing: bool, small: bool) -> dict[str, Any] | None:
    """Say why there is no plan: with whole replicas where that takes little time, else with divisible ones, where not even those have one."""
    from planner.solving.replicas import asking_for

    if not solution.relaxed:
        return _diagnosis(asked.problem, asked, asked.until, nothing)
    diagnosis = _diagnosis(asked.problem, asked, asked.until.share(0.5), nothing) if small else None
    if diagnosis is None or not diagnosis["repair"]:
        diagnosis = _diagnosis(asking_for(asked.problem, "divisible"), asked, asked.until, nothing)
    return diagnosis


def _answer_without_the_late(found: Postponement, asked: Asked) -> Plan:
    """Answer the problem in which some jobs wait, and say which."""
    from planner.candidates.cache import OutOfTime
    from planner.interpret.framing import without_answer
    from planner.solving.replicas import asking_for, either_of
    from planner.solving.variants import points_found

    problem, solve_program = found.problem, either_of(found.problem.spec)
    if problem.spec.solver.replicas == "auto":
        problem = asking_for(problem, "whole")
    try:
        candidates = points_found(problem, until=asked.until.ends_s)
    except OutOfTime:
        return without_answer(problem, None, "limit", None, asked.document)
    plan = answer(
        problem,
        candidates,
        asked.document,
        overlays=asked.overlays,
        progress=asked.progress,
        threads=asked.threads,
        solve_program=solve_program,
        deadline=asked.until,
    )
    return Plan({**plan.document, "postponed": found.rows}) if plan.has_answer else plan


def _diagnosis(problem: ResolvedSpec, asked: Asked, until: Deadline, nothing: bool) -> dict[str, Any]:
    """Diagnose a spec without a plan; `nothing`: it asks for the most throughput, of which there is none.

    With whole replicas a repair of a throughput question has to serve some of the demand.
    """
    from planner.candidates.cache import OutOfTime
    from planner.solving.infeasibility import NOTHING_FOUND, diagnose
    from planner.solving.reach import asking_for_some
    from planner.solving.variants import points_found, resolved
    from planner.spec.document import edited

    candidates, document = asked.candidates, asked.document
    if problem.spec.solver.whole:
        document = edited(document, (("solver.replicas", "whole"),))
    if nothing or (problem.spec.objective.maximise is not None and problem.spec.solver.whole):
        document = asking_for_some(document, problem)
        problem = resolved(document, asked.overlays)
        try:
            candidates = points_found(problem, until=until.ends_s)
        except OutOfTime:
            return NOTHING_FOUND
    return diagnose(problem, candidates, document, asked.overlays, until.options(asked.options))
