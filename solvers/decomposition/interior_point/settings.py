"""Tolerances and effort limits of the interior-point method, of its starting points, its Newton steps and its blocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InteriorPointSettings:
    """When the iteration stops, and how it chooses its steps.

    "Relative" means relative to the objective value. A residual is weighted by the price of its row, or by the value of its column.
    """

    iteration_limit: int = 120
    """Iterations before the method gives up."""
    residual_tol: float = 1e-4
    """Weighted primal residual, and weighted dual residual, of an optimal solution, relative."""
    cutoff_dual_residual_tol: float = 1e-3
    """Weighted dual residual up to which the dual objective proves that no solution lies below the cutoff, relative."""
    least_attainable_gap: float = 1e-5
    """Duality gap below which the digits of the equations may not suffice, relative."""
    stalled_iterations: int = 8
    """Iterations without progress after which such digits are taken to be lost."""
    acceptable_factor: float = 20.0
    """Multiple of the tolerances that a stalled solution may miss them by."""
    warm_start_gap: float = 0.02
    """The last iterate with at least this duality gap, relative, is kept as a starting point for similar LPs."""
    step_share: float = 0.9
    """Share of the way to the boundary of the positive orthant that a step goes."""
    complementarity_floor_share: float = 0.2
    """Share of the tolerance below which the aimed-at complementarity does not fall: the equations lose digits closer to 0."""
    refinements: int = 2
    """Most iterative refinements of a Newton step."""
    refinement_share: float = 0.1
    """Share of `residual_tol` from which on the residual of a Newton step is refined."""
    least_corrected_share: float = 0.2
    """Share of the predictor's step length that the second-order step must reach; otherwise its correction is damped."""
    centrality_corrections: int = 2
    """Most centrality corrections in an iteration."""
    correction_step_gain: float = 0.2
    """Step length that a centrality correction aims at, beyond that of the step it corrects."""
    least_correction_gain: float = 0.1
    """Share of that gain that a correction must reach to be kept."""
    least_product_share: float = 0.1
    """Complementarity products below this multiple of their target are corrected."""
    most_product_share: float = 10.0
    """Complementarity products above this multiple of their target are corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSettings:
    """How far inside the feasible region the iteration starts."""

    cold_start_share: float = 0.25
    """Weight of the cold start in a start from other slots, which have less slack than the solution needs."""
    unmet_share: float = 1e-3
    """Share of demand that a cold start leaves unmet, if unmet demand has a price."""
    slack_share: float = 0.1
    """Slack of a limit at a cold start, as a share of the limit; likewise the least reduced cost, as a share of a cost."""
    settled_job_share: float = 0.9
    """A job that runs for this share of its work where it must be done starts with the schedule it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewtonSettings:
    """Regularisation of the factorisations, and when they use several threads."""

    regularization: float = 1e-12
    """Added to the diagonal of a matrix scaled to ones on the diagonal, before it is factored."""
    least_diagonal: float = 1e-300
    """Diagonal entries are raised to this before their root is inverted."""
    threaded_multiplications: float = 2e8
    """Multiplications of one product or factorisation from which on several BLAS threads are faster."""
    most_runs: int = 8
    """Runs of consecutive columns up to which a block is subtracted run by run instead of by index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSettings:
    """Size of the blocks of slots, and slack that gives the LP an interior."""

    unlimited_power_factor: float = 1e3
    """Power limit of a site in windows where it has none, as a multiple of the largest power of a system."""
    job_rate_slack: float = 1e-5
    """Relative increase of the rate of a job, so that a job without time to spare has an interior."""
    least_range: float = 1e-12
    """Width of a first-stage column's bounds up to which it is fixed."""
    site_overhead_multiplications: float = 2e7
    """Multiplications that take as long as the overhead of one site in one block."""
    parallel_blocks: int = 4
    """Blocks, about, if they are eliminated in parallel."""
    most_block_numbers: float = 1e6
    """Numbers in the demand matrices of a block's slots above which fetching them takes longer than multiplying."""
    most_dense_entries: int = 20_000
    """Entries of a matrix up to which it is multiplied as a dense one."""


METHOD = InteriorPointSettings()
START = StartSettings()
NEWTON = NewtonSettings()
BLOCKS = BlockSettings()

SCALE_FLOOR = 1e-3
"""Values and costs smaller than this count as this where others are relative to them."""
