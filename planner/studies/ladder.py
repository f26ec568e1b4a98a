"""Climb a ladder of costs: pull one lever after another from today's cost per million tokens towards a target, and solve each plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.units import MILLION, UnitError
from planner.errors import Issue, SpecError, words_of
from planner.formulate.limits import Unbounded
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.report.words import amount
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Variants, resolved
from planner.spec.document import Edits, edited
from planner.spec.quantities import read_money
from planner.studies.base.planned import Base, planned, solved, study_options
from planner.studies.sensitivity_factors import level_of
from solvers.interface import Options

TODAY = Message.of("studies.today").text()


@dataclass(frozen=True, slots=True)
class Lever:
    """Changes of the spec that are made together, with a name."""

    name: str
    edits: Edits


@dataclass(frozen=True, slots=True)
class Rung:
    """The plan with all levers up to this one. `cost_per_million_tokens`: of the workloads asked for; None without a plan."""

    lever: str
    status: str
    cost_per_million_tokens: float | None
    gap: float | None
    factor: float | None  # factor of the rung before over this one
    from_today: float | None
    to_target: float | None  # how many times cheaper the target still is

    def row(self) -> dict[str, Any]:
        """Return its figures as a row."""
        return {
            name: getattr(self, name)
            for name in ("lever", "status", "cost_per_million_tokens", "gap", "factor", "from_today", "to_target")
        }


@dataclass(frozen=True, slots=True)
class Ladder:
    """All rungs, starting with today; `status`: of the worst rung."""

    workloads: tuple[str, ...]
    currency: str
    target: float | None  # per million tokens
    rungs: tuple[Rung, ...]
    status: str
    base: Base

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        return [rung.row() for rung in self.rungs]

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "workloads": list(self.workloads),
            "currency": self.currency,
            "target_per_million_tokens": self.target,
            "status": self.status,
            "base": self.base.row(),
            "rungs": self.rows,
        }

    @property
    def words(self) -> list[str]:
        """Summarise today's cost, the last rung and the target."""
        first, last = self.rungs[0], self.rungs[-1]
        said = [self.base.message.text()]
        if first.cost_per_million_tokens is None:
            return [*said, Message.of("ladder.no_plan").text()]
        said.append(
            Message.of(
                "ladder.today",
                names=", ".join(self.workloads),
                cost=f"{first.cost_per_million_tokens:.6g}",
                currency=self.currency,
            ).text()
        )
        if last.from_today is not None and len(self.rungs) > 1:
            said.append(
                Message.of(
                    "ladder.all",
                    times=f"{last.from_today:,.3g}",
                    cost=f"{last.cost_per_million_tokens:.6g}",
                    currency=self.currency,
                ).text()
            )
        if self.target is not None and last.to_target is not None:
            told = {"target": f"{self.target:.6g}", "currency": self.currency}
            if last.to_target > 1:
                said.append(Message.of("ladder.away", times=f"{last.to_target:,.3g}", **told).text())
            else:
                said.append(Message.of("ladder.reached", **told).text())
        return said

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        rows = [
            {
                "lever": rung.lever,
                "status": rung.status.replace("_", " "),
                f"{self.currency} per million": _number(rung.cost_per_million_tokens),
                "times cheaper": _number(rung.factor),
                "since today": _number(rung.from_today),
                **({} if self.target is None else {"left to the target": _number(rung.to_target)}),
            }
            for rung in self.rungs
        ]
        return [(Message.of("studies.head_levers").text(), rows)]


def ladder(
    document: Mapping[str, Any], levers: Sequence[str], *, workload: str | None = None, phase: str | None = None, target: str | None = None,
    overlays: Sequence[Path] = (), progress: Progress | None = None, so_far: Callable[[Ladder], None] | None = None,
) -> Ladder:  # fmt: skip
    """Compute the cost per million output tokens after each lever, keeping those before it.

    The cost is that of one serving `workload`, or of all together, over the horizon; or of everything in one `phase`.
    `levers`: texts `NAME: PATH=VALUE; PATH=VALUE`, the value a new one or a change such as -30%. `target`: an amount per token.
    `so_far` is told the ladder after each rung. Raises SpecError for a lever or target that cannot be read.
    """
    began, say = time.perf_counter(), progress or (lambda line: None)
    problem = resolved(document, overlays)
    serving = tuple(dict.fromkeys(w.asked for w in problem.serving))
    names = serving if workload is None else (workload,)
    if not set(names) & set(serving):
        raise SpecError(
            [
                Issue(
                    "--workload",
                    Message.of(
                        "studies.unknown_workload",
                        name=str(workload),
                        names=", ".join(serving) or "none, there is none",
                    ).text(),
                )
            ]
        )
    if phase is not None and (
        phase not in (phases := [row.name for row in problem.spec.phases or ()])
        or (workload is not None and len(serving) > 1)
    ):
        raise SpecError(
            [
                Issue(
                    "--phase",
                    Message.of(
                        "studies.phase_expected",
                        names=", ".join(phases) or "(there are none)",
                        given=phase,
                    ).text(),
                )
            ]
        )
    wanted = None if target is None else _target(target, problem)
    rungs: list[Rung] = []
    steps: list[tuple[str, Edits, dict[str, Any]]] = [(TODAY, (), dict(document))]
    for text in levers:  # all are read before any is solved
        _, edits, written = steps[-1]
        lever = _lever(written, text)
        steps.append((lever.name, edits + lever.edits, edited(written, lever.edits)))
    start = planned(dict(document), overlays, progress=progress)
    options = study_options(start.problem)

    today: float | None = None

    def found() -> Ladder:
        order = ("infeasible", "unbounded", "limit", "within_gap", "optimal")
        status = min((rung.status for rung in rungs), key=order.index)
        return Ladder(names, problem.spec.currency, wanted, tuple(rungs), status, start.base(today))

    for name, edits, written in steps:
        answer, status = _answer(start.variants, edits, options)
        today = answer.value if answer is not None and not rungs else today
        rungs.append(_rung(name, answer, status, written, names, phase, rungs, wanted))
        say(
            Message.of(
                "progress.elapsed", name=name, status=rungs[-1].status, seconds=f"{time.perf_counter() - began:.1f}"
            ).text()
        )
        if so_far is not None:
            so_far(found())
    return found()


def _answer(variants: Variants, edits: Edits, options: Options) -> tuple[Answer | None, str]:
    """Solve the spec with some edits; returns the status too, also where there is no answer."""
    try:
        answer = solved(variants, edits, options)
    except Unbounded:
        return None, "unbounded"
    return answer, "limit" if answer is None else answer.solution.status


def _rung(
    name: str,
    answer: Answer | None,
    status: str,
    document: Mapping[str, Any],
    names: Sequence[str],
    phase: str | None,
    before: Sequence[Rung],
    target: float | None,
) -> Rung:
    if answer is None or answer.value is None:
        return Rung(name, status, None, None, None, None, None)
    plan = answer.plan(document)
    rows = [
        (row["cost"], row["cost_per_million_tokens"])
        for row in plan.document["workloads"]
        if row.get("of", row["name"]) in names
    ]
    prices = [(cost, price) for cost, price in rows if price]
    millions = sum(cost / price for cost, price in prices)
    cost = sum(cost for cost, _ in prices) / millions if millions else None
    if phase is not None:
        cost = next(row for row in plan.document["phases"] if row["name"] == phase)["cost_per_million_tokens"]
    known = [rung.cost_per_million_tokens for rung in before if rung.cost_per_million_tokens is not None]
    return Rung(
        name, status, cost, answer.solution.gap,
        factor=known[-1] / cost if known and cost else None,
        from_today=known[0] / cost if known and cost else None,
        to_target=cost / target if target and cost else None,
    )  # fmt: skip


def _lever(document: Mapping[str, Any], text: str) -> Lever:
    name, colon, body = text.partition(":")
    assignments = [part.partition("=") for part in body.split(";")]
    if (
        not colon
        or not name.strip()
        or not all(path.strip() and equals and value.strip() for path, equals, value in assignments)
    ):
        raise SpecError(
            [
                Issue(
                    "--lever",
                    Message.of("option.lever", given=text).text(),
                )
            ]
        )
    edits: list[tuple[str, Any]] = []
    for path, _, value in assignments:
        path = path.strip()
        edits += level_of(document, path, value).edits
    return Lever(name.strip(), tuple(edits))


def _target(text: str, problem: ResolvedSpec) -> float:
    """Parse the target: per million tokens, in the spec's currency."""
    try:
        amount, currency = read_money(text, "token", "0.01 CNY/1M tokens", 0.0, float("inf"))
    except (UnitError, ValueError) as error:
        raise SpecError([Issue("--target", words_of(error))]) from None
    if currency not in problem.per_usd:
        raise SpecError(
            [
                Issue(
                    "--target",
                    Message.of(
                        "studies.amount_of_another_currency", currency=" or ".join(sorted(problem.per_usd)), given=text
                    ).text(),
                )
            ]
        )
    return amount * MILLION / problem.per_usd[currency] * problem.per_usd[problem.spec.currency]


def _number(value: float | None) -> str:
    return "" if value is None else amount(value)
