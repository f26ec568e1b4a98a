"""The library answers as the commands do, from a path, a mapping or a plan, and sweeps a spec over values."""

import importlib
import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.plan import Plan, parse_plan
from planner.tables import as_csv, as_frame


@pytest.fixture(scope="module")
def stored(small_plan, tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    small_plan.save(path)
    return path


@pytest.fixture(scope="module")
def case(root):
    return root / "examples/cases/llama_8b_compiled.json"


def printed(capsys, *arguments):
    main([*map(str, arguments), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_estimate_answers_as_the_command_from_a_path_and_a_mapping(capsys, case):
    wanted = printed(capsys, "estimate", case)
    assert json.loads(json.dumps(planner.estimate(case).answer)) == wanted
    assert json.loads(json.dumps(planner.estimate(json.loads(case.read_text())).answer)) == wanted


def test_layouts_and_characterise_answer_as_the_commands(capsys, case, root, tmp_path):
    training = json.loads((root / "examples/cases/gpt3_a100.json").read_text())
    small = tmp_path / "case.json"
    small.write_text(
        json.dumps(
            {
                **training,
                "chips": 8,
                "workload": {**training["workload"], "architecture": "Llama-3.2-1B", "batch_tokens": "131072"},
            }
        )
    )
    for path, few in ((small, "layouts"), (root / "examples/cases/grpo_h100.json", "splits")):
        found = json.loads(json.dumps(planner.layouts(path, best=3)))
        assert found == printed(capsys, "layouts", path, "--best", 3) and len(found[few]) == 3
    assert json.loads(json.dumps(planner.characterise(case))) == printed(capsys, "characterise", case)


def test_characterise_gives_a_spec_the_value_of_systems(capsys, tiny, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(tiny()))
    assert json.loads(json.dumps(planner.characterise(tiny()))) == printed(capsys, "characterise", path)


def test_robust_answers_as_the_command_for_the_document_of_a_plan(capsys, stored):
    found = planner.robust(json.loads(stored.read_text()), scenarios=20)
    assert json.loads(json.dumps(found.document)) == printed(capsys, "robust", stored, "--scenarios", 20)


def test_robust_and_measure_refuse_a_plan_without_an_answer(small_plan):
    objective = {**small_plan.document["objective"], "value": None}
    plan = Plan.of({**small_plan.document, "status": "infeasible", "totals": None, "objective": objective})
    for ask in (planner.robust, planner.measure):
        with pytest.raises(SpecError):
            ask(plan)


def test_compare_takes_paths_and_plans(capsys, small_plan, stored):
    found = planner.compare(stored, small_plan)
    assert json.loads(json.dumps(found.document)) == printed(capsys, "compare", stored, stored)


def test_validate_and_calibrate_refuse_what_no_measurement_is_by_its_place(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("colour\nred\n")
    for ask in (lambda: planner.validate(path), lambda: planner.calibrate(str(path), tmp_path / "overlay")):
        with pytest.raises(SpecError, match=r"runs\.csv"):
            ask()


@pytest.mark.parametrize("name", ["estimate", "robust"])
def test_a_package_with_the_name_of_a_command_answers_when_it_is_called(name):
    package = importlib.import_module(f"planner.{name}")
    assert package.__path__ and callable(package) and callable(getattr(planner, name))
    with pytest.raises(SpecError):
        package({})


def test_a_plan_keeps_the_spec_that_it_answers(tiny):
    spec = tiny()
    plan = planner.solve(spec)
    spec["workloads"][0]["demand"] = {"requests_per_s": 1e6}
    assert plan.document["spec"]["workloads"][0]["demand"] == tiny()["workloads"][0]["demand"]
    assert planner.verify_plan(plan) == []


def test_a_sweep_solves_every_combination_the_last_path_fastest(tiny):
    values = {"offers[0].price": ["300000 USD", "400000 USD"], "workloads[0].demand.requests_per_s": [30, 3000]}
    rows = planner.sweep(tiny(), values)
    assert [(row["offers[0].price"], row["workloads[0].demand.requests_per_s"]) for row in rows] == [
        (price, rate) for price in values["offers[0].price"] for rate in (30, 3000)
    ]
    alone = planner.solve({**tiny(), "offers": [{**tiny()["offers"][0], "price": "400000 USD"}]})
    assert rows[2]["value"] == pytest.approx(alone.value) and rows[2]["chips"] == alone.totals["chips"]
    assert rows[0]["value"] < rows[2]["value"] < rows[3]["value"] and {row["error"] for row in rows} == {None}
    assert as_csv(rows).count("\n") == 5


def test_a_sweep_keeps_infeasible_and_invalid_combinations_as_rows(tiny):
    rows = planner.sweep(tiny(), {"limits.budget": ["1 USD", "9M USD", "9 parsecs"]})
    assert [row["status"] for row in rows] == ["infeasible", rows[1]["status"], "invalid"]
    assert rows[0]["value"] is None and rows[1]["value"] > 0 and "budget" in rows[2]["error"]


def test_a_sweep_refuses_paths_that_lead_nowhere_and_values_that_are_no_list_all_at_once(tiny):
    with pytest.raises(SpecError) as refused:
        planner.sweep(tiny(), {"sites[7].power": ["1 MW"], "limits.budget": "1 USD", "horizon.duration": []})
    assert [problem.path for problem in refused.value.problems] == [
        "horizon.duration",
        "limits.budget",
        "sites[7].power",
    ]
    with pytest.raises(SpecError, match="budget"):
        planner.sweep(tiny(), {"limits.budget": ["9 parsecs", "no money"]})


def test_a_sweep_is_a_frame(tiny):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = as_frame(planner.sweep(tiny(), {"offers[0].price": ["300000 USD"]}))
    assert list(frame["offers[0].price"]) == ["300000 USD"]


def test_a_mapping_that_is_no_plan_is_refused():
    with pytest.raises(SpecError, match="missing"):
        planner.compare({}, parse_plan)


def test_init_drafts_the_spec_of_the_command(capsys):
    main(["init", "--model", "Meta-Llama-3.1-8B", "--users", "500", "--quiet"])
    drafted = planner.init(model="Meta-Llama-3.1-8B", users=500)
    assert drafted == json.loads(capsys.readouterr().out) and drafted["assumptions"]
    with pytest.raises(SpecError, match="--vllm"):
        planner.init()


def test_export_writes_what_the_command_writes(small_plan, stored, tmp_path, capsys):
    main(["export", str(stored), str(tmp_path / "command"), "--to", "vllm,bill", "--quiet"])
    for plan, to in ((stored, "vllm, bill"), (small_plan, ["vllm", "bill"])):
        found = planner.export(plan, tmp_path / "library", to=to)
        assert {file.path: (tmp_path / "library" / file.path).read_text() for file in found.files} == {
            path.relative_to(tmp_path / "command").as_posix(): path.read_text()
            for path in (tmp_path / "command").rglob("*")
            if path.is_file()
        }
    with pytest.raises(SpecError, match="no format"):
        planner.export(stored, tmp_path / "library", to="kubernetes")
