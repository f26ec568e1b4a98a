"""docs/formulation.md states the program as it is built: the page is current, every block is in it, every row and column has its entry."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from solvers.model.block_data.joint_network import JointNetworks
from solvers.model.block_data.porting import PortData
from solvers.model.block_data.scenarios import Operation, Risk, Scenario, ScenarioData
from solvers.model.build import build
from solvers.model.data import Limit, PlanData
from solvers.model.least_fleet import with_least_fleet
from solvers.program import Program
from tests.solvers import test_all_blocks_bruteforce as together
from tests.solvers.model import (
    test_choice,
    test_exchange,
    test_hourly,
    test_joint_network,
    test_lines,
    test_part_limits,
    test_porting,
    test_preemption,
    test_relays,
    test_residency,
    test_zone_failure,
)

SCENARIO_ROWS = {"ported", "demand", "pool", "installed", "power", "width", "progress"}


@pytest.fixture(scope="module")
def pages(root):
    spec = importlib.util.spec_from_file_location("build_formulation", root / "docs/build_formulation.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def blocks(pages):
    return {name: pages.read_block(name) for name in pages.BLOCKS}


def test_the_page_is_current(root, pages):
    assert (root / pages.PAGE).read_text(encoding="utf-8") == pages.page(), "run `make docs`"


def test_every_module_that_adds_to_the_program_is_a_block_of_the_page(root, pages):
    adding = set()
    for path in (root / pages.FOLDER).glob("*.py"):
        functions = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        if any(name.startswith("add_") or name == "build" for name in functions):
            adding.add(path.stem)
    assert adding == set(pages.BLOCKS)


def test_every_block_has_all_sections(pages, blocks):
    for block in blocks.values():
        assert set(block.entries) == set(pages.SECTIONS) - {"Objective"} and block.objective, block.name
        assert block.entries["Sets"] and block.entries["Data"] and block.entries["Constraints"], block.name


def with_scenarios(data: PlanData) -> PlanData:
    """Add two scenarios in which points do as predicted, one of them priced, and prices of three."""
    serving = data.point_pool >= 0
    kept = serving[data.point_uses[:, 0]]
    number = np.cumsum(serving) - 1
    pace = np.where(serving, 0.0, data.point_capacity / np.maximum(data.job_work[data.point_job], 1.0))
    one = Scenario(
        data.point_pool[serving],
        np.column_stack([number[data.point_uses[kept, 0]], data.point_uses[kept, 1]]),
        data.point_uses_systems[kept],
        data.point_power_w[serving],
        data.point_capacity[serving],
        pace,
        np.zeros((0, 2), dtype=int)
        if data.ports is None
        else np.array([(number[p], g) for p, g in data.ports.member if serving[p]], dtype=int).reshape(-1, 2),
    )
    risk = Risk(np.ones((3, len(data.holding_option))), 0.5)
    arc, missing = np.ones((len(data.arc_pool), data.slots)), np.ones((len(data.demand), data.slots))
    priced = replace(one, operation=Operation(0, np.ones((int(serving.sum()), data.slots)), arc, missing))
    return replace(data, scenarios=ScenarioData([one, priced], np.arange(data.slots), data.slot_hours_s, risk))


def on_one_network(data: PlanData) -> PlanData:
    """Put the systems of each fleet option on one network that is smaller than all of them, and let all points need it."""
    options, uses = np.arange(len(data.option_site)), np.arange(len(data.point_uses))
    joint = JointNetworks(
        size=np.ones(1),
        network=np.zeros(len(options), dtype=int),
        unit=np.ones(len(options)),
        member=np.column_stack([data.holding_option, np.arange(len(data.holding_option))]),
        pooled=np.column_stack([data.point_uses[:, 1], uses]),
    )
    return replace(data, joint=joint)


def programs() -> list[Program]:
    made = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = together.problem(rng)
        made += [data, replace(data, limits=(Limit("limits.cost", "cost", 1e6),)), with_scenarios(data)]
        made += [test_lines.problem(rng, spread=True), test_preemption.problem(rng, -2)]
        made += [test_preemption.with_least_run(test_preemption.problem(rng, 0), 2)]
        made += [
            with_least_fleet(test_residency.whole_problem(seed)),
            test_relays.drawn(seed),
            test_part_limits.drawn(seed),
            test_part_limits.with_orders(seed),
        ]
        made += [test_porting.ported(rng, ("cost",)), test_choice.with_choice(rng, True, True, True, ("cost",))]
        every = np.column_stack([np.arange(len(data.point_pool)), np.zeros(len(data.point_pool), dtype=int)])
        made += [test_joint_network.drawn(seed), on_one_network(test_zone_failure.ported(rng, ("cost",)))]
        made += [with_scenarios(replace(data, ports=PortData(member=every, groups=1)))]
        made += [test_zone_failure.ported(rng, ("cost",)), test_zone_failure.chosen(rng, ("cost",), True)]
    made += [test_hourly.problem([1, 2, 1], 3.0, 1.0, start_cost=0.5, least=2), test_hourly.little_job()]
    made += [with_least_fleet(test_hourly.problem([1, 2, 1], 3.0, 1.0, whole=True)), test_exchange.problem()]
    return [build(data) for data in made]


def test_every_row_and_column_has_an_entry_and_every_entry_a_row_or_column(pages, blocks):
    """Of numbered blocks ("zone 1 g", "scenario 0 demand") the last word counts."""
    rows = {name for block in blocks.values() for name, _ in block.entries["Constraints"]}
    columns = {
        named[1] if (named := re.search(r'column block "(?:zone z|scenario s|limit i) ([\w-]+)"', text)) else symbol.split("_")[0]
        for block in blocks.values()
        for symbol, text in block.entries["Variables"]
    }  # fmt: skip
    short = lambda name: re.sub(r"^(zone|scenario|limit) \d+ ", "", name)
    built = programs()
    built_rows = {short(name) for program in built for name in program.row_blocks}
    built_columns = {short(name) for program in built for name in program.columns}
    assert built_rows == rows
    assert built_columns == columns
    assert {
        name.split(" ", 2)[2] for p in built for name in p.row_blocks if name.startswith("scenario ")
    } >= SCENARIO_ROWS
