"""The functionals of the joint program, as sums of the same terms: cost, carbon, energy, purchase price, and the amounts of single phases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.arrays import Floats
from planner.money.components import SYSTEM
from planner.money.terms import CAPITAL, CARBON, COST, AnyTerms, coefficients, in_phase, purchases
from planner.problem.facts import PhaseFacts, ResolvedSpec


def capital_of(phase: PhaseFacts) -> str:
    """Name the functional that adds up the purchase prices of a phase."""
    return f"{CAPITAL} of {phase.name}"


def paid_in(phase: PhaseFacts) -> str:
    """Name the functional that adds up all payments of a phase."""
    return f"paid in {phase.name}"


@dataclass(frozen=True, slots=True)
class Functionals:
    """The terms of each functional of a program; functionals of a phase exist only where the spec limits the phase."""

    terms: Mapping[str, Sequence[AnyTerms]]

    def of(self, decision: str, *shape: int) -> dict[str, Floats]:
        """Add up the coefficients of a decision in each functional that it takes part in; of systems, and of cost, in every one."""
        return {
            name: coefficients(terms, decision, shape)
            for name, terms in self.terms.items()
            if name == COST or decision == SYSTEM or any(term.decision == decision for term in terms)
        }


def functionals_of(problem: ResolvedSpec, terms: Sequence[AnyTerms]) -> Functionals:
    """Group terms by functional."""
    found: dict[str, Sequence[AnyTerms]] = {
        name: [term for term in terms if term.functional == name] for name in (COST, CARBON)
    }
    found[CAPITAL] = purchases(terms)
    for p, phase in enumerate(problem.phases):
        if math.isfinite(phase.capital):
            found[capital_of(phase)] = [term for term in purchases(terms, p) if term.decision == SYSTEM]
        if math.isfinite(phase.budget):
            found[paid_in(phase)] = in_phase(terms, p)
    return Functionals(found)
