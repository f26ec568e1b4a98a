"""The parts of a plan, counted: deployments, kinds of systems at sites, and sites. Added to a built program where the fewest are sought.

Sets
    d            deployments, each a set of operating points
    g            groups of fleet options: a kind of systems at a site
    r            sites
Data
    most_{p,t}   most replicas of a point that its fleet options hold
    upper_u      most systems of a holding
Variables
    used_d       in {0, 1}, 1 when a deployment is at work
    kind_g       in {0, 1}, 1 when systems of a kind are held at a site
    site_r       in {0, 1}, 1 when systems are held at a site
Constraints
    used         x_{p,t} <= most_{p,t} used_d, v_{p,t} <= used_d    for each p of d, t
    kind         n_u <= upper_u kind_g    for each u of g
    site         kind_g <= site_r    for each g at r
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper, option_upper
from solvers.program import Program

USED = 1e-7  # replicas, or share of a job's time, above which a plan uses a point
PARTS = ("used", "kind", "site")  # blocks, in the order in which parts are saved


@dataclass(frozen=True, slots=True, order=True)
class Parts:
    """How many deployments, kinds of systems at sites, and sites a plan has; fewer of the first count before fewer of the next."""

    deployments: int
    kinds: int
    sites: int


@dataclass(frozen=True, slots=True)
class Rung:
    """A step of the ladder: the value with a number of deployments; `estimated`: from the fullest slot, not that of a whole plan."""

    deployments: int
    value: float
    estimated: bool = False


def points_in_use(values: Mapping[str, Floats]) -> Bools:
    """[P]: points that a plan uses."""
    used: Bools = (values["x"].max(axis=1, initial=0.0) > USED) | (values["v"].max(axis=1, initial=0.0) > USED)
    return used


def parts_of(data: PlanData, values: Mapping[str, Floats]) -> Parts:
    """Count the parts of a plan."""
    options = data.holding_option[values["n"] > 0.5]
    return Parts(
        deployments=len(np.unique(data.deployments()[points_in_use(values)])),
        kinds=len(np.unique(data.option_group[options])),
        sites=len(np.unique(data.option_site[options])),
    )


def add_parts(program: Program, data: PlanData) -> None:
    """Add the columns that count parts, and their rows."""
    deployments = data.deployments()
    used = program.add_columns("used", (int(deployments.max(initial=-1)) + 1,), upper=1.0, integer=True)
    upper = holding_upper(data)
    kind = program.add_columns("kind", (int(data.option_group.max(initial=-1)) + 1,), upper=1.0, integer=True)
    site = program.add_columns("site", (data.sites,), upper=1.0, integer=True)
    for block, most in (("x", _most_replicas(data)), ("v", np.ones((len(deployments), data.slots)))):
        columns = program.columns[block]
        point, slot = np.nonzero(columns >= 0)
        program.add_linking_rows(
            "used", columns[point, slot], used[deployments[point]], most[point, slot], np.column_stack([point, slot])
        )
    group = data.option_group[data.holding_option]
    program.add_linking_rows("kind", program.columns["n"], kind[group], upper, np.arange(len(upper))[:, None])
    pairs = np.unique(np.column_stack([data.option_group, data.option_site]), axis=0)
    program.add_linking_rows("site", kind[pairs[:, 0]], site[pairs[:, 1]], 1.0, pairs)


def _most_replicas(data: PlanData) -> Floats:
    """[P, T]: most replicas of a point that its fleet options can hold."""
    point, option = data.point_uses.T
    room = option_upper(data)[option][:, data.slot_window] / np.maximum(data.point_uses_systems, 1e-300)[:, None]
    most = np.full((len(data.point_pool), data.slots), np.inf)
    np.minimum.at(most, point, room)
    return np.where(np.isfinite(most), most, 0.0)


def columns_of(program: Program, block: str) -> Ints:
    """Return the columns that count one kind of part."""
    columns = program.columns[block]
    return columns[columns >= 0]
