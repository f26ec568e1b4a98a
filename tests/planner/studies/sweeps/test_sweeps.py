"""A sweep tries the values asked for, loses no row when it is killed, and finds where the kind of plan changes."""

import csv
import io
import json
import math
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK, USAGE
from planner.spec.document import edited
from planner.studies.batch_lines import Settings
from planner.studies.batch_output import open_output
from planner.studies.sweeps.rows import as_line, as_table, columns_of, kept
from planner.studies.sweeps.study import run
from planner.studies.sweeps.summary import STEPS, effects, thresholds
from planner.studies.sweeps.varied import Varied, grid, latin_hypercube, one_at_a_time, read_varied
from tests.conftest import long_run

ROOT = Path(__file__).resolve().parents[4]
PRICE, RATE = "offers[0].price", "workloads[0].demand.requests_per_s"


def test_values_are_lists_or_ranges_with_units(tiny):
    found = read_varied([f"{PRICE}=300000 USD:400000 USD:3", f"{RATE}=30, 60", "solver.gap=1e-3:3e-3:2"], tiny())
    assert [one.values for one in found] == [("300000 USD", "350000 USD", "400000 USD"), (30, 60), (0.001, 0.003)]
    assert read_varied(['sites[0].systems=["DGX H100"],["DGX H200","DGX H100"]'], tiny())[0].values == (
        ["DGX H100"],
        ["DGX H200", "DGX H100"],
    )


def test_all_wrong_texts_are_told_at_once(tiny):
    with pytest.raises(SpecError) as refused:
        read_varied(["nothing", "sites[7].power=1 MW,2 MW", f"{RATE}=3:3:4", f"{PRICE}=1 MW:2 USD:3"], tiny())
    assert sorted(problem.path for problem in refused.value.problems) == sorted(
        ["nothing", "sites[7].power", RATE, PRICE]
    )


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_grid_has_every_combination_once(counts):
    varied = [Varied(f"p{place}", tuple(range(count))) for place, count in enumerate(counts)]
    points = [tuple(point.values()) for point in grid(varied)]
    assert len(points) == len(set(points)) == math.prod(counts) and points == sorted(points)


def test_one_at_a_time_moves_one_path_and_keeps_the_spec(tiny):
    varied = read_varied([f"{PRICE}=300000 USD,310000 USD,320000 USD", f"{RATE}=30,60"], tiny())
    points = one_at_a_time(varied, tiny())
    assert points[0] == {PRICE: "310000 USD", RATE: 30} and len(points) == 1 + 2 + 1
    assert all(sum(point[path] != points[0][path] for path in point) <= 1 for point in points)
    with pytest.raises(SpecError, match="no value"):
        one_at_a_time([Varied("limits.budget", ("1 USD",))], tiny())


@given(st.integers(1, 30), st.integers(0, 99))
def test_a_latin_hypercube_has_one_value_in_each_part_of_each_range(count, seed):
    varied = [Varied("a", ("0 W", "10 W"), (0.0, 10.0), " W"), Varied("b", (0, 1), (0.0, 1.0))]
    points = latin_hypercube(varied, count, seed)
    assert points == latin_hypercube(varied, count, seed)
    assert sorted(int(float(point["a"].split()[0]) / 10 * count) for point in points) == list(range(count))
    assert sorted(int(point["b"] * count) for point in points) == list(range(count))


def test_rows_are_those_of_the_library_and_the_file_holds_them(tiny, tmp_path):
    values = {PRICE: ["300000 USD", "400000 USD"], RATE: [30, 60]}
    varied = [Varied(path, tuple(tried)) for path, tried in values.items()]
    file = tmp_path / "rows.csv"
    found = run(tiny(), varied, grid(varied), settings=Settings(), rows_file=file)
    for row, expected in zip(found.rows, planner.sweep(tiny(), values), strict=True):
        assert {name: row[name] for name in expected} == expected
    assert len(list(csv.DictReader(io.StringIO(file.read_text())))) == 4
    a, b, c, d = (row["value"] for row in found.rows)
    swings = {effect.path: effect.swing for effect in found.effects}
    assert swings == pytest.approx({PRICE: abs(c + d - a - b) / 2, RATE: abs(b + d - a - c) / 2})
    assert found.effects[0].swing == max(swings.values())


def test_a_killed_sweep_is_continued_and_a_broken_last_line_is_dropped(tiny, tmp_path, monkeypatch):
    varied = [Varied(PRICE, ("300000 USD", "400000 USD", "500000 USD"))]
    points, file = grid(varied), tmp_path / "rows.csv"
    whole = run(tiny(), varied, points, settings=Settings(), rows_file=file)
    text = file.read_text()
    lines = text.splitlines(keepends=True)
    for length in range(len(text)):  # killed at any moment
        assert set(kept(text[:length].encode(), points, "rows.csv")) == set(
            range(max(text[:length].count("\n") - 1, 0))
        )
    file.write_text("".join(lines[:2]) + lines[2][:9])
    asked = []
    from planner.studies import batch

    real = batch.answer
    monkeypatch.setattr(batch, "answer", lambda line, settings: asked.append(line) or real(line, settings))
    again = run(tiny(), varied, points, settings=Settings(), rows_file=file, resume=True)
    assert len(asked) == 2 and again.rows == whole.rows and file.read_text() == text


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "notes", "\n", f"{PRICE},other"])
def test_a_file_of_anything_else_is_refused_and_left_as_it_is(text, tiny, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(text)
    varied = [Varied(PRICE, ("300000 USD",))]
    with pytest.raises(SpecError, match=r"rows.csv: holds a table of other columns"):
        run(tiny(), varied, grid(varied), settings=Settings(), rows_file=file, resume=True)
    assert file.read_text() == text


def test_rows_that_exist_are_refused_without_resume_and_while_another_process_writes_them(tiny, tmp_path, capsys):
    spec, rows = tmp_path / "spec.json", tmp_path / "rows.csv"
    spec.write_text(json.dumps(tiny()))
    asked = ["sweep", str(spec), "--vary", f"{PRICE}=300000 USD", "-q", "--rows", str(rows)]
    assert main(asked) == OK
    before = rows.read_bytes()
    assert main(asked) == USAGE and "exists already; continue it with --resume" in capsys.readouterr().err
    with open_output(rows, resume=True):
        assert main([*asked, "--resume"]) == USAGE and "being written by another run" in capsys.readouterr().err
    assert main([*asked, "--resume"]) == OK and rows.read_bytes() == before


def test_rows_of_a_spec_that_changed_are_refused_and_left_as_they_are(tiny, tmp_path):
    """A key beside the varied ones, an overlay, a lost digest: refused; another value at the varied path itself changes no row."""
    varied, file = [Varied(PRICE, ("300000 USD", "400000 USD"))], tmp_path / "rows.csv"
    points = grid(varied)

    def again(document, overlays=()):
        return run(document, varied, points, settings=Settings(overlays=overlays), rows_file=file, resume=True)

    run(tiny(), varied, points, settings=Settings(), rows_file=file)
    text = file.read_text()
    overlay = tmp_path / "overlay.json"
    overlay.write_text('{"regions": []}')
    for changed, overlays in ((edited(tiny(), ((RATE, 31),)), ()), (tiny(), (overlay,))):
        with pytest.raises(SpecError, match=r"rows.csv: holds rows of another spec"):
            again(changed, overlays)
    assert again(edited(tiny(), ((PRICE, "1 USD"),))).rows == again(tiny()).rows
    (tmp_path / "rows.csv.digest").unlink()
    with pytest.raises(SpecError, match=r"rows.csv: holds rows of another spec"):
        again(tiny())
    assert file.read_text() == text


@pytest.mark.parametrize("quiet", [False, True])
def test_a_sweep_on_a_terminal_gets_a_bar_unless_quiet_is_asked(quiet, tiny, tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "planner.cli", "sweep", str(spec), "--vary", f"{PRICE}=nothing,310000 USD"]
    command += ["-q"] if quiet else []
    process = subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    told = b""
    with suppress(OSError):  # how a terminal says that its other side is closed
        while part := os.read(ours, 4096):
            told += part
    os.close(ours)
    shown = told.decode()
    assert process.wait(60) == OK and "2 combinations, 1 with a plan" in shown
    assert ("1 without a plan" in shown and f"{PRICE}=nothing: invalid" in shown) is not quiet


def test_rows_pass_into_a_pipe_once(tiny, tmp_path):
    varied = [Varied(PRICE, ("300000 USD", "400000 USD"))]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    found = run(tiny(), varied, grid(varied), settings=Settings(), rows_file=pipe)
    assert reader.communicate(timeout=60)[0] == as_table(found.rows)


@long_run
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_several_moments_and_resumed_no_row_is_lost_or_doubled(jobs, tiny, tmp_path):
    spec, rows, whole = tmp_path / "spec.json", tmp_path / "rows.csv", tmp_path / "whole.csv"
    spec.write_text(json.dumps(tiny()))
    vary = ["--vary", f"{PRICE}=300000 USD:400000 USD:4", "--vary", f"{RATE}=10:60:5"]
    command = [sys.executable, "-m", "planner.cli", "sweep", str(spec), *vary, "--jobs", jobs, "-q", "--resume"]
    for wanted in (1, 3, 8, 9, 15):  # lines of the file, heads included
        process = subprocess.Popen([*command, "--rows", str(rows)], cwd=ROOT, start_new_session=True)
        deadline = time.monotonic() + 60
        while not rows.exists() or rows.read_bytes().count(b"\n") < wanted:
            assert process.poll() is None and time.monotonic() < deadline, "the sweep ended or stands still"
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        cells = list(csv.reader(io.StringIO(rows.read_text())))
        assert len({tuple(row[:2]) for row in cells}) == len(cells) >= wanted
    for file in (rows, whole):
        subprocess.run([*command, "--rows", str(file)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert rows.read_text() == whole.read_text() and rows.read_text().count("\n") == 21


def test_effects_are_means_by_value():
    varied = [Varied("a", (1, 2)), Varied("b", (1, 2))]
    rows = [{"a": a, "b": b, "value": 10.0 * a + b} for a in (1, 2) for b in (1, 2)]
    found = effects(varied, rows)
    assert [(one.path, one.levels) for one in found] == [
        ("a", (("1", 11.5, 2), ("2", 21.5, 2))),
        ("b", (("1", 16.0, 2), ("2", 17.0, 2))),
    ]


@given(st.floats(0.01, 0.99))
def test_bisection_encloses_the_threshold(change):
    one = Varied("x", (0, 1), (0.0, 1.0))
    found = thresholds([one], [], lambda point: "low" if point["x"] < change else "high", {"x": 0})
    assert len(found) == 1 and found[0].below < change <= found[0].above
    assert found[0].above - found[0].below == pytest.approx(2.0**-STEPS) and found[0].kind_below == "low"


def test_the_command_finds_the_price_at_which_renting_wins(tiny, tmp_path, capsys):
    rented = {"system": "DGX H100", "how": "on_demand", "price": "16 USD/h"}
    spec, chart, rows = tmp_path / "spec.json", tmp_path / "chart.svg", tmp_path / "rows.csv"
    spec.write_text(json.dumps({**tiny(), "offers": [*tiny()["offers"], rented]}))
    asked = ["sweep", str(spec), "--vary", f"{PRICE}=200000 USD:900000 USD:3", "-q"]
    assert main([*asked, "--chart", str(chart), "--rows", str(rows), "--format", "json"]) == OK
    found = json.loads(capsys.readouterr().out)
    (threshold,) = found["thresholds"]
    assert " buy " in threshold["kind_below"] and " on_demand " in threshold["kind_above"]
    price = float(threshold["below"].split()[0]), float(threshold["above"].split()[0])
    for amount, how in zip(price, ("buy", "on_demand"), strict=True):
        edited = json.loads(spec.read_text())
        edited["offers"][0]["price"] = f"{amount} USD"
        assert {row["how"] for row in planner.solve(edited)["fleet"]} == {how}
    assert "<circle" in chart.read_text() and rows.read_text().count("\n") == 4
    assert main([*asked, "--sample", "lhs"]) == INVALID and main([*asked, "--resume"]) == USAGE


def test_thresholds_that_are_not_looked_for_are_told(tiny):
    varied = read_varied(["limits.budget=1M USD:9M USD:2"], tiny())
    found = run(tiny(), varied, grid(varied), settings=Settings())
    assert found.thresholds == [] and any(
        "limits.budget" in words and "not looked for" in words for words in found.words
    )


def test_columns_are_those_of_a_line():
    point = {"a": 1}
    line = as_line({**point, **dict.fromkeys(columns_of([point])[1:])})
    assert line.count(",") == len(columns_of([point])) - 1


def test_a_value_that_takes_the_place_of_another_path_away_is_named(tiny):
    spec = tiny(sites=[{"region": "us-virginia"}, {"region": "us-texas"}])
    values = {"sites": [spec["sites"], spec["sites"][:1]], "sites[1].power": ["1 MW"]}
    with pytest.raises(SpecError) as raised:
        planner.sweep(spec, values)
    [problem] = raised.value.problems
    assert problem.path == "sites[1].power" and "sites" in problem.message and "vary one of the two" in problem.message
    with pytest.raises(SpecError, match=r'there is no "sites\[2\]"'):
        planner.sweep(spec, {"sites[2].power": ["1 MW"]})
