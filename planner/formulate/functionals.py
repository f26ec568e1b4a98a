"""Names of the functionals of the joint program: costs, carbon, purchase price, and the amounts of single phases."""

from __future__ import annotations

from planner.problem.facts import PhaseFacts

COST, CARBON, CAPITAL = "cost", "carbon_kg", "capital"


def capital_of(phase: PhaseFacts) -> str:
    """Name the functional that adds up the purchase prices of a phase."""
    return f"{CAPITAL} of {phase.name}"


def paid_in(phase: PhaseFacts) -> str:
    """Name the functional that adds up all payments of a phase."""
    return f"paid in {phase.name}"
