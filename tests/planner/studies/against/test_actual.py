"""A plan against what was measured: amounts by hand, nothing where all is as planned, and files that are told apart."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK, OVER_BUDGET
from planner.plan import parse_plan
from planner.spec.document import edited
from planner.studies.against.actual import RUNS, TRACE, against_actual, kind_of
from planner.studies.against.load import planned_rate
from planner.studies.against.worth import AS_PLANNED, BOOKS, SOLVED, UNUSED
from planner.verify.plan import verify_plan

HEAD = "date,workload,site,system,how,requests_per_s,input_tokens,output_tokens,throughput,systems,ttft_p95,tpot_p95,price,power_kw"


@pytest.fixture(scope="module")
def plan(tiny):
    return planner.solve(tiny())


def written(folder: Path, *rows: str, head: str = HEAD, name: str = "actual.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def stake_of(found, kind: str):
    return next(stake for stake in found.stakes if stake.assumption.kind == kind)


def planned_cells(plan) -> dict[str, float | str]:
    """Every figure of the plan as a row of the file, read from its document."""
    (workload,) = plan["workloads"]
    (point,) = workload["points"]
    lengths = plan["spec"]["workloads"][0]["lengths"]
    seconds = sum(slot["seconds"] for slot in plan["schedule"])
    per_system = point["capacity"] * lengths["output"] / sum(pool["systems_per_replica"] for pool in point["pools"])
    return {
        "date": "2026-11-02", "workload": "chat", "site": "", "system": "DGX H100", "how": "buy",
        "requests_per_s": plan["spec"]["workloads"][0]["demand"]["requests_per_s"],
        "input_tokens": lengths["input"], "output_tokens": lengths["output"],
        "throughput": 3 * per_system, "systems": 3,
        "ttft_p95": point["latency_s"]["ttft.p95"], "tpot_p95": point["latency_s"]["tpot.p95"],
        "price": 310_000, "power_kw": sum(slot["power_w"] * slot["seconds"] for slot in plan["schedule"]) / seconds / 1e3,
    }  # fmt: skip


def row_of(cells) -> str:
    return ",".join(repr(value) if isinstance(value, float) else str(value) for value in cells.values())


def test_rates_of_a_plan_are_those_of_its_spec(plan):
    assert planned_rate(plan, "chat", 200.0) == pytest.approx(30.0, rel=1e-9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.sets(st.sampled_from(HEAD.split(",")[5:]), min_size=1), times=st.integers(1, 4))
def test_what_is_as_planned_changes_nothing_and_is_worth_nothing(plan, tmp_path, columns, times):
    cells = planned_cells(plan)
    if "throughput" in columns:
        columns = {*columns, "systems"}
    if columns == {"systems"}:
        columns = {"systems", "price"}
    kept = {name: value if name in columns or name in HEAD.split(",")[:5] else "" for name, value in cells.items()}
    found = against_actual(plan, [written(tmp_path, *[row_of(kept)] * times)], tmp_path / "own")
    assert {stake.how for stake in found.stakes} == {AS_PLANNED} and len(found.stakes) == len(columns - {"systems"})
    assert all(stake.a_month == 0.0 and stake.assumption.factor == pytest.approx(1.0) for stake in found.stakes)
    assert found.after is plan and found.difference == 0.0 and found.largest is None and found.comparison is None
    assert found.words == [f"All {len(found.stakes)} figures are as planned."]


def test_a_price_is_worth_what_the_books_say_and_what_a_new_plan_costs(plan, tiny, tmp_path):
    """340,000 in place of 310,000 USD for the one system: its capital, maintenance and spare parts by 340/310."""
    found = against_actual(plan, [written(tmp_path, ",,,DGX H100,buy,,,,,,,,340000,")], tmp_path / "own")
    (stake,) = found.stakes
    moving = sum(line["amount"] for line in plan["cost_lines"] if line["component"] in ("systems", "maintenance", "spare parts"))  # fmt: skip
    assert stake.how == BOOKS and stake.difference == pytest.approx(moving * 30.0 / 310.0)
    again = planner.solve(tiny(offers=[{"system": "DGX H100", "how": "buy", "price": "340000 USD"}]))
    assert found.difference == pytest.approx(again.value - plan.value) == pytest.approx(stake.difference, rel=1e-6)
    # one year at 5 %: a level monthly payment of the present value is 1.05 / 12 of it
    rate = found.document["months"]
    assert stake.a_month == pytest.approx(stake.difference / rate)


def test_prices_in_another_currency_are_converted(plan, tmp_path):
    rates = {"exchange": {"EUR": {"per_usd": 0.8, "date": "2026-11"}}}
    document = json.loads(plan.to_json())
    document["spec"] |= rates
    path = written(tmp_path, "DGX H100,buy,248000,EUR", head="system,how,price,currency")
    found = against_actual(parse_plan(json.dumps(document)), [path], tmp_path / "own")
    assert found.stakes[0].assumption.actual == pytest.approx(310_000) and found.stakes[0].how == AS_PLANNED


def test_power_is_worth_its_share_of_the_electricity(plan, tmp_path):
    drawn = float(planned_cells(plan)["power_kw"])
    found = against_actual(plan, [written(tmp_path, f",,,,,,,,,,,,,{1.25 * drawn!r}")], tmp_path / "own")
    energy = sum(line["amount"] for line in plan["cost_lines"] if line["component"] == "energy")
    assert stake_of(found, "power").difference == pytest.approx(0.25 * energy)
    assert found.after["totals"]["energy_j"] == pytest.approx(1.25 * plan["totals"]["energy_j"])


def test_the_largest_error_is_named_first_and_money_ranks_the_rows(plan, tmp_path):
    path = written(tmp_path, "2026-11-01,chat,,,,45,500,200,,,,,,", ",,,DGX H100,buy,,,,,,,,330000,")
    found = against_actual(plan, [path], tmp_path / "own")
    assert found.words[0].startswith(
        "Largest error: rate of chat was planned as 30 request/s and is 45 request/s, 1.5 times"
    )
    assert "outside the stated interval" in found.words[0]  # 15 % either way
    assert found.stakes[0].assumption.kind == "price" and [abs(s.a_month) for s in found.stakes] == sorted((abs(s.a_month) for s in found.stakes), reverse=True)  # fmt: skip
    assert stake_of(found, "rate").how == SOLVED and stake_of(found, "input").how == AS_PLANNED
    demand = found.after["spec"]["workloads"][0]["demand"]
    assert demand == {"requests_per_s": 45} and verify_plan(found.after) == []


def test_a_slower_measured_throughput_makes_a_larger_plan(plan, tmp_path):
    """At a fiftieth of the planned throughput, 30 requests/s need more than the eight chips of one system."""
    cells = planned_cells(plan)
    path = written(tmp_path, f",chat,,DGX H100,,,,,{float(cells['throughput']) / 50!r},3,,,,")
    found = against_actual(plan, [path], tmp_path / "own")
    (stake,) = found.stakes
    assert stake.assumption.factor == pytest.approx(0.02) and stake.assumption.is_outside
    assert sum(row["count"] for row in found.after["fleet"]) > sum(row["count"] for row in plan["fleet"])
    assert stake.difference > 0.0 and found.difference == pytest.approx(stake.difference, rel=0.01)


def test_answers_count_twice_where_demand_is_in_their_tokens(tiny, tmp_path):
    document = edited(tiny(), (("workloads[0].demand", {"output_tokens": "6000 tokens/s"}),))
    found = against_actual(planner.solve(document), [written(tmp_path, ",chat,,,,,,300,,,,,,")], tmp_path / "own")
    after = found.after["spec"]["workloads"][0]
    assert after["lengths"]["output"] == 300 and after["demand"] == {"output_tokens": "9000 tokens/s"}


def test_a_trace_states_rate_and_lengths(plan, tmp_path):
    """Two requests a second over an hour, of 400 and 600, 100 and 300 tokens."""
    path = tmp_path / "trace.jsonl"
    lines = [
        json.dumps({"timestamp": 500 * i, "input_length": 400 + 200 * (i % 2), "output_length": 100 + 200 * (i % 2)})
        for i in range(7201)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert kind_of(path) == TRACE
    found = against_actual(plan, [f"chat={path}"], tmp_path / "own")
    assert stake_of(found, "rate").assumption.actual == pytest.approx(2.0, rel=1e-3)
    assert stake_of(found, "input").assumption.actual == pytest.approx(500, rel=1e-3)
    assert stake_of(found, "output").assumption.actual == pytest.approx(200, rel=1e-3)


def test_a_log_calibrates_and_what_the_plan_may_not_use_is_worth_nothing(plan, tmp_path):
    path = tmp_path / "log.json"
    result = {
        "backend": "vllm", "model_id": "Meta-Llama-3.1-8B", "date": "20260901-120000", "num_prompts": 1000, "completed": 1000, "request_rate": "inf",
        "max_concurrency": 32, "total_input_tokens": 500_000, "total_output_tokens": 200_000, "output_throughput": 900.0,
        "mean_ttft_ms": 60.0, "mean_tpot_ms": 30.0, "chip": "A100 SXM 80GB", "n_chips": 1, "tp": 1, "weight_dtype": "bf16",
    }  # fmt: skip
    path.write_text(json.dumps(result), encoding="utf-8")
    assert kind_of(path) == RUNS
    found = against_actual(plan, [path], tmp_path / "own")
    assert {stake.how for stake in found.stakes} == {UNUSED} and found.after is plan
    largest = max(found.stakes, key=lambda stake: stake.assumption.error).assumption
    assert found.words[0].startswith(f"Largest error: {largest.name}")
    assert largest.error > 0.15 and largest.error_after < largest.error  # one run moves the factor part of the way
    assert (tmp_path / "own" / "serving.json").is_file()


def test_mistakes_of_a_file_are_told_all_at_once_by_line_and_column(plan, tmp_path):
    path = written(
        tmp_path, "chat,x,3,DGX H100,,,", "talk,5,,,310000,,soon", "chat,,,DGX H1000,1,,",
        head="workload,requests_per_s,throughput,system,price,wat,date",
    )  # fmt: skip
    with pytest.raises(SpecError) as error:
        against_actual(plan, [path], tmp_path / "own")
    said = str(error.value)
    for place in (
        "line 1, column 6: unknown column", "line 2, column 2: expected a number", "line 2, column 3: throughput: the row lacks systems",
        'line 3, column 1: workload: the plan has no "talk"', "line 3, column 5: price: the row lacks system, how",
        "line 3, column 7: date: expected a day", 'line 4, column 4: system: the plan has no "DGX H1000"; close names: "DGX H100"',
    ):  # fmt: skip
        assert place in said, said


def test_a_latency_that_the_plan_does_not_predict_is_refused(plan, tmp_path):
    with pytest.raises(SpecError, match=r"does not predict tpot of chat; known here: tpot\.p95; ttft\.p95"):
        against_actual(plan, [written(tmp_path, "chat,40 ms", head="workload,tpot")], tmp_path / "own")


def test_the_command_prints_writes_and_holds_the_budget(plan, tmp_path, capsys):
    plan.save(tmp_path / "plan.json")
    path = written(tmp_path, ",,,DGX H100,buy,,,,,,,,340000,")
    command = ["compare", str(tmp_path / "plan.json"), "--actual", str(path), "-q"]
    for form, sign in (
        ("table", "Largest error"),
        ("md", "| price of DGX H100, buy |"),
        ("csv", "kind,of"),
        ("json", '"a_month"'),
    ):
        assert main([*command, "--format", form, "--plans", str(tmp_path / "out")]) == OK
        assert sign in capsys.readouterr().out
    after = json.loads((tmp_path / "out" / "after.json").read_text())
    assert after["spec"]["offers"][0]["price"] == "340000 USD"
    assert main([*command, "--budget", f"{plan.value:.0f}"]) == OVER_BUDGET
    assert main(["compare", str(tmp_path / "plan.json")]) == INVALID
    assert main(["compare", str(tmp_path / "plan.json"), *command[1:]]) == INVALID


def test_the_library_answers_as_the_command(plan, tmp_path):
    found = planner.compare(plan, actual=[written(tmp_path, ",,,DGX H100,buy,,,,,,,,340000,")])
    assert found.stakes[0].how == BOOKS and found.overlay is None


SOURCES = ("trtllm2", "sgldoc", "ix3", "neuron", "lmdeploy", "gaudi")
"""Sources of 20 to 110 runs on chips of four vendors. Of another one, four runs at 0.15 of the prediction are not halved: docs/actual.md."""


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_as_a_log_of_the_user(plan, measurements, tmp_path, source):
    """The largest error is named first, and where it exceeds 15 % at least halved by calibration."""
    with open(measurements / "serving.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"].partition("-")[0] == source]
    path = tmp_path / "log.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = against_actual(plan, [path], tmp_path / "own", total_s=1.0)
    figures = [stake.assumption for stake in found.stakes]
    largest = max(figures, key=lambda figure: figure.error)
    assert largest.name in found.words[0]
    assert largest.error <= 0.15 or largest.error_after <= largest.error / 2
