"""Iterates of the interior-point method, and its residuals there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from solvers.arrays import Floats
from solvers.decomposition.interior_point.blocks import PRICED_ROWS, BlockProgram
from solvers.decomposition.interior_point.lp_data import State
from solvers.decomposition.interior_point.settings import SCALE_FLOOR

Change: TypeAlias = tuple[State, State, State]
"""Changes of columns and slacks, of reduced costs and prices, and of the prices of free rows."""


@dataclass(frozen=True, slots=True)
class Iterate:
    """Columns and slacks `z`, their reduced costs and prices `w`, and the prices of free rows."""

    z: State
    w: State
    free: State

    def moved(self, primal_step: float, dual_step: float, change: Change) -> Iterate:
        """Return the iterate after steps of these lengths along a change."""
        return Iterate(
            _moved(self.z, change[0], primal_step),
            _moved(self.w, change[1], dual_step),
            _moved(self.free, change[2], dual_step),
        )


def _moved(old: State, change: State, step: float) -> State:
    return {name: values + step * change[name] for name, values in old.items()}


def masked(blocks: BlockProgram, values: State) -> State:
    """Set to 0 what does not exist in the LP."""
    return {name: np.where(mask, values[name], 0.0) for name, mask in blocks.mask.items()}


def dual_residual(blocks: BlockProgram, at: Iterate) -> State:
    """Return cost less A' prices less the reduced costs of the iterate, by column block."""
    worth = blocks.worth({name: at.w[name] for name in PRICED_ROWS} | at.free)
    off = {
        name: np.where(blocks.mask[name], blocks.cost[name] - worth[name] - at.w[name], 0.0)
        for name in ("x", "f", "v", "unmet", "m")
    }
    off["m"] = off["m"] + at.w["upper"]
    return off


@dataclass(frozen=True, slots=True)
class Residuals:
    """How far an iterate is from optimal; the scalars but `mean` and `value` are relative to the objective value."""

    short: State  # right less left sides of rows
    off: State  # dual residual of columns
    products: State  # z w by pair, 0 where there is no pair
    mean: float  # mean of the products
    value: float
    scale: float  # absolute value of the objective, at least SCALE_FLOOR
    duality_gap: float
    missing: float  # primal residual at the prices of the rows
    wrong: float  # dual residual at the values of the columns

    def violation(self, gap_tol: float, residual_tol: float) -> float:
        """Return the largest residual as a multiple of its tolerance; at most 1 at an optimal solution."""
        return max(self.duality_gap / gap_tol, self.missing / residual_tol, self.wrong / residual_tol)


def residuals_at(blocks: BlockProgram, at: Iterate, fixed_cost: float, pairs: int) -> Residuals:
    """Return the residuals of an iterate; `fixed_cost`: of the fixed first-stage columns; `pairs`: number of products."""
    z, w = at.z, at.w
    short = {name: -values for name, values in blocks.rows(z).items()}
    off = dual_residual(blocks, at)
    products = {name: z[name] * w[name] for name in blocks.mask}
    mean = math.fsum(float(values.sum()) for values in products.values()) / pairs
    value = fixed_cost + math.fsum(float((blocks.cost[name] * z[name]).sum()) for name in ("m", "x", "f", "v", "unmet"))
    scale = max(abs(value), SCALE_FLOOR)
    prices = at.free | w
    missing = math.fsum(float((np.abs(values) * np.abs(prices[name])).sum()) for name, values in short.items()) / scale
    wrong = math.fsum(float((np.abs(values) * z[name]).sum()) for name, values in off.items()) / scale
    return Residuals(short, off, products, mean, value, scale, mean * pairs / scale, missing, wrong)


def dual_objective(rows_at_zero: State, at: Iterate, fixed_cost: float) -> float:
    """Return the dual objective of an iterate; `rows_at_zero`: what `BlockProgram.rows` is where all columns are 0."""
    duals: dict[str, Floats] = at.w | at.free | {"upper": -at.w["upper"]}
    return fixed_cost - math.fsum(float((values * duals[name]).sum()) for name, values in rows_at_zero.items())
