"""`power_cap` of a case: its times, power and energy are those of the capped points of a plan."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import planner
from catalog.lookup import shipped_catalog
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.answer import estimate, sections
from planner.exit_codes import INVALID

ROOT = Path(__file__).parents[3]
SERVING = {
    "workload": {
        "kind": "serving",
        "architecture": "Qwen3-30B-A3B",
        "lengths": {"input": 2000, "output": 300},
        "precision": ["bf16"],
        "disaggregation": "never",
    },
    "system": "DGX H100",
    "chips": 16,
}
GPT3 = json.loads((ROOT / "examples" / "cases" / "gpt3_a100.json").read_text())


def answer(case: dict, **changes) -> dict:
    found = estimate({**copy.deepcopy(case), **changes})
    assert found.answer is not None, found.reason
    return found.answer


def speed_at(power: float) -> float:
    """Relative speed at a relative power, from the catalog's curves: the mean of those that reach down to half."""
    catalog, speeds = shipped_catalog(), []
    for name in catalog.names("power_curves"):
        record = catalog.get("power_curves", name)
        if record.words("axis") != "power limit":
            continue
        drawn, speed = (np.array(record.series(f"relative_{what}")) for what in ("power", "throughput"))
        if drawn.min() <= 0.5:
            order = np.argsort(drawn)
            speeds.append(min(float(np.interp(power, drawn[order], speed[order])), 1.0))
    return float(np.mean(speeds))


def test_a_training_run_is_slower_and_takes_less_energy():
    plain, capped = answer(GPT3), answer(GPT3, power_cap=0.6)
    systems = GPT3["chips"] // 8
    rated_w = shipped_catalog().get("systems", "DGX A100 80GB").value("power_w")
    assert capped["it_power_w"] == pytest.approx(systems * 0.6 * rated_w)
    s = speed_at(capped["it_power_w"] / plain["it_power_w"])
    assert capped["speed"] == pytest.approx(s, rel=1e-3) and 0.5 < s < 1 and plain["speed"] == 1
    for name in ("step_s", "run_s"):
        assert capped[name] == pytest.approx(plain[name] / capped["speed"])
        assert capped["interval_80"][name] == pytest.approx([b / capped["speed"] for b in plain["interval_80"][name]])
    assert sum(capped["breakdown_s"].values()) == pytest.approx(capped["step_s"])
    assert capped["it_energy_j"] == pytest.approx(capped["it_power_w"] * capped["run_s"])
    assert capped["it_energy_j"] < plain["it_energy_j"]
    assert capped["power_cap"] == 0.6 and plain["power_cap"] is None


@pytest.mark.parametrize("mode", ["never", "always"])
@pytest.mark.parametrize("load", ["max", {"requests_per_s": 5}, {"concurrency": 64}], ids=["max", "rate", "clients"])
def test_a_serving_case_is_stretched_in_all_its_times(mode, load):
    workload = {**SERVING["workload"], "disaggregation": mode}
    found = answer({**SERVING, "workload": workload}, load=load, power_cap=0.4)
    assert 0.5 < found["speed"] < 1
    latency = found["latency_s"]
    assert latency["e2e"]["mean"] == pytest.approx(latency["ttft"]["mean"] + 299 * latency["tpot"]["mean"])
    if load == {"requests_per_s": 5}:
        assert found["requests_per_s"] == pytest.approx(5, rel=1e-6)
    if load == {"concurrency": 64}:
        assert found["requests_per_s"] * latency["e2e"]["mean"] == pytest.approx(64, rel=1e-3)  # Little's law
    fall, waits = found["waterfall"], sum(found["waits_s"].values()) / 299
    assert fall[-1]["cause"].startswith("power cap")
    assert sum(row["added_s"] for row in fall) == pytest.approx(latency["tpot"]["mean"] + waits)
    rated_w = shipped_catalog().get("systems", "DGX H100").value("power_w")
    assert found["it_power_w"] <= 0.4 * rated_w * 2 * (1 + 1e-9)
    assert found["it_power_w"] == pytest.approx(sum(pool["it_power_w"] for pool in found["pools"]))
    assert found["it_energy_j_per_token"] == pytest.approx(found["it_power_w"] / found["tokens_per_s"])


def test_the_estimate_is_the_point_of_a_plan():
    """The capped points that a plan uses, and the estimates of the same layouts under the same cap, state the same figures."""
    spec = json.loads((ROOT / "tests" / "golden" / "small_spec.json").read_text())
    spec["sites"][0] |= {"power_caps": [0.5, 0.4], "electricity_price": "20 USD/kWh"}
    chat, tune = spec["workloads"]
    chat["slo"]["tpot"]["p95"], chat["demand"]["requests_per_s"] = "120 ms", 60
    plan = planner.solve(spec)
    served, trained = (workload["points"][0] for workload in plan["workloads"])
    assert served["power_cap"] and trained["power_cap"]

    pool, alone = served["pools"][0], {"chips": 1, "load": {"requests_per_s": served["capacity"]}}
    found = answer(_case(chat, served, "demand", "origins"), **alone)
    assert found["batch"] == pytest.approx(pool["batch"], rel=1e-6)
    for name, seconds in served["latency_s"].items():
        metric, percentile = name.split(".")
        assert found["latency_s"][metric][percentile] == pytest.approx(seconds, rel=1e-6)
        for bound, stated in zip(found["interval_80"][metric][percentile], served["interval_80"][name], strict=True):
            assert bound is stated is None or bound == pytest.approx(stated, rel=1e-6)
    assert found["mfu"] == pytest.approx(served["mfu"], rel=1e-6)
    idle_w = answer(_case(tune, trained), chips=8)["it_power_w"] - trained["pools"][0]["extra_power_w"]
    assert found["it_power_w"] == pytest.approx(idle_w / 8 + pool["extra_power_w"], rel=1e-6)

    found = answer(_case(tune, trained), chips=8, layout=trained["pools"][0]["layout"])
    for name, value in (("step_s", trained["time_s"]["step"]), ("mfu", trained["mfu"]), ("hfu", trained["hfu"])):
        assert found[name] == pytest.approx(value, rel=1e-9), name
    assert found["interval_80"]["step_s"] == pytest.approx(trained["interval_80"]["step"], rel=1e-9)


def _case(workload: dict, point: dict, *left_out: str) -> dict:
    pool = point["pools"][0]
    asked = {key: value for key, value in workload.items() if key not in left_out} | {"precision": [pool["precision"]]}
    sizes = {"layout": pool["layout"]} if pool["role"] == "serve" else {}
    return {"workload": asked, "system": pool["system"], "power_cap": point["power_cap"], **sizes}


def test_a_cap_above_the_draw_changes_nothing_and_one_below_the_curves_is_refused():
    plain, loose = answer(GPT3), answer(GPT3, power_cap=0.95)
    assert loose["speed"] == 1 and loose["step_s"] == plain["step_s"] and loose["it_power_w"] == plain["it_power_w"]
    with pytest.raises(SpecError, match=r"power_cap.*at least 0.38"):
        estimate({**GPT3, "power_cap": 0.35})
    for wrong in (0.2, 1.0, "70 %"):
        with pytest.raises(SpecError) as error:
            estimate({**GPT3, "power_cap": wrong})
        assert [problem.path for problem in error.value.problems] == ["power_cap"]
    idle = {"defaults/idle_power_fraction/value": {"value": 0.45, "note": "for a test"}}
    found = estimate({**SERVING, "power_cap": 0.4, "overrides": idle})
    assert found.answer is None and "power cap" in found.reason and "40 % of nameplate" in found.reason


def test_text_json_and_layouts_show_the_cap(tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps({**GPT3, "power_cap": 0.6}))
    assert main(["estimate", str(path)]) == 0
    assert "60 % of nameplate" in capsys.readouterr().out
    assert main(["estimate", str(path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["power_cap"] == 0.6 and any(a["path"] == "power_cap" for a in found["assumptions"])
    assert main(["layouts", str(path), "--best", "0"]) == INVALID
    assert "--best: expected at least 1 layout, got 0" in capsys.readouterr().err
    assert main(["layouts", str(path), "--best", "2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["layouts"][0]["step_s"] == found["step_s"]
    served = answer(SERVING, power_cap=0.4)
    assert "40 % of nameplate" in str(sections(served))
    assert "power cap" not in str(sections(answer(SERVING)))
