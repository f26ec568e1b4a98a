"""The replay of a plan: what it states, the command and the library alike, traces, and what it refuses."""

import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.plan import parse_plan
from planner.replay.answer import chart


@pytest.fixture(scope="module")
def stored(small_plan, tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    small_plan.save(path)
    return path


@pytest.fixture(scope="module")
def found(small_plan):
    return planner.replay(small_plan, requests=400)


def test_each_load_states_every_percentile_beside_the_closed_form(found):
    for load in found.document["loads"]:
        rows = {(row["metric"], row["percentile"]): row for row in load["latencies"]}
        assert len(rows) == 12
        for metric in ("ttft", "tpot", "e2e"):
            times = [rows[metric, share]["replayed_s"] for share in ("p50", "p90", "p95", "p99")]
            assert times == sorted(times) and times[0] > 0
        row = rows["ttft", "p95"]
        assert row["difference"] == pytest.approx(row["closed_s"] / row["replayed_s"] - 1)
        assert 0 < load["load"] <= 1 and load["simulated"] == 1 <= load["replicas"]


def test_every_request_is_counted(found):
    for load in found.document["loads"]:
        counts = load["counts"]
        assert counts["arrived"] == counts["ended"] + counts["refused"] and counts["counted"] == 400
        assert 0 <= load["goodput"]["share"] <= 1
        assert {len(values) for values in load["series"].values()} == {120}
        assert all(0 <= share <= 1 for share in load["series"]["cache"])


def test_replicas_share_the_load_of_the_plan(found, small_plan):
    (workload,) = [each for each in small_plan.workloads if each["kind"] == "serving"]
    load, (point,) = found.document["loads"][0], workload["points"]
    active = max(slot["active"][point["id"]] for slot in small_plan.schedule)
    assert load["requests_per_s"] == pytest.approx(active * point["capacity"] / load["replicas"])
    assert load["replicas"] - 1 < active <= load["replicas"] + 1e-6


def test_the_command_prints_what_the_library_returns(capsys, stored, found):
    assert main(["replay", str(stored), "--requests", "400", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.document))
    for form in ("table", "md", "csv"):
        assert main(["replay", str(stored), "--requests", "200", "--format", form]) == 0
        assert "ttft" in capsys.readouterr().out


def test_a_trace_is_replayed_on_its_own_times(small_plan, tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(
        "\n".join(json.dumps({"timestamp": 100 * i, "input_length": 200, "output_length": 20}) for i in range(400))
    )
    (load,) = planner.replay(small_plan, path, replicas=64).document["loads"]
    # ten requests a second on all replicas, evenly spaced: each gets an equal part of them
    assert load["hour"] == "trace" and load["counts"]["arrived"] == 400 and load["simulated"] == load["replicas"]
    assert load["requests_per_s"] * load["replicas"] == pytest.approx(10.0, rel=1e-9)
    assert load["means"]["arrival_scv"]["replayed"] == pytest.approx(0.0, abs=1e-9)
    assert load["means"]["prompt"] == {"replayed": 200.0, "closed": 1000.0}


def test_wrong_options_are_named_at_once(small_plan):
    with pytest.raises(SpecError) as error:
        planner.replay(small_plan, requests=1, seed=-1, router="round", replicas=0)
    assert {each.path for each in error.value.problems} == {"--requests", "--seed", "--router", "--replicas"}


def test_a_plan_without_an_answer_is_refused(small_plan):
    document = json.loads(small_plan.to_json())
    document["objective"]["value"] = None
    with pytest.raises(SpecError, match="plan"):
        planner.replay(parse_plan(json.dumps(document)))


def test_without_simpy_the_extra_is_named(small_plan, monkeypatch):
    monkeypatch.setattr("planner.replay.answer.find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"flopwatt\[replay\]"):
        planner.replay(small_plan)


def test_a_chart_is_as_high_as_its_largest_part():
    assert chart([0.0, 0.0]) == "▁▁" and chart([1.0, 2.0, 4.0])[-1] == "█" and len(chart(range(500))) == 60
