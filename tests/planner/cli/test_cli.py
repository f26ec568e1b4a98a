"""The command line: what each command prints where, and with which exit code it ends."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from planner import solve
from planner.plan import TABLES, parse_plan
from planner.report.outputs.sections import csv_tables
from planner.report.paper import LINES
from planner.verify.plan import verify_plan

OK, BUG, USAGE, INVALID, INFEASIBLE, LIMIT, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130


# -- plan --------------------------------------------------------------------------------------------------------------


def test_plan_prints_nothing_but_the_plan(flopwatt, files):
    run = flopwatt("plan", files / "tiny.json", "--format", "json")
    assert run.code == OK
    plan = parse_plan(run.out)
    assert plan.status == "optimal" and verify_plan(plan) == []
    assert run.out == plan.to_json()
    assert "points evaluated" in run.err and "rows" in run.err
    again = flopwatt("plan", files / "tiny.json", "--format", "json", "-q")
    assert (again.code, again.out, again.err) == (
        OK,
        run.out,
        "",
    )  # the same question, the same answer to the last digit


def test_plan_in_every_format(flopwatt, files):
    page = flopwatt("plan", files / "tiny.json", "-q")
    assert page.code == OK and page.out.startswith("tiny\nCost ")
    assert len(page.out.splitlines()) <= LINES and max(map(len, page.out.splitlines())) <= 100
    for heading in (
        "What to buy or rent",
        "How it runs",
        "Levelised cost per 1M tokens",
        "Binding limits",
        "What comes next",
    ):
        assert f"\n{heading}" in page.out
    table = flopwatt("plan", files / "tiny.json", "-q", "--full")
    assert table.code == OK and table.out.startswith("tiny\n\noptimal: least cost ")
    for heading in ("What to obtain", "How it runs", "What it costs", "Limits", "Assumptions"):
        assert f"\n{heading}" in table.out
    markdown = flopwatt("plan", files / "tiny.json", "-q", "--format", "md")
    assert markdown.code == OK and markdown.out.startswith("# tiny\n") and "| site | system | count |" in markdown.out
    fleet = list(csv.DictReader(io.StringIO(flopwatt("plan", files / "tiny.json", "-q", "--format", "csv").out)))
    assert [(row["site"], row["system"], row["how"]) for row in fleet] == [("us-virginia", "DGX H100", "buy")]
    assert int(fleet[0]["count"]) >= 1


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_full_changes_no_other_format(flopwatt, files, form):
    asked = ("plan", files / "tiny.json", "-q", "--format", form)
    assert flopwatt(*asked, "--full").out == flopwatt(*asked).out


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_output_holds_what_standard_output_would(flopwatt, files, tmp_path, form):
    there = tmp_path / "deep" / "answer"
    printed = flopwatt("plan", files / "tiny.json", "-q", "--format", form)
    written = flopwatt("plan", files / "tiny.json", "-q", "--format", form, "--output", there)
    assert (written.code, written.out, written.err) == (OK, "", "")
    assert there.read_text(encoding="utf-8") == printed.out
    assert [path.name for path in there.parent.iterdir()] == ["answer"], "no half-written file is left behind"


def test_csv_into_a_folder_writes_every_table(flopwatt, files, tmp_path):
    run = flopwatt("plan", files / "tiny.json", "--format", "csv", "--output", f"{tmp_path}/tables/")
    assert run.code == OK and run.out == ""
    written = {path.stem for path in (tmp_path / "tables").iterdir()}
    assert written >= {*TABLES, "costs"} and written == set(csv_tables(solve(files / "tiny.json")))
    costs = list(csv.DictReader((tmp_path / "tables/costs.csv").open(encoding="utf-8")))
    lines = list(csv.DictReader((tmp_path / "tables/cost_lines.csv").open(encoding="utf-8")))
    assert sum(float(row["amount"]) for row in costs) == pytest.approx(sum(float(row["amount"]) for row in lines))


def test_a_dash_is_standard_input_and_output(flopwatt, files):
    spec = (files / "tiny.json").read_bytes()
    run = flopwatt("plan", "-", "--format", "json", "--output", "-", "-q", stdin=spec)
    assert run.code == OK and parse_plan(run.out).status == "optimal"
    assert flopwatt("check", "-", stdin=spec).code == OK
    assert flopwatt("verify", "-", stdin=run.out.encode()).code == OK
    assert flopwatt("verify", "-", stdin=(files / "broken.json").read_bytes()).code == BROKEN


@pytest.mark.parametrize("name", ["poor", "hasty"])
def test_an_infeasible_spec_is_answered_in_the_same_form(flopwatt, files, name):
    run = flopwatt("plan", files / f"{name}.json", "--format", "json")
    assert run.code == INFEASIBLE
    plan = parse_plan(run.out)
    assert plan.status == "infeasible" and plan["fleet"] == plan["routes"] == plan["schedule"] == []
    assert plan.objective["value"] is plan["bound"] is plan.gap is None
    assert verify_plan(plan) == []
    words = flopwatt("plan", files / f"{name}.json", "-q")
    assert words.code == INFEASIBLE and "infeasible" in words.out


def test_without_any_limit_throughput_has_no_answer(flopwatt, files):
    run = flopwatt("plan", files / "endless.json", "--format", "json")
    assert run.code == INVALID and parse_plan(run.out).status == "unbounded"
    assert "budget" in flopwatt("plan", files / "endless.json", "-q").out  # the remedy
    assert flopwatt("plan", files / "endless.json", "-q", "--set", "limits.budget=1M USD").code == OK


def test_out_of_time_without_a_plan(flopwatt, root):
    run = flopwatt("plan", root / "tests/golden/small_spec.json", "--time-limit", "1 ms", "--format", "json")
    assert run.code == LIMIT
    assert parse_plan(run.out).status == "limit"


def test_out_of_time_with_a_plan_still_writes_it(flopwatt, files, tmp_path, monkeypatch):
    """As if the solver had proven no more than half of the value by then."""
    from planner.solving import replicas

    solve = replicas.solve

    def late(*arguments, **options):
        solution = solve(*arguments, **options)
        seconds = arguments[1].time_limit_s
        return replace(solution, status="limit", bound=solution.value / 2, gap=0.5, seconds=seconds)

    monkeypatch.setattr(replicas, "solve", late)
    run = flopwatt("plan", files / "tiny.json", "--output", tmp_path / "plan.json", "--format", "json")
    assert run.code == LIMIT
    assert flopwatt("verify", tmp_path / "plan.json").code == OK
    assert json.loads((tmp_path / "plan.json").read_text())["gap"] == pytest.approx(0.5)


def test_a_plan_that_fails_its_own_check_is_a_bug_and_is_not_printed(flopwatt, files, monkeypatch):
    import planner.verify.plan

    monkeypatch.setattr(
        planner.verify.plan, "verify_plan", lambda *_, **__: [planner.verify.plan.Finding("totals.cost", "is wrong")]
    )
    run = flopwatt("plan", files / "tiny.json")
    assert run.code == BUG and run.out == "" and "totals.cost" in run.err


def test_an_interrupt_ends_quietly(flopwatt, files, monkeypatch):
    import planner.pipeline

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(planner.pipeline, "solve_document", interrupted)
    run = flopwatt("plan", files / "tiny.json")
    assert run.code == INTERRUPTED and run.out == "" and "Traceback" not in run.err


# -- --set and the options of the solver -------------------------------------------------------------------------------


def test_set_changes_one_value(flopwatt, files):
    run = flopwatt(
        "plan", files / "tiny.json", "--format", "json",
        "--set", "limits.budget=2M USD",  # a block that was absent, a value that is text
        "--set", "workloads[0].demand.requests_per_s=12.5",  # a list, a value that is JSON
        "--set", 'name="another"',
        "--set", "sites.0.systems=[\"DGX H100\"]",
    )  # fmt: skip
    assert run.code == OK
    spec = parse_plan(run.out)["spec"]
    assert spec["limits"] == {"budget": "2M USD"} and spec["workloads"][0]["demand"]["requests_per_s"] == 12.5
    assert spec["name"] == "another" and spec["sites"][0]["systems"] == ["DGX H100"]


@pytest.mark.parametrize(
    "assignment", ["limits", "=1", "workloads[7].name=x", "name.first=x", "workloads[0].nmae=x", "limits.budget=much"]
)
def test_a_wrong_assignment_is_told(flopwatt, files, assignment):
    run = flopwatt("check", files / "tiny.json", "--set", assignment)
    assert run.code == INVALID and run.out == "" and run.err.strip()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
def test_options_of_the_solver_are_in_the_plan(flopwatt, files):
    options = ("--gap", "0.01", "--time-limit", "30 s", "--seed", "7", "--solver", "pulp")
    run = flopwatt("plan", files / "tiny.json", "--format", "json", *options)
    assert run.code == OK
    plan = parse_plan(run.out)
    assert plan["spec"]["solver"] == {"gap": 0.01, "time_limit": "30 s", "seed": 7, "backend": "pulp"}
    assert plan["solver"]["backend"] == "pulp" and plan["solver"]["seed"] == 7 and plan["solver"]["asked_gap"] == 0.01


# -- check and verify --------------------------------------------------------------------------------------------------


def test_check_counts_what_a_spec_asks_about(flopwatt, files):
    run = flopwatt("check", files / "tiny.json")
    assert run.code == OK and run.out.startswith("valid: 1 workloads, 1 sites, 1 systems, 1 offers, 24 slots")
    assert json.loads(flopwatt("check", files / "tiny.json", "--format", "json").out)[0]["slots"] == 24
    assert flopwatt("check", files / "poor.json").code == OK  # nothing is wrong with the question


def test_check_reports_every_problem_on_standard_error(flopwatt, files):
    run = flopwatt("check", files / "wrong.json", "--set", "sites[0].power=20 MJ")
    assert run.code == INVALID and run.out == ""
    assert [line.split(":")[0] for line in run.err.splitlines()] == ["currency", "sites[0].power"]
    assert flopwatt("plan", files / "wrong.json").code == INVALID


@pytest.mark.parametrize("command", ["check", "plan", "characterise", "sensitivity"])
def test_the_shape_and_the_names_of_a_spec_are_told_in_one_round(flopwatt, files, tmp_path, command):
    document = json.loads((files / "wrong.json").read_text())
    document["workloads"][0]["architecture"] = "Llama-9"
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({**document, "colour": 1}))
    run = flopwatt(command, path)
    assert run.code == INVALID and run.out == ""
    assert [line.split(":")[0] for line in run.err.splitlines()] == ["colour", "currency", "workloads[0].architecture"]


def test_verify_says_whether_the_plan_holds(flopwatt, files):
    good = flopwatt("verify", files / "plan.json")
    assert good.code == OK and good.out.startswith("the plan holds")
    bad = flopwatt("verify", files / "broken.json")
    assert bad.code == BROKEN and "does not hold" in bad.out and "totals.cost" in bad.out
    as_json = flopwatt("verify", files / "broken.json", "--format", "json")
    assert as_json.code == BROKEN
    verdict = json.loads(as_json.out)
    assert verdict["holds"] is False and any("totals.cost" in finding for finding in verdict["findings"])


def test_verify_prints_the_first_of_many_findings_and_lists_all_as_json(flopwatt, files, tmp_path):
    document = json.loads((files / "plan.json").read_text())
    document["fleet"][0] |= {f"colour {i}": i for i in range(70)}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    run, whole = flopwatt("verify", path), flopwatt("verify", path, "--format", "json")
    found = json.loads(whole.out)["findings"]
    assert run.code == whole.code == BROKEN and len(found) > 50
    shown = [line.strip() for line in run.out.splitlines()]
    assert shown[1:51] == found[:50] and shown[51] == f"and {len(found) - 50} more problems; correct these first"


def test_verify_of_what_is_no_plan(flopwatt, files, tmp_path):
    document = json.loads((files / "plan.json").read_text())
    texts = {
        "text": "not JSON",
        "list": "[]",
        "spec": (files / "tiny.json").read_text(),
        "part": json.dumps({key: value for key, value in document.items() if key != "routes"}),
        "newer": json.dumps({**document, "schema_version": 99}),
        "wrong spec": json.dumps({**document, "spec": {"name": "x"}}),
    }
    for name, text in texts.items():
        (tmp_path / "plan.json").write_text(text)
        run = flopwatt("verify", tmp_path / "plan.json")
        assert run.code == INVALID and run.out == "" and run.err.strip(), name


# -- usage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("fly",), ("plan",), ("catalog",), ("plan", "a.json", "b.json"), ("plan", "a.json", "--format", "xml"),
        ("plan", "a.json", "--solver", "abacus"), ("plan", "a.json", "--gap", "small"), ("verify",), ("check", "a.json", "--seed", "1"),
    ],
)  # fmt: skip
def test_wrong_usage(flopwatt, arguments):
    run = flopwatt(*arguments)
    assert run.code == USAGE and run.out == "" and "usage:" in run.err


def test_a_missing_file(flopwatt, tmp_path):
    for verb in ("plan", "check", "verify"):
        run = flopwatt(verb, tmp_path / "nowhere.json")
        assert run.code == USAGE and run.out == "" and "nowhere.json" in run.err
    assert flopwatt("plan", tmp_path).code == USAGE  # a folder


def test_a_place_that_cannot_be_written(flopwatt, files, tmp_path):
    (tmp_path / "file").write_text("")
    run = flopwatt("check", files / "tiny.json", "--output", tmp_path / "file" / "answer")
    assert run.code == USAGE and run.out == ""


# -- catalog -----------------------------------------------------------------------------------------------------------


def test_catalog_list(flopwatt):
    kinds = flopwatt("catalog", "list", "--format", "json")
    assert kinds.code == OK and {"chips", "systems", "regions"} <= {row["kind"] for row in json.loads(kinds.out)}
    rows = list(csv.DictReader(io.StringIO(flopwatt("catalog", "list", "systems", "--format", "csv").out)))
    assert "DGX H100" in {row["name"] for row in rows}
    assert "DGX H100" in flopwatt("catalog", "list", "systems").out
    wrong = flopwatt("catalog", "list", "sistems")
    assert wrong.code == INVALID and wrong.out == "" and "systems" in wrong.err


def test_catalog_show(flopwatt):
    run = flopwatt("catalog", "show", "DGX H100", "--format", "json")
    assert run.code == OK
    rows = {row["figure"]: row for row in json.loads(run.out)}
    assert rows["power_w"]["source"] and rows["power_w"]["confidence"] in "ABC"
    named = flopwatt("catalog", "show", "systems/8x H100")  # an alias
    assert named.code == OK and named.out.startswith("systems/DGX H100") and "power_w" in named.out
    wrong = flopwatt("catalog", "show", "DGX H10")
    assert wrong.code == INVALID and wrong.out == "" and "DGX H100" in wrong.err


def test_an_overlay_adds_records_and_is_checked(flopwatt, tmp_path, files):
    figures = {"bf16_flop_per_s": {"value": "256 TFLOP/s", "note": "data sheet of ours"}}
    (tmp_path / "ours.json").write_text(
        json.dumps({"chips": [{"name": "Our chip", "text": {"vendor": "us"}, "figures": figures}]})
    )
    run = flopwatt("catalog", "show", "Our chip", "--catalog", tmp_path)
    assert run.code == OK and "256 TFLOP/s" in run.out
    assert flopwatt("catalog", "show", "Our chip").code == INVALID
    (tmp_path / "ours.json").write_text(
        json.dumps({"chips": [{"name": "Our chip", "figures": {"bf16_flops": {"value": "256 TFLOP/s"}}}]})
    )
    wrong = flopwatt("check", files / "tiny.json", "--catalog", tmp_path)
    assert wrong.code == INVALID and "bf16_flop_per_s" in wrong.err  # the close name


# -- the installed command ---------------------------------------------------------------------------------------------


def test_in_a_process_of_its_own(root, files):
    """Exit code and streams as the shell sees them; one run, since each costs the import."""
    command = [sys.executable, "-m", "planner.cli", "plan", str(files / "tiny.json"), "--format", "json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == OK and parse_plan(done.stdout).status == "optimal"
    assert "points evaluated" in done.stderr and "Traceback" not in done.stderr


def test_a_search_that_no_limit_ended_is_no_failure(flopwatt, files, tmp_path, monkeypatch):
    """As with whole replicas, whose gap counts what they cost beside divisible ones."""
    from planner.solving import replicas

    solve = replicas.solve

    def wide(*arguments, **options):
        solution = solve(*arguments, **options)
        return replace(solution, status="limit", bound=solution.value / 2, gap=0.5, seconds=0.0)

    monkeypatch.setattr(replicas, "solve", wide)
    run = flopwatt("plan", files / "tiny.json", "--output", tmp_path / "plan.json", "--format", "json")
    assert run.code == OK and json.loads((tmp_path / "plan.json").read_text())["solver"]["ended_by"] == "search"


def test_prices_in_doubt_are_listed(flopwatt):
    printed = flopwatt("catalog", "check", "prices", "--format", "csv")
    assert printed.code == 0
    assert "DGX A100 80GB, buy/price" in printed.out and "71 months old" in printed.out
    assert "DGX H200, reserved" not in printed.out
