"""Find changes of a question about the edge that give a task a place: one change where one is enough, or the fewest of several together.

Each is the least one of its kind, to three digits, and is checked by solving the changed question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.design.edge.options import Evaluation, find_options
from planner.design.edge.program import Assignment, solve_edge
from planner.design.edge.table import edge_data
from planner.messages import Message
from planner.resolve.ledger import Ledger
from planner.spec.changes import change_words, rescaled, scaled
from planner.spec.document import Edits, at, edited
from planner.spec.stack.edge import DEVICE, EdgeSpec

MOST = 1000.0  # times an amount is changed
CLOSE = 1.002  # ratio of two amounts that are not told apart
DEVICES = (2, 3, 4)  # in place of one


@dataclass(frozen=True, slots=True)
class Lever:
    """What may be changed: the edits of a step, or of a factor that is 1 as stated; `steps` are tried from the least on."""

    edits: Callable[[float], Edits]
    steps: tuple[float, ...] = ()
    joins: bool = True  # whether more of it never takes a place away, so that it may be joined with others

    @property
    def most(self) -> float:
        """Return the largest step or factor."""
        return self.steps[-1] if self.steps else MOST


@dataclass(frozen=True, slots=True)
class Repair:
    """Changes that give a task a place, and the assignment with them."""

    edits: Edits
    assignment: Assignment
    words: str

    def row(self) -> dict[str, Any]:
        """Document the changes as edits and in words, and the cost per year with them."""
        changes = [{"path": path, "to": value} for path, value in self.edits]
        return {"changes": changes, "words": self.words, "cost_per_year": self.assignment.cost}


@dataclass(frozen=True, slots=True)
class Repairs:
    """A question that leaves tasks without a place, in which changes are tried."""

    spec: EdgeSpec
    document: Mapping[str, Any]
    out: tuple[int, ...]
    evaluation: Evaluation

    def of(self, t: int) -> list[Repair]:
        """List the changes of one kind that give a task a place beside those that have one; of several kinds where none is enough.

        Raises LimitReached.
        """
        levers = list(self._levers(t))
        found = [edits for lever in levers if (edits := self._least(t, lever, ()))]
        if not found:
            found = [edits for edits in [self._together(t, [lever for lever in levers if lever.joins])] if edits]
        return [self._repair(t, edits) for edits in found]

    def _repair(self, t: int, edits: Edits) -> Repair:
        solved = self._solved(t, edits)
        assert solved is not None
        words = "; ".join(change_words(path, at(self.document, path), value) for path, value in edits)
        counts = [value / at(self.document, path) for path, value in edits if path.endswith(".count")]
        if counts:
            words = Message.of("edge.repaired_by_devices", count=round(counts[0])).text()
        return Repair(edits, solved, words)

    def _solved(self, t: int, edits: Edits) -> Assignment | None:
        """Solve the changed question for a task and those that have a place; None where it has no answer, or cannot be asked."""
        self.evaluation.limits.check()
        document = edited(self.document, edits)
        try:
            spec = EdgeSpec.model_validate(document)
            options = find_options(spec, document, (), self.evaluation)
        except ValueError:  # ValidationError and SpecError: beyond what may be stated
            return None
        data = edge_data(options, Ledger(options.catalog))
        return solve_edge(data, out=[u for u in self.out if u != t], limits=self.evaluation.limits)

    def _least(self, t: int, lever: Lever, others: Edits) -> Edits | None:
        """Find the least change by a lever, beside other changes, with which the task has a place; None where none gives one."""
        for step in lever.steps:
            if self._solved(t, others + lever.edits(step)) is not None:
                return lever.edits(step)
        if lever.steps or self._solved(t, others + lever.edits(MOST)) is None:
            return None
        low, high = 1.0, MOST
        while high / low > CLOSE:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._solved(t, others + lever.edits(middle)) is not None else (middle, high)
        return lever.edits(high)

    def _together(self, t: int, levers: Sequence[Lever]) -> Edits | None:
        """Find changes by several levers of which none can be left out; None where all together do not give the task a place."""
        chosen = {lever: lever.edits(lever.most) for lever in levers}

        def joined(without: Lever | None = None) -> Edits:
            return tuple(edit for lever, edits in chosen.items() if lever is not without for edit in edits)

        if self._solved(t, joined()) is None:
            return None
        for lever in levers:
            if self._solved(t, joined(lever)) is not None:
                del chosen[lever]
        for lever in tuple(chosen):
            chosen[lever] = self._least(t, lever, joined(lever)) or chosen[lever]
        return joined()

    def _levers(self, t: int) -> Iterator[Lever]:
        """Yield what may be changed for a task; those that a reader would rather not change come first."""
        spec, task = self.spec, self.spec.tasks[t]
        f = next(f for f, fleet in enumerate(spec.fleets) if fleet.name == task.fleet)
        fleet, mine = f"fleets[{f}]", [f"tasks[{u}]" for u, other in enumerate(spec.tasks) if other.fleet == task.fleet]
        if task.tiers is not None and len(task.tiers) <= len(spec.tiers):
            yield Lever(lambda _: ((f"tasks[{t}].tiers", [DEVICE, *(tier.name for tier in spec.tiers)]),), (2.0,))
        known = {spec.fleets[f].availability, *(tier.availability for tier in spec.tiers)}
        if lower := sorted((a for a in known if a < task.availability), reverse=True):
            steps = tuple(float(i) for i in range(len(lower)))
            yield Lever(lambda step: ((f"tasks[{t}].availability", lower[int(step)]),), steps)
        for k, tier in enumerate(spec.tiers):
            if tier.most is not None:
                yield Lever(self._whole(f"tiers[{k}].most"))
            if tier.power is not None:
                yield Lever(self._scaled(f"tiers[{k}].power"))
        for name in ("power", "battery", "uplink"):
            if at(self.document, f"{fleet}.{name}") is not None:
                yield Lever(self._scaled(f"{fleet}.{name}"))
        yield Lever(self._shared(fleet, mine), tuple(map(float, DEVICES)), joins=False)
        yield Lever(self._scaled(f"tasks[{t}].requests_per_s", down=True))
        yield Lever(self._scaled(f"tasks[{t}].deadline"))

    def _scaled(self, path: str, down: bool = False) -> Callable[[float], Edits]:
        """Return the edits that multiply, or with `down` divide, what stands at a path."""
        return lambda factor: ((path, rescaled(at(self.document, path), 1.0 / factor if down else factor)),)

    def _whole(self, path: str) -> Callable[[float], Edits]:
        """Return the edits that multiply a whole number."""
        return lambda factor: ((path, math.ceil(int(at(self.document, path)) * factor)),)

    def _shared(self, fleet: str, tasks: Sequence[str]) -> Callable[[float], Edits]:
        """Return the edits that put several devices in place of one, which share its requests, power, battery and uplink."""
        divided = [
            *(f"{task}.requests_per_s" for task in tasks),
            *(f"{fleet}.{name}" for name in ("power", "battery", "uplink")),
        ]

        def edits(count: float) -> Edits:
            whole = int(at(self.document, f"{fleet}.count")) * int(count)
            stated = [(path, written) for path in divided if (written := at(self.document, path)) is not None]
            shares = [
                (path, scaled(float(written) if isinstance(written, int) else written, 1.0 / count))
                for path, written in stated
            ]
            return ((f"{fleet}.count", whole), *shares)

        return edits
