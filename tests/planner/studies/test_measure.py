"""What is worth measuring: worth against bounds, the best set, commands that calibrate can read, and the results reaching the plan."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import planner
from planner.cli.main import main
from planner.exit_codes import LIMIT
from planner.plan import Plan
from planner.problem.scenarios import draw, with_robust
from planner.report.words import whole, with_unit
from planner.resolve.resolver import resolve_document
from planner.studies.engines import EngineError
from planner.studies.engines.local import LocalEngine
from planner.studies.measure import Measure, _features, decide, measure, sample
from planner.studies.measure_fleets import fleet_model
from planner.studies.roi import FIXED_COSTS
from solvers.fixed_fleet.recourse import RecourseData
from tests.conftest import long_run

SCENARIOS = 60


@pytest.fixture(scope="module")
def plan(tiny) -> Plan:
    """Two kinds of chips for one workload that states its engine."""
    spec = tiny()
    spec["workloads"][0] |= {"demand": {"requests_per_s": 20000}, "engine": "vllm"}
    spec["sites"] = [{"region": "us-virginia"}]
    spec["offers"] = [{"system": name, "how": "buy"} for name in ("DGX H100", "MI300X 8x OAM node")]
    spec["solver"] = {"gap": 1e-3}
    return planner.solve(spec, threads=1)


@pytest.fixture(scope="module")
def found(plan) -> Measure:
    return measure(plan, scenarios=SCENARIOS)


def test_no_measurement_is_worth_more_than_knowing_everything(found):
    assert found.least <= found.perfect + 1e-6 <= found.expected + 1e-6
    for row in found.ranked:
        assert 0 <= row.worth <= found.expected - found.perfect + 1e-6
        assert row.case.price > 0 and row.case.hours > 0
    assert [row.net for row in found.ranked] == sorted((row.net for row in found.ranked), reverse=True)
    assert {(row.case.kind, row.case.chip) for row in found.ranked} >= {
        ("serving", "H100 SXM5 80GB"),
        ("serving", "MI300X"),
    }


class Backwards:
    """An engine that finishes the last item first, and loses one where asked to."""

    remote = False

    def __init__(self, lost: int | None = None):
        self.lost = lost

    def map_unordered(self, call, items):
        for number in reversed(range(len(items))):
            yield number, None if number == self.lost else call(items[number])


def test_engines_give_the_same_ranking(plan, found):
    assert measure(plan, scenarios=SCENARIOS, engine=Backwards()).document == found.document


@long_run
def test_processes_give_the_same_ranking(plan, found):
    assert measure(plan, scenarios=SCENARIOS, engine=LocalEngine(2)).document == found.document


def test_a_part_that_is_lost_with_its_workers_ends_the_study(plan):
    with pytest.raises(EngineError, match="lost with the workers"):
        measure(plan, scenarios=SCENARIOS, engine=Backwards(lost=0))


def test_the_power_of_a_way_is_that_of_one_system_at_work(plan):
    """Above idle, at the meter: most of what the nameplate leaves, and no more."""
    model = fleet_model(with_robust(resolve_document(plan["spec"])), plan.document)
    for drawn_w, k in zip(model.data.way_power_w, model.data.way_option, strict=True):
        option = model.options[k]
        room_w = (option.system.power_w - option.system.idle_w) * option.pue
        assert 0.3 * room_w < drawn_w <= room_w


def test_a_fleet_for_most_scenarios_does_all_of_the_work_where_leaving_it_is_cheaper(plan):
    """The fleets among which an 80 % promise is sought serve their share of the scenarios, whatever work left undone costs."""
    problem = with_robust(resolve_document(plan.document["spec"]))
    model = fleet_model(problem, plan.document)
    left_alone = replace(model, data=replace(model.data, undone=1e-2 * model.data.undone))
    sampled = sample(left_alone, draw(problem, SCENARIOS, 2))
    assert sampled.kept.mean(axis=1).max() >= 0.9


def test_the_best_set_keeps_to_its_budget(plan, found):
    assert len(found.chosen) <= 5 and sum(case.price for case in found.chosen) <= found.chosen_worth + 1e-6
    none = measure(plan, scenarios=SCENARIOS, budget=0.0)
    assert none.chosen == () and "No measurement" in none.words[-1]


def test_a_decision_is_learned_where_the_result_tells_and_not_where_it_does_not():
    """Fleet 0 is better where the error is below 0, fleet 1 above; another result is noise."""
    rng = np.random.default_rng(0)
    error, noise = rng.standard_normal((2, 400))
    cost = np.array([10 + 4 * error, 10 - 4 * error])
    folds = np.arange(400) % 2
    told = decide(cost, _features(error[:, None]), folds)
    assert cost[told, np.arange(400)].mean() == pytest.approx(cost.min(axis=0).mean(), rel=0.02)
    untold = decide(cost, _features(noise[:, None]), folds)
    assert cost[untold, np.arange(400)].mean() > cost.mean(axis=1).min() - 0.5


def test_the_commands_state_what_calibrate_needs(found, plan, tmp_path, capsys):
    """The metadata of the command, written into a result as the benchmark does, are enough to calibrate; the plan then counts on them."""
    case = next(row.case for row in found.ranked if row.case.kind == "serving" and row.case.chip == "MI300X")
    serve, bench = case.commands
    assert serve.startswith("vllm serve Llama-3.2-1B") and "--max-concurrency $c" in bench
    words = shlex.split(bench.partition("--metadata ")[2].partition(";")[0])
    told = dict(word.split("=", 1) for word in words)
    assert {"chip", "n_chips", "tp", "weight_dtype"} <= set(told) and told["chip"] == "MI300X"
    clients = [int(number) for number in re.search(r"for c in ([\d ]+);", bench)[1].split()]
    results = [
        {
            "date": "20270110-0900", "backend": "vllm", "model_id": "Llama-3.2-1B", **told, "max_concurrency": n, "completed": 8 * n,
            "total_input_tokens": 4000 * n, "total_output_tokens": 1600 * n, "output_throughput": 150.0 * n, "mean_ttft_ms": 60.0, "mean_tpot_ms": 6.0,
        }
        for n in clients
    ]  # fmt: skip
    (tmp_path / "runs.json").write_text(json.dumps(results), encoding="utf-8")
    assert main(["calibrate", str(tmp_path / "runs.json"), "--output", str(tmp_path / "own"), "-q"]) == 0
    capsys.readouterr()
    engine = resolve_document(plan["spec"], [tmp_path / "own"]).serving[0].engine
    assert engine.correction("MI300X", "bf16").tpot != 1.0 and engine.correction("H100 SXM5 80GB", "bf16").tpot == 1.0


def test_a_training_case_leaves_a_row_for_calibrate(tiny):
    job = {
        "name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "10B", "deadline": "60 d", "sequence_tokens": 2048, "batch_tokens": 262144,
        "precision": ["bf16"],
    }  # fmt: skip
    spec = {**tiny(), "workloads": [job], "offers": [{"system": "DGX H100", "how": "buy", "supply": 2}]}
    (row,) = measure(planner.solve(spec, threads=1), scenarios=40).ranked
    case = row.case
    assert (case.kind, case.label) == ("training", "dense")
    run, table = case.commands
    assert run.startswith("torchrun")
    header, row = shlex.split(table)[2:4]
    told = dict(zip(header.split(","), row.split(","), strict=True))
    assert told["step_time_s"] == "SECONDS_PER_STEP" and float(told["n_chips"]) >= 1 and told["dtype"] == "bf16"


def test_the_command_prints_json_and_refuses_what_it_cannot_answer(plan, tmp_path, capsys):
    (tmp_path / "plan.json").write_text(json.dumps(plan.document), encoding="utf-8")
    file = str(tmp_path / "plan.json")
    assert main(["measure", file, "--scenarios", "40", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scenarios"] == 40 and document["bound"] >= document["worth_of_everything"] >= 0
    assert {"name", "commands", "hours", "price", "worth", "net"} <= set(document["cases"][0])
    for wrong in (["--scenarios", "3"], ["--budget", "-1"], ["--budget", "nan"], ["--seed", "-1"]):
        assert main(["measure", file, *wrong]) == 3
    (tmp_path / "none.json").write_text(
        json.dumps({**plan.document, "objective": {**plan.document["objective"], "value": None}, "totals": None}),
        encoding="utf-8",
    )
    assert main(["measure", str(tmp_path / "none.json")]) == 3


def extended(data: RecourseData, able: Any, held: Any, late: float) -> float:
    """Solve a scenario of serving alone, written from the formulas of docs/measure.md: what a fleet comes to with what is added or left undone."""
    slots, options, ways = len(data.seconds), len(data.option_cost), len(data.way_class)
    columns = options + len(data.undone) + ways * slots  # systems added, shares left undone, systems at work
    rows, sides = [], []

    def row(entries: dict[int, float], most: float) -> None:
        line = np.zeros(columns)
        for column, value in entries.items():
            line[column] += value
        rows.append(line)
        sides.append(most)

    def at_work(g: int, t: int) -> int:
        return options + len(data.undone) + g * slots + t

    for t in range(slots):
        for c, rate in enumerate(data.demand[:, t]):
            served = {at_work(g, t): -able[g] for g in range(ways) if data.way_class[g] == c}
            row({**served, options + data.class_workload[c]: -rate}, -rate)
        for k in range(options):
            row({k: -1.0, **{at_work(g, t): 1.0 for g in range(ways) if data.way_option[g] == k}}, held[k])
        for r, room in enumerate(data.room_w[:, t]):
            if np.isfinite(room):
                mine = [k for k in range(options) if data.option_site[k] == r]
                drawn = {at_work(g, t): data.way_power_w[g] for g in range(ways) if data.way_option[g] in mine}
                idle = {k: data.option_idle_w[k] for k in mine}
                row({**drawn, **idle}, room - sum(idle[k] * held[k] for k in mine))
    for s, limit in enumerate(data.supply_limit):
        mine = [k for number, k in data.supply_member if number == s]
        row(dict.fromkeys(mine, 1.0), limit - sum(held[k] for k in mine))
    cost = np.concatenate([late * data.option_cost, data.undone, np.zeros(ways * slots)])
    bounds = [(0, None)] * options + [(0, 1)] * len(data.undone) + [(0, None)] * (ways * slots)
    solved = linprog(cost / cost.max(), np.array(rows), np.array(sides), bounds=bounds, method="highs")
    assert solved.status == 0
    return float(held @ data.option_cost + solved.fun * cost.max())


def test_the_expected_figures_follow_from_the_formulas_of_the_page(plan, found):
    """Every fleet in every scenario by programs of this file: what the plan's fleet, the decision and knowing everything come to."""
    problem = with_robust(resolve_document(plan["spec"]))
    sampled = sample(fleet_model(problem, plan.document), draw(problem, SCENARIOS, found.settings["seed"]))
    data = sampled.model.data
    able, _ = sampled.model.efficiencies(sampled.scenarios)
    cost = np.array([[extended(data, able[:, s], fleet, 1.5) for s in range(SCENARIOS)] for fleet in sampled.fleets])
    least = [extended(data, able[:, s], np.zeros(len(data.option_cost)), 1.0) for s in range(SCENARIOS)]
    assert found.expected == pytest.approx(cost.mean(axis=1).min(), rel=1e-6)
    assert found.perfect == pytest.approx(cost.min(axis=0).mean(), rel=1e-6)
    assert found.least == pytest.approx(np.mean(least), rel=1e-6)
    (mine,) = (row for row, fleet in zip(cost, sampled.fleets, strict=True) if (fleet == sampled.model.held).all())
    assert found.planned.expected == pytest.approx(mine.mean(), rel=1e-6)
    paid = sum(plan["costs"].get(name, 0.0) for name in FIXED_COSTS)
    assert (
        found.planned.cost == plan["totals"]["cost"] and paid <= found.planned.systems * (1 + 1e-9) < found.planned.cost
    )
    assert (
        with_unit(plan["totals"]["cost"], "USD") in found.words[0] and whole(found.planned.expected) in found.words[1]
    )


def test_limits_of_time_and_memory_end_it(plan, tmp_path, capsys):
    path = tmp_path / "plan.json"
    plan.save(path)
    for option, value in (("--time-limit", "10 ms"), ("--memory", "1 MB")):
        assert main(["measure", str(path), option, value]) == LIMIT
        assert option.removeprefix("--").partition("-")[0] in capsys.readouterr().err
