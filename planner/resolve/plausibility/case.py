"""Compare a case (one workload on one system) with known figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.transformer.architecture import Architecture
from planner.errors import SpecError
from planner.facts import Fact
from planner.resolve.ledger import Ledger
from planner.resolve.plausibility.records import record_facts
from planner.resolve.plausibility.workloads import AnyWorkload, workload_facts
from planner.spec.stack.case import Case


def case_facts(
    ledger: Ledger, case: Case, workload: AnyWorkload, architectures: Mapping[str, Architecture]
) -> tuple[Fact, ...]:
    """Return the notes on a case; `architectures`: by path. Raises SpecError for what no answer can be right for."""
    shapes = {path.removeprefix("workload."): shape for path, shape in architectures.items()}
    found: Iterable[Fact] = [
        *workload_facts(ledger, "workload", workload, shapes),
        *record_facts(ledger.catalog, case.catalog, case.overrides),
    ]
    if refused := [fact.problem() for fact in found if fact.refuses]:
        raise SpecError(refused)
    return tuple(sorted(set(found)))
