"""The diagonal scaling of a Newton step: each column or slack over its reduced cost or price.

A gated arc shares its row `hosted` with one slack, and a job with a switch its row `running`; both rows are eliminated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.decomposition.interior_point.blocks import BlockProgram
from solvers.decomposition.interior_point.lp_data import State


def divided(a: Floats | float, b: Floats, where: Bools) -> Floats:
    """Divide a by b where `where` is true; 0 elsewhere."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=where)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Scaling at one iterate: columns and slacks `z` > 0, their reduced costs and prices `w` > 0, reciprocals, and theta = z / w."""

    z: Mapping[str, Floats]
    w: Mapping[str, Floats]
    per_z: State
    per_w: State
    theta: State
    gated: Floats  # [G, T] theta of the gated arcs
    both_f: Floats  # [G, T] the same plus theta of the slack of `hosted`
    both_v: Floats  # [N, T] theta of v plus that of the slack of `running`
    to_gate: Floats  # [G, T] share of a change of the gate that the flow takes
    to_switch: Floats  # [N, T] share of a change of the switch that v takes
    flow: Floats  # [A, T] theta of the flows once `hosted` is eliminated
    run: Floats  # [N, T] theta of v once `running` is eliminated


def scaling_at(program: BlockProgram, z: Mapping[str, Floats], w: Mapping[str, Floats]) -> Scaling:
    """Return the scaling at an iterate."""
    mask = program.mask
    per_z, per_w = ({name: divided(1.0, values[name], where) for name, where in mask.items()} for values in (z, w))
    theta = {name: z[name] * per_w[name] for name in mask}
    gated = theta["f"][program.gated]
    both_f, both_v = gated + theta["hosted"], theta["v"] + theta["running"]
    to_gate, to_switch = divided(gated, both_f, mask["hosted"]), divided(theta["v"], both_v, mask["running"])
    flow, run = theta["f"].copy(), theta["v"] * (1 - to_switch)
    flow[program.gated] *= 1 - to_gate
    return Scaling(z, w, per_z, per_w, theta, gated, both_f, both_v, to_gate, to_switch, flow, run)
