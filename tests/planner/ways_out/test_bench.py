"""The load that the script of a benchmark sends, by a stand-in for the tool that keeps its arguments."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from planner.spec.workloads import Serving
from planner.ways_out.bench import bench_files, not_sent, script
from planner.ways_out.deployed import deployed


def sent(text: str, folder, **variables: str) -> list[dict[str, str]]:
    """Run a script and return the flags of each call."""
    tool, log = folder / "vllm", folder / "log"
    tool.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$*" >> {log}\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **variables}
    subprocess.run(["bash"], input=text, text=True, check=True, env=environment)
    calls = []
    for line in log.read_text().splitlines():
        words = [part.partition(" ") for part in line.split(" --")[1:]]
        calls.append({name: value for name, _, value in words})
    return calls


def peaks(plan, served) -> list[float]:
    """Compute the planned requests per second of the busiest span by hour."""
    slots = [slot for slot in plan.schedule if slot["site"] == served.row["site"]]
    rate = {window: [slot["active"].get(served.point["id"], 0.0) * served.point["capacity"] for slot in slots if slot["window"] == window] for window in {slot["window"] for slot in slots}}  # fmt: skip
    return max(rate.values(), key=max)


def test_the_busiest_hour_of_the_whole_deployment_is_sent(plan, tmp_path):
    found = deployed(plan)
    served = found.served[0]
    (call,) = sent(script(found, served), tmp_path)
    peak = max(peaks(plan, served))
    assert float(call["request-rate"]) == pytest.approx(peak, rel=1e-4)
    assert int(call["num-prompts"]) == pytest.approx(300 * peak, rel=1e-3)
    assert (call["random-input-len"], call["random-output-len"]) == (f"{served.spec.lengths.input}", f"{served.spec.lengths.output}")  # fmt: skip
    assert call["burstiness"] == "1" and call["goodput"] == "ttft:2000 tpot:60"


def test_replicas_take_their_share_of_every_hour(mixed_plan, mixed, tmp_path):
    served = mixed.served[0]
    calls = sent(script(mixed, served), tmp_path, REPLICAS="2", HOURS="all", RUN_S="10")
    rates = [rate for rate in peaks(mixed_plan, served) if rate > 0]
    share = 2 / served.row["replicas"]
    assert [float(call["request-rate"]) for call in calls] == pytest.approx([rate * share for rate in rates], rel=1e-4)


def changed(found, **keys):
    served = found.served[0]
    document = {**found.plan["spec"]["workloads"][0], **keys}
    return replace(served, spec=Serving.model_validate(document))


def test_a_stated_hit_rate_is_reproduced_by_prefixes_that_are_missed_once(small_plan, tmp_path):
    found = deployed(small_plan)
    served = changed(found, cache={"prefix_tokens": 600, "hit_rate": 0.75}, arrival_cv=2.0)
    (call,) = sent(script(found, served), tmp_path)
    assert int(call["prefix-repetition-num-prefixes"]) == pytest.approx(int(call["num-prompts"]) * 0.25, abs=1)
    assert (call["prefix-repetition-prefix-len"], call["prefix-repetition-suffix-len"]) == ("600", "400")
    assert call["burstiness"] == "0.25"  # a coefficient of variation of 2 is a gamma law of the shape 1/4


@pytest.mark.parametrize(
    ("variation", "ratio"), [(0.0, 0.0), (0.3, 0.5196), (1.0, 0.99)]
)  # an even distribution of the half-width r has the coefficient of variation r / √3
def test_lengths_vary_as_far_as_an_even_distribution_can(small_plan, tmp_path, variation, ratio):
    found = deployed(small_plan)
    lengths = {"input": 1000, "output": 250, "input_cv": variation, "output_cv": variation}
    text = script(found, changed(found, lengths=lengths))
    (call,) = sent(text, tmp_path)
    assert float(call["random-range-ratio"]) == pytest.approx(ratio, abs=1e-4)
    assert ("# lengths:" in text) == (variation == 1.0)


@pytest.mark.parametrize("keys", [{"session": True}, {"media": [True]}], ids=str)
def test_sessions_and_media_are_left_out(small_plan, keys):
    found = deployed(small_plan)
    served = replace(found.served[0], spec=found.served[0].spec.model_copy(update=keys))
    turned = replace(found, served=(served,))
    assert len(not_sent(turned)) == 1 and list(bench_files(turned)) == []
    assert not_sent(found) == []
