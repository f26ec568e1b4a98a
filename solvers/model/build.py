"""Build the whole program from its data, block by block."""

from __future__ import annotations

import math

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.choice import add_choice
from solvers.model.data import THROUGHPUT, PlanData
from solvers.model.electricity import add_electricity
from solvers.model.fabric import add_fabric
from solvers.model.fleet import add_holdings, add_installed, add_power
from solvers.model.lines import add_lines
from solvers.model.porting import add_porting
from solvers.model.routing import add_routing
from solvers.model.scenarios import add_scenarios
from solvers.model.schedule import add_schedule
from solvers.model.spread import add_spread
from solvers.model.storage import add_storage
from solvers.model.zone_failure import add_zone_failures
from solvers.program import Program


def build(data: PlanData) -> Program:
    program = Program()
    add_holdings(program, data)
    add_fabric(program, data)
    most = add_routing(program, data)
    add_choice(program, data, most)
    add_lines(program, data, most)
    add_schedule(program, data)
    add_installed(program, data)
    add_power(program, data)
    add_storage(program, data)
    add_electricity(program, data)
    add_spread(program, data, most)
    add_zone_failures(program, data, most)
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
    """[columns]: the slot a column belongs to, -1 for those of no slot."""
    slot = np.full(program.column_count, -1)
    for block in ("f", "x", "v", "grid", "taken", "charge", "discharge", "stored"):
        columns = program.columns.get(block, np.zeros((0, 0), dtype=np.int64))
        where = np.nonzero(columns >= 0)
        slot[columns[where]] = where[1]
    return slot


def objective_vector(program: Program, data: PlanData) -> Floats:
    if data.objective.functional == THROUGHPUT:
        vector = np.zeros(program.column_count)
        vector[program.columns["lambda"]] = 1.0
        return vector
    return program.functional(data.objective.functional)
