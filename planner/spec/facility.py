"""Blocks of a spec about the hall in which systems stand: rack positions, power and cooling of a rack, sole tenancy and audit classes.

Their effect on a plan: `planner.problem.facility`.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from planner.spec.base import SOME, Block
from planner.spec.quantities import WHOLE, Name, Switch, Watts

Cooling = Literal["air", "liquid"]
COOLING: tuple[Cooling, ...] = get_args(Cooling)
AuditClasses = Annotated[list[Name], Field(max_length=20)]


class Hall(Block):
    """What the hall of a site can take of our own systems; rented ones stand in their provider's."""

    rack_positions: Annotated[int, Field(ge=0, le=10_000_000), WHOLE] | None = None
    """Most racks that systems of our own may fill, besides those of the network; unlimited if omitted."""
    rack_power: Watts | None = None
    """Most nameplate power of one rack; unlimited if omitted. A system whose rack needs more cannot stand there."""
    cooling: Annotated[list[Cooling], SOME] | None = None
    """Cooling that the hall has; both kinds if omitted. A system that needs another cannot stand there."""


class Assurance(Block):
    """Assurances of the place where a workload runs: for systems of our own by the site, else by the offer or the API."""

    sole_tenant: Switch = False
    """Whether nobody else's systems or workloads share the hall or, of what is rented, the host."""
    audit: AuditClasses = []
    """Audit classes that it holds, such as "SOC 2" or "ISO 27001"."""
