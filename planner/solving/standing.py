"""The state of an answer on its way from a problem to a plan, and how its steps are taken.

A step takes the state and returns another one; nothing is changed in place, so that a step that raises leaves the state before it.
Not here: the steps themselves, in order (`planner.solving.answer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.facts.later_steps import undone
from planner.messages import Message
from planner.plan import Plan
from planner.solving.deadline import Deadline, options_of

if TYPE_CHECKING:
    from planner.candidates.points import Candidates
    from planner.facts import Fact
    from planner.formulate.formulation import Formulation
    from planner.interpret.marginal_values import MarginalValues
    from planner.plan.rows.robust import ConfidenceGain
    from planner.problem.facts import ResolvedSpec
    from planner.solving.confidence import InScenarios
    from solvers.interface import Options
    from solvers.model.data import PlanData
    from solvers.solution import Solution

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A problem with its candidates and how it is to be answered; see `planner.solving.answer.answer`."""

    problem: ResolvedSpec
    candidates: Candidates
    document: dict[str, Any]
    overlays: Sequence[Path]
    progress: Progress | None
    threads: int
    until: Deadline
    diagnosing: bool
    solve_program: Callable[[PlanData, Options], Solution] | None = None
    prepare: Callable[[Formulation], Formulation] | None = None

    @property
    def improving(self) -> bool:
        """Whether later steps may take another plan: not in a study, nor where the program is not the spec's alone."""
        return self.diagnosing and self.prepare is None

    def say(self, line: str) -> None:
        """Tell the progress, where somebody listens."""
        if self.progress is not None:
            self.progress(line)

    @property
    def options(self) -> Options:
        """Return the solver options of the spec, with its whole limit of time."""
        return options_of(self.problem.spec, self.threads)

    @property
    def options_left(self) -> Options:
        """Return the solver options with the time that is left."""
        return self.until.options(self.options)

    def told(self, reasons: Sequence[Fact]) -> Sequence[Fact]:
        """Tell the progress why there is no plan."""
        for reason in reasons:
            self.say(reason.message.text())
        return reasons

    def unanswered(
        self,
        status: str,
        solution: Solution | None = None,
        diagnosis: dict[str, Any] | None = None,
        reasons: Sequence[Fact] = (),
    ) -> Plan:
        """Build the document of a question without a plan."""
        from planner.interpret.framing import without_answer

        return without_answer(self.problem, self.candidates, status, solution, self.document, diagnosis, reasons)


@dataclass(frozen=True, slots=True)
class Solved:
    """A solution with its bound, and the problem, candidates and program that it solves; the four are replaced together."""

    problem: ResolvedSpec
    candidates: Candidates
    form: Formulation
    solution: Solution


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands of an answer: a program, then a solution, then a plan; each None before the step that brings it."""

    form: Formulation | None = None
    within: Options | None = None  # limits of the search, with the watches of time and memory
    found: Solution | None = None  # by the search: its bound holds for every later solution
    solved: Solved | None = None
    settled: Solved | None = None  # with the architectures of the solution alone, where the spec leaves them open
    gain: ConfidenceGain | None = None  # row of a plan that was chosen for its confidence
    measured: InScenarios | None = None  # the solution in the scenarios of `confidence`
    values: MarginalValues | None = None
    plan: Plan | None = None
    notes: tuple[Fact, ...] = ()  # on steps that were left out

    @property
    def solution(self) -> Solution | None:
        """Return the solution that stands."""
        return None if self.solved is None else self.solved.solution

    @property
    def ends(self) -> bool:
        """Whether there is a document without a plan, so that no step is left."""
        return self.plan is not None and not self.plan.has_answer


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an answer: its name, and the function that returns the state after it.

    `needed`: no plan can be built without it, so that its error is not held.
    """

    name: str
    take: Callable[[Asked, Standing], Standing]
    needed: bool = False


def after(step: Step, asked: Asked, now: Standing) -> Standing:
    """Take a step. One that raises leaves the state before it, with a note; the error of a needed step is raised."""
    try:
        return step.take(asked, now)
    except Exception as error:
        if step.needed:
            raise
        return left_out(step.name, asked, now, f"{type(error).__name__}: {error}")


def left_out(name: str, asked: Asked, now: Standing, why: str) -> Standing:
    """Return a state with the note that a step was left out."""
    asked.say(Message.of("progress.step_left_out", name=f"{name!r}", why=why).text())
    return replace(now, notes=(*now.notes, undone(name)))


def walked(steps: Sequence[Step], asked: Asked, now: Standing) -> Standing:
    """Take steps in order, up to a document without a plan."""
    for step in steps:
        if now.ends:
            break
        now = after(step, asked, now)
    return now


def versions(steps: Sequence[Step], asked: Asked, now: Standing) -> list[tuple[str, Standing]]:
    """Return the first solution of some steps, named "", and after it each state with another solution, by the name of its step."""
    kept = [("", now)]
    for step in steps:
        *earlier, (name, before) = kept
        now = after(step, asked, before)
        other = None not in (before.solved, now.solved) and now.solution is not before.solution
        kept = [*kept, (step.name, now)] if other else [*earlier, (name, now)]
    return kept
