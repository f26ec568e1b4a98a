"""What `calibrate` and `validate` say of a user's runs: how each was read, what cannot be right, what was predicted, and who uses it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from catalog.lookup import Catalog, shipped_catalog
from planner.calibration.fit import read_measurements
from planner.calibration.scores import validate
from planner.cli.main import main
from planner.facts import measurements as facts
from planner.facts.measurements import Chips

OPEN = {
    "date": "20261120-101500", "backend": "openai-chat", "model_id": "Qwen/Qwen3-32B", "num_prompts": 400, "request_rate": 3.0, "max_concurrency": 256,
    "completed": 400, "total_input_tokens": 400000, "total_output_tokens": 120000, "request_throughput": 2.83, "output_throughput": 849.9,
    "max_concurrent_requests": 41, "mean_ttft_ms": 121.5, "mean_tpot_ms": 24.1, "mean_e2el_ms": 7330.0, "chip": "H100", "n_chips": 2, "tp": 2,
    "weight_dtype": "bf16", "engine_version": "0.33",
}  # fmt: skip
TRAINING = {
    "id": "t", "source": "own", "model": "Llama-3.1-8B", "chip": "H100", "n_chips": 64, "seq_len": 4096, "global_batch_sequences": 128, "tp": 2, "dp": 32,
    "dtype": "bf16", "step_time_s": 1.2,
}  # fmt: skip


def run(folder: Path, **changes: object) -> str:
    path = folder / "run.json"
    path.write_text(
        json.dumps({key: value for key, value in {**OPEN, **changes}.items() if value is not None}), "utf-8"
    )
    return str(path)


def step(folder: Path, **changes: object) -> str:
    row = {**TRAINING, **changes}
    with open(folder / "steps.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    return str(folder / "steps.csv")


def calibrated(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    code = main(["calibrate", *arguments, "--output", str(folder / "own"), "-q"])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


# -- how a run was read ------------------------------------------------------------------------------------------------


def test_validate_says_how_a_run_was_read_beside_what_it_predicts(tmp_path, capsys):
    assert main(["validate", run(tmp_path)]) == 0
    told = capsys.readouterr().out
    for words in (
        "1 run\n", "2 x H100 SXM5 80GB, Qwen3-32B, bf16, vllm 0.33, tp2", "3 requests/s under a ceiling of 256, 20.74 in flight", "tpot measured 24.1 ms, predicted ",
    ):  # fmt: skip
        assert words in told
    assert main(["validate", run(tmp_path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (found,) = document["runs"]
    assert [row["code"] for row in found["understood"]] == [
        "measured.run", "measured.lengths", "measured.load_ceiling", "measured.in_flight"
    ]  # fmt: skip
    assert found["figures"]["tpot"]["measured"] == pytest.approx(0.0241) and not document["notes"]


def test_calibrate_says_measured_before_and_after_and_who_uses_it(tmp_path, capsys):
    code, told, _ = calibrated(capsys, tmp_path, run(tmp_path))
    assert code == 0
    for words in (
        "3 requests/s under a ceiling of 256, 20.74 in flight",
        "measured",
        "before",
        "after",
        "points on H100 SXM5 80GB with weights in bf16 and engine vllm",
    ):
        assert words in told
    assert "serving.memory_efficiency" not in told
    code, told, _ = calibrated(capsys, tmp_path, run(tmp_path), "--full")
    assert code == 0 and "serving.memory_efficiency" in told


def test_the_document_of_calibrate_agrees_with_validate_before_and_after(tmp_path, capsys):
    path = run(tmp_path)
    before = {s.metric: s.predicted for s in validate(Path(path), shipped_catalog()).scores}
    code, told, _ = calibrated(capsys, tmp_path, path, "--format", "json")
    document = json.loads(told)
    after = {s.metric: s.predicted for s in validate(Path(path), Catalog.load([tmp_path / "own"])).scores}
    assert code == 0 and "figures" not in document
    (found,) = document["runs"]
    assert {metric: each["before"] for metric, each in found["figures"].items()} == pytest.approx(before)
    assert {metric: each["after"] for metric, each in found["figures"].items()} == pytest.approx(after, rel=2e-3)
    (used,) = document["used_by"]
    assert used["model"] == "serving" and set(used["factors"]) == {"tpot", "ttft", "throughput"}
    code, told, _ = calibrated(capsys, tmp_path, path, "--format", "json", "--full")
    assert "figures" in json.loads(told)


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_steps_of_training_are_told_alike(tmp_path, capsys, form):
    code, told, _ = calibrated(capsys, tmp_path, step(tmp_path), "--format", form)
    assert code == 0 and "step_time" in told
    if form in ("table", "md"):
        assert "64 x H100 SXM5 80GB" in told and "128 sequences of 4,096 tokens a step" in told


def test_many_runs_are_listed_in_part(tmp_path, capsys):
    (tmp_path / "run.json").write_text(json.dumps([OPEN] * 25), "utf-8")
    assert main(["validate", str(tmp_path / "run.json")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("25 runs\n") and "and 5 more" in told


# -- what the file does not say ----------------------------------------------------------------------------------------


def test_validate_fills_what_the_file_does_not_say(tmp_path, capsys):
    bare = run(tmp_path, chip=None, n_chips=None, tp=None, weight_dtype=None)
    stated = [word for pair in ("chip=H100", "n_chips=2", "tp=2", "weight_dtype=bf16") for word in ("--set", pair)]
    assert main(["validate", bare, *stated]) == 0
    assert "2 x H100 SXM5 80GB, Qwen3-32B, bf16" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_no_row_predicted_is_an_error_with_its_reason_and_remedy(tmp_path, capsys, form):
    assert main(["validate", run(tmp_path, chip=None), "--format", form]) == 3
    said = capsys.readouterr().err
    assert "no chip: 1" in said and "--set chip=" in said


def test_an_unknown_cell_is_named(tmp_path, capsys):
    assert main(["validate", run(tmp_path), "--set", "chp=H100"]) == 3
    assert "chp" in capsys.readouterr().err


def test_a_layout_that_does_not_fit_says_how_much_it_needs(tmp_path, capsys):
    """A network of 70B in 16 bit takes 141 GB, twice what one H100 has."""
    path = run(
        tmp_path, model_id="meta-llama/Llama-3.3-70B-Instruct", n_chips=1, tp=1, mean_tpot_ms=60.0, mean_e2el_ms=None
    )
    assert main(["validate", path, "--rows", str(tmp_path / "rows.csv")]) == 0
    assert "does not fit: needs 14" in capsys.readouterr().out
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        notes = [row["note"] for row in csv.DictReader(file)]
    assert notes and all("does not fit: needs 14" in note and "GB a chip" in note for note in notes)
    code, told, _ = calibrated(capsys, tmp_path, path)
    assert code == 0 and "does not fit: needs 14" in told


# -- what cannot be right ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"mean_tpot_ms": 0.0241, "mean_ttft_ms": 0.1215, "mean_e2el_ms": 7.33}, "tpot_ms", "write 24.1"),
        ({"mean_ttft_ms": 0.1215}, "ttft_ms", "write 121.5"),
        ({"mean_tpot_ms": 1e-7}, "tpot_ms", "check the unit"),
        ({"output_throughput": 4e9}, "output_tokens_per_s_total", "4,000,000,000 tokens/s is more than"),
        ({"request_throughput": 283.0}, "concurrency", "256 at most are stated"),
        ({"request_throughput": 8.0}, "peak_in_flight", "41 at most are stated"),
        ({"n_chips": 2.5}, "n_chips", "whole number"),
        ({"tp": 1.5}, "tp", "whole number"),
        ({"completed": 0.0002}, "isl", "check the totals"),
    ],
)
def test_what_cannot_be_right_is_refused_by_calibrate_and_named_by_validate(tmp_path, capsys, changes, place, words):
    path = run(tmp_path, **changes)
    code, _, said = calibrated(capsys, tmp_path, path)
    assert code == 3 and f"run.json result 1, {place}" in said and words in said
    main(["validate", path])
    told = capsys.readouterr().out
    assert f"run.json result 1, {place}" in told and words in told


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"request_rate": "inf"}, "measured.idle_clients"),  # 20.7 in flight, 256 clients
        ({"mean_e2el_ms": 733.0}, "measured.times_disagree"),
        ({"request_throughput": 7.0, "mean_e2el_ms": 3600.0}, "measured.times_disagree"),
        ({"request_rate": 1.0}, "measured.more_than_arrive"),
        (
            {"total_input_tokens": 4e8, "mean_ttft_ms": 9e4, "mean_e2el_ms": 1e5, "request_throughput": 2e-4},
            "measured.longer_than_context",
        ),
        ({"mean_ttft_ms": 9000.0, "mean_e2el_ms": 14000.0}, "measured.far_from_predicted"),
    ],
)
def test_what_is_at_odds_is_named_and_used(tmp_path, capsys, changes, code):
    exit_code, told, _ = calibrated(capsys, tmp_path, run(tmp_path, **changes), "--format", "json")
    notes = json.loads(told)["notes"]
    assert exit_code == 0 and code in [row["code"] for row in notes]
    assert all(row["source"] and row["path"].startswith(str(tmp_path)) for row in notes)


def test_speculative_decoding_may_be_faster_than_one_reading_of_the_weights(tmp_path, capsys):
    """Two H100 read 65.5 GB in 9.8 ms: 8 ms a token need several tokens a step."""
    fast = {"mean_tpot_ms": 8.0, "mean_e2el_ms": 2500.0}
    assert calibrated(capsys, tmp_path, run(tmp_path, **fast))[0] == 3
    assert calibrated(capsys, tmp_path, run(tmp_path, **fast, spec_decode_acceptance_length=2.4))[0] == 0


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"step_time_s": 0.0032}, "step_time_s"),
        ({"step_time_s": "", "tokens_per_s_per_chip": 5e6}, "tokens_per_s_per_chip"),
    ],
)
def test_a_step_beyond_the_arithmetic_of_its_chips_is_refused(tmp_path, capsys, changes, place):
    code, _, said = calibrated(capsys, tmp_path, step(tmp_path, **changes))
    assert code == 3 and f"steps.csv line 2, {place}" in said and "TFLOP/s" in said


def test_a_share_of_the_peak_above_one_is_named(tmp_path, capsys):
    main(["validate", step(tmp_path, step_time_s="", mfu_pct=320)])
    assert "line 2, model_tflops_per_chip" in capsys.readouterr().out


def test_plausible_runs_have_no_note(tmp_path):
    """An open run with a ceiling and without, as many clients as were in flight, a burst, and steps of training from quick to slow."""
    burst = {
        "request_rate": "inf",
        "max_concurrency": None,
        "mean_ttft_ms": 1e4,
        "mean_tpot_ms": 80.0,
        "mean_e2el_ms": 33900.0,
    }
    for changes in ({}, {"max_concurrency": None}, {"request_rate": "inf", "max_concurrency": 21}, burst):
        assert not validate(Path(run(tmp_path, **changes)), shipped_catalog()).notes
    for seconds in (0.8, 16.0):
        assert not validate(Path(step(tmp_path, step_time_s=seconds)), shipped_catalog()).notes


# -- the rules by themselves -------------------------------------------------------------------------------------------

PAIR = Chips("chip", 2, 3e12, 1e15, "a", "b")


def test_the_rooflines_stand_where_their_arithmetic_says():
    """Two chips read 60 GB at 6 TB/s in 10 ms, and compute 2e15 / 60e9 tokens of 60 GFLOP a second."""
    assert facts.time_below_roofline("p", "c", 0.01001, 60e9, PAIR) is None
    below = facts.time_below_roofline("p", "c", 0.00999, 60e9, PAIR)
    assert below and below.refuses and below.source == "a" and below.path == "p, c"
    assert facts.rate_above_roofline("p", "c", 33_333, 60e9, PAIR) is None
    above = facts.rate_above_roofline("p", "c", 33_334, 60e9, PAIR)
    assert above and above.refuses and above.source == "b"
    assert facts.work_above_peak("p", 1e15, PAIR) is None and facts.work_above_peak("p", 1.01e15, PAIR)


def test_a_chip_without_figures_has_no_roofline():
    bare = Chips("chip", 2, 0.0, 0.0, "", "")
    assert facts.time_below_roofline("p", "c", 1e-9, 60e9, bare) is None
    assert (
        facts.rate_above_roofline("p", "c", 1e30, 60e9, bare) is None and facts.work_above_peak("p", 1e30, bare) is None
    )


def test_exact_figures_are_held_to_the_bound_and_others_to_twice_of_it():
    assert facts.more_in_flight("p", 104.0, 100.0, "c", exact=True) is None
    assert facts.more_in_flight("p", 106.0, 100.0, "c", exact=True).refuses
    assert facts.more_in_flight("p", 199.0, 100.0, "c", exact=False) is None
    assert not facts.more_in_flight("p", 201.0, 100.0, "c", exact=False).refuses
    assert facts.more_in_flight("p", 201.0, 0.0, "c", exact=True) is None


def test_far_is_twenty_times_either_way():
    assert facts.far_from_predicted("p", "tpot", 1.0, 19.9, "ms") is None
    assert facts.far_from_predicted("p", "tpot", 19.9, 1.0, "ms") is None
    assert facts.far_from_predicted("p", "tpot", 1.0, 20.1, "ms") and facts.far_from_predicted(
        "p", "tpot", 20.1, 1.0, "ms"
    )


def test_the_row_of_an_error_is_named_by_file_and_line(tmp_path):
    (case,) = read_measurements(Path(step(tmp_path)), shipped_catalog()).cases
    assert case.row.place == f"{tmp_path / 'steps.csv'} line 2"
