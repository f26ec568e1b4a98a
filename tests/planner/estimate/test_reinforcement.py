"""Cases of reinforcement learning: `flopwatt estimate` and `flopwatt layouts`."""

from __future__ import annotations

import copy
import json

import pytest

from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.answer import estimate, sections
from planner.estimate.case import resolve_case
from planner.estimate.reinforcement import ranked_splits
from planner.exit_codes import INFEASIBLE

CASE = {
    "workload": {
        "kind": "reinforcement",
        "architecture": "Llama-3.1-8B",
        "prompts": 64,
        "samples": 8,
        "mini_batches": 2,
        "lengths": {"prompt": 200, "response": 800, "limit": 4096, "cv": 1.0, "endless": 0.0},
    },
    "system": "DGX H100",
    "chips": 16,
}


def case(**changed):
    """Build a case with other fields of its workload, or of the case where these are its own."""
    found = copy.deepcopy(CASE)
    for key, value in changed.items():
        (found if key in ("chips", "layout", "rollout_chips", "power_cap", "load") else found["workload"])[key] = value
    return found


def answer(**changed):
    found = estimate(case(**changed))
    assert found.answer is not None, found.reason
    return found.answer


def test_parts_make_the_iteration_and_rates_follow():
    found = answer(ways=["synchronous"])
    assert sum(found["parts_s"].values()) == pytest.approx(found["iteration_s"])
    assert found["tokens_per_iteration"] == 64 * 8 * 1000
    assert found["tokens_per_s"] == pytest.approx(found["goodput"] * 512_000 / found["iteration_s"])
    assert found["iterations_per_hour"] == pytest.approx(found["tokens_per_s"] / 512_000 * 3600)
    assert {pool["role"]: pool["chips"] for pool in found["pools"]} == {"rollout": 8, "update": 8}
    low, high = found["interval_80"]["iteration_s"]
    assert low < found["iteration_s"] < high
    assert [name for name, _ in sections(found)][:3] == ["Iteration", "Pools", "Where the iteration goes"]


def test_the_best_way_is_the_best_of_each_way_alone():
    alone = {
        way: answer(ways=[way])["iteration_s"] for way in ("colocated", "synchronous", "asynchronous", "streaming")
    }
    best = answer()
    assert best["iteration_s"] == min(alone.values()) == alone[best["way"]]
    times = [row["iteration_s"] for row in best["splits"]]
    assert times == sorted(times) and times[0] == best["iteration_s"] and len(times) == 3


def test_no_staleness_is_synchronous():
    ahead, in_turns = (answer(ways=[way], staleness=0) for way in ("asynchronous", "synchronous"))
    assert ahead["iteration_s"] == pytest.approx(in_turns["iteration_s"])


@pytest.mark.parametrize("key", ["prompts", "samples"])
def test_more_samples_are_never_cheaper(key):
    for way in ("colocated", "asynchronous"):
        few, many = (answer(ways=[way], rollout_chips=None if way == "colocated" else 8, **{key: n}) for n in (16, 64))
        assert few["iteration_s"] <= many["iteration_s"]


def test_a_rule_costs_nothing_and_models_that_score_do():
    rule = answer(ways=["colocated"], reference=False)
    scored = answer(ways=["colocated"], reference=False, reward="Llama-3.1-8B")
    referred = answer(ways=["colocated"])
    critic = answer(ways=["colocated"], algorithm="ppo", reference=False)
    assert rule["parts_s"]["scoring"] < scored["parts_s"]["scoring"]
    assert rule["parts_s"]["scoring"] < referred["parts_s"]["scoring"]
    assert critic["parts_s"]["update"] > rule["parts_s"]["update"]
    assert any(
        row["path"] == "workload.lengths.endless"
        for row in answer(lengths={"prompt": 200, "response": 800, "limit": 4096})["assumptions"]
    )


def test_dpo_has_no_rollout():
    found = answer(algorithm="dpo", samples=2)
    assert found["parts_s"]["generation"] == 0 and [pool["role"] for pool in found["pools"]] == ["update"]
    assert found["iteration_s"] == pytest.approx(sum(found["parts_s"][name] for name in ("scoring", "update", "host")))


def test_tools_make_rollouts_wait():
    plain = answer(ways=["colocated"])
    tools = {"calls": 4, "think": "1 s", "service": "2 s", "environments": 64, "answer": 100}
    busy = answer(ways=["colocated"], tools=tools)
    assert busy["iteration_s"] > plain["iteration_s"] + 4 * 3
    assert 0 < busy["environment_load"] <= 1


def test_a_stated_split_and_layout_are_kept():
    found = answer(ways=["synchronous"], rollout_chips=8, layout={"dp": 8, "micro_batch": 4, "zero": 3})
    assert found["pools"][1]["layout"]["dp"] == 8 and found["pools"][1]["layout"]["zero"] == 3
    assert found["iteration_s"] >= answer(ways=["synchronous"], rollout_chips=8)["iteration_s"]


def test_a_stated_layout_that_does_not_fit_is_refused_rather_than_replaced():
    stated = case(ways=["synchronous"], architecture="Qwen3-32B", rollout_chips=8, layout={"dp": 8, "zero": 1})
    with pytest.raises(SpecError) as caught:
        estimate(stated)
    (problem,) = caught.value.problems
    assert problem.path == "layout" and "of the 85 GB of a chip" in problem.message


def test_splits_of_several_systems_are_whole_systems():
    for split in ranked_splits(resolve_case(case(chips=64))):
        assert split.update.chips % 8 == 0


@pytest.mark.parametrize(
    ("changed", "path", "words"),
    [
        ({"critic": "Llama-3.1-8B"}, "workload", "ppo"),
        ({"algorithm": "dpo"}, "workload", "2 responses"),
        ({"mini_batches": 7}, "workload", "must divide"),
        ({"lengths": {"prompt": 10, "response": 500, "limit": 400}}, "workload.lengths.limit", "500 tokens"),
        ({"reward": "Llama-9"}, "workload.reward", "unknown architecture"),
        ({"rollout_chips": 16}, "rollout_chips", "fewer than the 16 chips"),
        ({"layout": {"dp": 3}}, "layout", "3 chips"),
        ({"layout": {"dp": 0}}, "layout.dp", "at least 1"),
        ({"layout": {"vpp": 0, "dp": 16}}, "layout.vpp", "at least 1"),
        ({"layout": {"zero": 7}}, "layout.zero", "at most 3"),
        ({"layout": {"offload": 65536}}, "layout.offload", "at most"),
        ({"layout": {"dpp": 4}}, "layout.dpp", "unknown size"),
        ({"power_cap": 0.5}, "power_cap", "reinforcement"),
        ({"load": "max"}, "load", "serving"),
        ({"precision": ["fp4"]}, "workload.precision", "has none of"),
        ({"algorithm": "rl"}, "workload.algorithm", "grpo"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_cases_are_refused_in_place(changed, path, words):
    with pytest.raises(SpecError) as error:
        estimate(case(**changed))
    assert any(p.path.startswith(path) and words in p.message for p in error.value.problems), error.value.problems


def test_another_kind_takes_no_rollout_chips():
    training = {"name": "run", "kind": "training", "architecture": "Llama-3.1-8B", "tokens": "1T", "deadline": "30 d"}
    with pytest.raises(SpecError, match="reinforcement"):
        estimate({"workload": training, "system": "DGX H100", "chips": 16, "rollout_chips": 8})


def test_layouts_rank_the_splits(tmp_path, capsys):
    file = tmp_path / "case.json"
    file.write_text(json.dumps(CASE))
    assert main(["layouts", str(file), "--best", "2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["splits"]) == 2 <= found["fitting"] and found["splits"][0]["why"] == "fastest"
    assert main(["layouts", str(file)]) == 0
    assert "rollout : update" in capsys.readouterr().out


def test_what_fits_nowhere_is_said(tmp_path, capsys):
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case(architecture="DeepSeek-V3", chips=8)))
    assert main(["estimate", str(file)]) == INFEASIBLE
    assert "no split of 8 chips fits" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["asynchronous", "colocated", "streaming", "synchronous"])
def test_twice_the_chips_are_never_slower(way):
    few, many = (answer(ways=[way], chips=chips)["iteration_s"] for chips in (16, 32))
    assert many <= few
