"""Commands of engines: read again by `init`, they give the deployment back."""

from __future__ import annotations

import pytest

from planner.ways_in.launch import SGLANG, VLLM, read_launch
from planner.ways_out.commands import COMMANDS, PORT
from planner.ways_out.deployed import deployed
from planner.ways_out.formats import export

LAYOUTS = ({"tp": 1, "pp": 1, "dp": 1, "ep": 1}, {"tp": 4, "pp": 2, "dp": 1, "ep": 1}, {"tp": 2, "pp": 1, "dp": 8, "ep": 16}, {"tp": 8, "pp": 4, "dp": 2, "ep": 1})  # fmt: skip
SPECS = (
    {"engine": "vllm"},
    {"engine": "vllm", "memory_utilisation": 0.85, "eager": True},
    {"engine": "vllm", "speculation": {"draft_tokens": 3, "acceptance": 0.7}, "routing": {"redundant_experts": 4}},
    {"engine": "sglang", "memory_utilisation": 0.8, "speculation": {"draft_tokens": 2, "acceptance": 0.7}},
    {"engine": "vllm", "speculation": {"draft_tokens": 4, "acceptance": 0.7, "draft_share": 0.1}},
)
FORMATS = (("fp8", "fp8"), ("bf16", "bf16"), ("mxfp4", "fp8"), ("nvfp4", "bf16"), ("fp16", "bf16"))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("formats", FORMATS, ids="/".join)
def test_a_command_read_again_gives_the_deployment_back(small_served, layout, spec, formats):
    precision, cache = formats
    served = small_served(spec, {"layout": layout, "precision": precision, "kv_precision": cache})
    pool = served.pools[0]
    engine = SGLANG if spec["engine"] == "sglang" else VLLM
    found = read_launch(COMMANDS[engine](served, pool, PORT).script, engine)
    chips = layout["tp"] * layout["pp"] * layout["dp"]
    assert (found.model, found.chips, found.engine) == (served.model, chips, engine)
    wanted = {"engine": spec["engine"], "precision": [precision], "kv_precision": [cache]}
    wanted |= {key: spec[key] for key in ("memory_utilisation", "eager") if key in spec}
    if served.memory_share is not None:
        wanted["memory_utilisation"] = served.memory_share
    if "speculation" in spec:
        wanted["speculation"] = {"draft_tokens": spec["speculation"]["draft_tokens"], "acceptance": 0.7}
    assert found.workload == wanted


def test_every_script_of_a_plan_read_from_its_file_gives_the_pool_back(plan, tmp_path):
    found = deployed(plan)
    for engine in (VLLM, SGLANG):
        files = {file.path: file.text for file in export(plan, [engine]).files}
        for served in found.served:
            for pool in served.pools:
                path = tmp_path / "launch.sh"
                path.write_text(files[f"{engine}/{served.name}-{pool.role}.sh"], encoding="utf-8")
                launch = read_launch(str(path), engine)
                assert (launch.model, launch.chips) == (served.model, pool.chips)
                assert launch.workload["precision"] == [pool.precision]
                assert launch.workload["kv_precision"] == [pool.kv_precision]


def test_the_vllm_ranks_of_a_wide_worker_are_counted_on_each_host(mixed):
    wide = [pool for served in mixed.served for pool in served.pools if pool.hosts > 1]
    assert {(pool.dp, pool.hosts, pool.ranks_per_host) for pool in wide} == {(72, 72, 1), (72, 18, 4), (36, 9, 4)}
    for served in mixed.served:
        for pool in served.pools:
            assert pool.hosts * pool.chips_per_host == pool.chips
            flags = COMMANDS[VLLM](served, pool, PORT).flags
            assert flags.get("data-parallel-size-local", 0) == (pool.ranks_per_host if pool.hosts > 1 else 0)


def test_tensor_ranks_over_several_hosts_have_one_that_answers(small_served):
    served = small_served({}, {"layout": {"tp": 8, "pp": 4, "dp": 1, "ep": 1}})
    command = COMMANDS[VLLM](served, served.pools[0], PORT)
    assert command.flags["nnodes"] == 4 and command.after == ('"$@"',)
    assert any("--headless" in line for line in command.before)


def test_batches_are_of_a_rank_with_vllm_and_of_the_worker_with_sglang(small_served):
    served = small_served({}, {"layout": {"tp": 1, "pp": 1, "dp": 8, "ep": 8}, "batch": 100})
    assert COMMANDS[VLLM](served, served.pools[0], PORT).flags["max-num-seqs"] == 13
    assert COMMANDS[SGLANG](served, served.pools[0], PORT).flags["max-running-requests"] == 100


def test_formats_without_a_flag_are_told(small_served, small_plan):
    served = small_served({}, {"precision": "int4"})
    assert "quantization" not in COMMANDS[VLLM](served, served.pools[0], PORT).flags
    document = {**small_plan.document}
    point = {**document["workloads"][0]["points"][0]}
    point["pools"] = [{**point["pools"][0], "precision": "int4"}]
    document["workloads"] = [{**document["workloads"][0], "points": [point]}]
    text = next(file.text for file in export(type(small_plan).of(document), ["vllm"]).files)
    assert "weights in int4" in text


@pytest.mark.parametrize(("engine", "flag"), [(VLLM, "mm-encoder-only"), (SGLANG, "encoder-only")])
def test_encoders_apart_are_told(small_plan, engine, flag):
    document = {**small_plan.document}
    point, row = {**document["workloads"][0]["points"][0]}, {**small_plan.deployments[0]}
    point["pools"] = [*point["pools"], {**point["pools"][0], "role": "encode"}]
    row["pools"] = [*row["pools"], {**row["pools"][0], "role": "encode"}]
    document |= {"workloads": [{**document["workloads"][0], "points": [point]}], "deployments": [row]}
    files = {file.path: file.text for file in export(type(small_plan).of(document), [engine]).files}
    encoder = next(text for path, text in files.items() if path.endswith("-encode.sh"))
    assert f"--{flag}" in encoder and "max-num-seqs" not in encoder and "max-running" not in encoder
    assert len(files) == 2 and all("# encoders run apart" in text for text in files.values())
