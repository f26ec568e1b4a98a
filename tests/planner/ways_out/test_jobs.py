"""Arguments of training jobs: ranks, steps and batches are those of the plan."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from catalog.lookup import Catalog
from planner.ways_out.deployed import deployed
from planner.ways_out.formats import export
from planner.ways_out.jobs import megatron_flags, torchtitan_flags


def flags(lines: list[str]) -> dict[str, str]:
    return {name.lstrip("-"): value for name, _, value in (line.partition(" ") for line in lines)}


@pytest.fixture
def job(plan):
    return deployed(plan).jobs[0]


def test_ranks_are_the_chips_of_the_job(plan, job):
    system = next(row for row in plan.fleet if row["system"] == job.pool["system"])
    assert system["count"] >= job.pool["systems_per_replica"] - job.pool.get("spares", 0)
    titan = flags(torchtitan_flags(job))
    degrees = [int(titan[f"parallelism.{name}_degree"]) for name in ("data_parallel_replicate", "data_parallel_shard", "tensor_parallel", "pipeline_parallel", "context_parallel")]  # fmt: skip
    product = 1
    for degree in degrees:
        product *= degree
    assert product == job.chips
    megatron = flags(megatron_flags(job))
    model = [int(megatron[f"{name}-parallel-size"]) for name in ("tensor-model", "pipeline-model", "context")]
    assert job.chips == model[0] * model[1] * model[2] * job.pool["layout"]["dp"]
    text = next(file.text for file in export(plan, ["slurm"]).files)
    nodes, each = (int(re.search(rf"--{name}=(\d+)", text)[1]) for name in ("nodes", "gpus-per-node"))
    assert nodes * each == job.chips and f"--nproc_per_node {each}" in text


def test_steps_and_batches_add_up_to_the_tokens(job):
    for found, names in (
        (flags(megatron_flags(job)), ("train-iters", "global-batch-size", "seq-length")),
        (flags(torchtitan_flags(job)), ("training.steps", "training.global_batch_size", "training.seq_len")),
    ):
        steps, batch, sequence = (int(found[name]) for name in names)
        assert 0 <= steps * batch * sequence - job.spec.tokens < batch * sequence


def test_layers_that_do_not_divide_are_laid_out_one_by_one(job):
    for pp, vpp in ((3, 1), (6, 1), (5, 2), (2, 2), (1, 1)):
        turned = replace(job, pool={**job.pool, "layout": {**job.pool["layout"], "pp": pp, "vpp": vpp}})
        found, layers = flags(megatron_flags(turned)), round(job.record.value("layers"))
        if layers % (pp * vpp):
            layout = found["pipeline-model-parallel-layout"]
            assert layout[0] == "E" and layout[-1] == "L"
            counts = [int(count) for count in re.findall(r"t\*(\d+)", layout)]
            assert sum(counts) == layers and len(counts) == pp * vpp and max(counts) - min(counts) == 1
        elif vpp > 1:
            assert int(found["num-layers-per-virtual-pipeline-stage"]) * pp * vpp == layers
        else:
            assert "num-layers-per-virtual-pipeline-stage" not in found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": 2, "pp": 2}, "v-half"),
        ({"schedule": 1, "pp": 2}, "zero-bubble"),
        ({"offload": 1}, "optimizer"),
        ({"recompute": 2}, "full"),
    ],
)
def test_what_no_argument_holds_is_told(small_plan, change, words):
    document = {**small_plan.document}
    point = {**document["workloads"][1]["points"][0]}
    pool = point["pools"][0]
    point["pools"] = [{**pool, "layout": {**pool["layout"], **change}}]
    document["workloads"] = [document["workloads"][0], {**document["workloads"][1], "points": [point]}]
    text = next(file.text for file in export(type(small_plan).of(document), ["torchtitan"]).files)
    assert words in "\n".join(line for line in text.splitlines() if line.startswith("# "))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"schedule": 0, "vpp": 1}, "1F1B"),
        ({"schedule": 0, "vpp": 2}, "Interleaved1F1B"),
        ({"schedule": 1, "vpp": 2}, "InterleavedZeroBubble"),
        ({"schedule": 3, "vpp": 1}, "DualPipeV"),
    ],
)
def test_schedules_that_torchtitan_has_are_named(job, change, name):
    turned = replace(job, pool={**job.pool, "layout": {**job.pool["layout"], "pp": 2, **change}})
    assert flags(torchtitan_flags(turned))["parallelism.pipeline_parallel_schedule"] == name


def test_a_mixture_of_experts_with_latent_attention_keeps_its_shape(job):
    found = flags(megatron_flags(replace(job, record=Catalog.load().get("architectures", "DeepSeek-V3"))))
    # config.json of deepseek-ai/DeepSeek-V3: 61 layers, the first 3 dense; 256 experts of 2,048, 8 of them and a shared one for a token
    wanted = {"num-layers": "61", "num-experts": "256", "moe-router-topk": "8", "moe-ffn-hidden-size": "2048", "kv-lora-rank": "512", "q-lora-rank": "1536", "moe-shared-expert-intermediate-size": "2048", "moe-layer-freq": "([0]*3+[1]*58)"}  # fmt: skip
    assert wanted.items() <= found.items()
    assert "multi-latent-attention" in found and "num-query-groups" not in found
