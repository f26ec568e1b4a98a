"""Redundancy of a serving workload: what it holds beyond its load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.spec.quantities import Real

NPLUS1 = "N+1"
Redundancy = Literal["N+1"] | Annotated[Real, Field(gt=0, le=1)]
