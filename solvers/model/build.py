"""The joint program: all blocks, and limits on functionals.

Sets
    i                limits
    t                slots
Data
    limit_i          upper bound on a functional
    coef_{i,c}       coefficient of column c in the functional of limit i
Variables
    subtotal_{i,t}   free, part of the functional that arises in a slot (column block "limit i sub-totals")
Objective
    The sum of the blocks' terms in the functional that is minimised; or lambda, which is maximised.
Constraints
    limit            sum_t subtotal_{i,t} + sum_{c of no slot} coef_{i,c} c <= limit_i    for each i
    limit sub-total  sum_{c of t} coef_{i,c} c = subtotal_{i,t}    for each i, t

A row over all columns would make the solver's linear algebra dense; sub-totals avoid that.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.choice import add_choice
from solvers.model.data import THROUGHPUT, PlanData
from solvers.model.electricity import add_electricity
from solvers.model.fabric import add_fabric, add_joint_networks
from solvers.model.facility import add_facility
from solvers.model.fleet import add_holdings, add_installed, add_power, add_supplies_by_slot
from solvers.model.hourly import add_hourly, add_least_running, add_worked
from solvers.model.least_fleet import add_least_fleet
from solvers.model.lines import add_lines
from solvers.model.part_limits import add_part_limits
from solvers.model.porting import add_porting
from solvers.model.residency import add_residency
from solvers.model.routing import add_routing
from solvers.model.scenarios import add_scenarios
from solvers.model.schedule import add_schedule
from solvers.model.spread import add_spread
from solvers.model.storage import add_storage
from solvers.model.zone_failure import add_zone_failures
from solvers.program import Program


def build(data: PlanData) -> Program:
    """Build the program, block by block."""
    program = Program()
    add_holdings(program, data)
    add_hourly(program, data)
    add_least_fleet(program, data)
    add_least_running(program, data)
    add_facility(program, data)
    add_part_limits(program, data)
    add_fabric(program, data)
    most = add_routing(program, data)
    add_choice(program, data, most)
    add_schedule(program, data)
    add_lines(program, data, most)
    add_worked(program, data)
    add_residency(program, data, most)
    add_installed(program, data)
    add_supplies_by_slot(program, data)
    add_power(program, data)
    add_storage(program, data)
    add_electricity(program, data)
    add_spread(program, data, most)
    add_zone_failures(program, data, most)
    if data.joint is not None:
        add_joint_networks(program, data, data.joint)
    if data.ports is not None:
        add_porting(program, data, data.ports)
    if data.scenarios is not None:
        add_scenarios(program, data, data.scenarios)
    slot = slot_of_columns(program)
    for position, limit in enumerate(data.limits):
        if math.isfinite(limit.upper):
            program.add_functional_row("limit", limit.functional, -np.inf, limit.upper, slot, position)
            slot = np.append(slot, np.full(program.column_count - len(slot), -1))
    return program


def slot_of_columns(program: Program) -> Ints:
    """[columns]: the slot of each column, -1 for columns of no slot."""
    slot = np.full(program.column_count, -1)
    for block in (
        "f",
        "x",
        "v",
        "on",
        "started",
        "loading",
        "present",
        "grid",
        "taken",
        "charge",
        "discharge",
        "stored",
    ):
        columns = program.columns.get(block, np.zeros((0, 0), dtype=np.int64))
        where = np.nonzero(columns >= 0)
        slot[columns[where]] = where[1]
    return slot


def objective_vector(program: Program, data: PlanData) -> Floats:
    """Coefficients of the objective over all columns."""
    if data.objective.functional == THROUGHPUT:
        vector = np.zeros(program.column_count)
        vector[program.columns["lambda"]] = 1.0
        return vector
    return program.functional(data.objective.functional)
