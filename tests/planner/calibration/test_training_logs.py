"""Logs of Megatron-LM and torchtitan become rows of a training file; what they do not say is stated beside them."""

from __future__ import annotations

import json

import pytest

from catalog.lookup import shipped_catalog
from planner.calibration.fit import read_measurements
from planner.calibration.measurements import file_kind, read_rows
from planner.calibration.scores import validate
from planner.calibration.training_cases import MeasuredTraining
from planner.cli.main import main
from planner.errors import SpecError

ARGUMENTS = {
    "world_size": 64, "seq_length": 4096, "tensor_model_parallel_size": 4, "pipeline_model_parallel_size": 2, "context_parallel_size": 1,
    "data_parallel_size": 8, "micro_batch_size": 1, "global_batch_size": 256, "num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "group_query_attention": True, "num_query_groups": 8, "ffn_hidden_size": 14336, "padded_vocab_size": 128256, "num_experts": None,
    "moe_router_topk": 2, "moe_ffn_hidden_size": 14336, "expert_model_parallel_size": 1, "bf16": True, "fp16": False, "fp8": None,
    "use_distributed_optimizer": True, "sequence_parallel": True, "recompute_granularity": "selective", "virtual_pipeline_model_parallel_size": None,
}  # fmt: skip
STEP = (
    "[2026-11-26 10:00:00.000000] iteration {step:8d}/  500000 | consumed samples:        20480 | elapsed time per iteration (ms): {ms:.1f} | "
    "throughput per GPU (TFLOP/s/GPU): {rate:.1f} | learning rate: 1.0E-4 | global batch size: {batch:5d} | lm loss: 2.1E+00 |"
)
TITAN = (
    "[rank0]:[titan] 2026-11-26 10:00:00,000 - root - INFO - \x1b[31mstep: {step:2d}  \x1b[32mloss:  8.1234  \x1b[38;2;180;60;0mgrad_norm:  1.2000  "
    "\x1b[33mmemory: 61.20GiB(77.31%)  \x1b[34mtps: {tps}  \x1b[36mtflops: 380.10  \x1b[35mmfu: 38.43%\x1b[39m"
)
COMMAND = (
    "+ torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_8b --parallelism.tensor_parallel_degree 2 "
    "--parallelism.data_parallel_shard_degree=4 --training.local_batch_size 2 --training.seq_len 8192"
)


def megatron(folder, *, ramp=False, **changes):
    said = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in (ARGUMENTS | changes).items()]
    steps = [STEP.format(step=1, ms=60000.0, rate=20.0, batch=32 if ramp else 256)]
    steps += [STEP.format(step=2 + i, ms=5000.0 + 10 * i, rate=400.0, batch=256) for i in range(5)]
    path = folder / "run.log"
    path.write_text("\n".join(["------------------------ arguments ------------------------", *said, *steps]) + "\n")
    return path


def titan(folder, *head):
    path = folder / "titan.txt"
    lines = [
        *head,
        *(TITAN.format(step=1 + 10 * i, tps=tps) for i, tps in enumerate(("1,012", "7,400", "7,412", "7,420"))),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_log_of_megatron_states_layout_shape_and_steady_steps(tmp_path):
    (row,) = read_rows(megatron(tmp_path), "training", {"chip": "H100"})
    assert row.number("step_time_s") == pytest.approx(5.02), "the first step, which warms up, is left out"
    assert row.number("model_tflops_per_chip") == 400.0
    columns = ("n_chips", "seq_len", "tp", "pp", "dp", "micro_batch", "global_batch_sequences", "layers", "kv_heads")
    assert [row.number(name) for name in columns] == [64, 4096, 4, 2, 8, 1, 256, 32, 8]
    words = ("dtype", "sharding", "recompute", "sequence_parallel", "framework", "chip")
    assert [row.text[name] for name in words] == ["bf16", "zero1", "selective", "yes", "megatron", "H100"]
    assert row.number("topk") is None, "Megatron-LM prints a router for dense networks too"
    (case,) = read_measurements(megatron(tmp_path), shipped_catalog(), {"chip": "H100"}).cases
    assert isinstance(case, MeasuredTraining) and case.step_s == pytest.approx(5.02) and case.chips == 64


def test_only_steps_of_the_last_global_batch_count(tmp_path):
    (row,) = read_rows(megatron(tmp_path, ramp=True), "training", {"chip": "H100"})
    assert row.number("global_batch_sequences") == 256 and row.number("step_time_s") == pytest.approx(5.025)


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({"fp8": "hybrid", "fp8_recipe": "mxfp8"}, {"dtype": "mxfp8"}),
        ({"fp8": "hybrid", "fp8_recipe": "delayed"}, {"dtype": "fp8"}),
        ({"use_distributed_optimizer": False}, {"sharding": "none"}),
        ({"use_megatron_fsdp": True}, {"sharding": "zero3"}),
        ({"recompute_granularity": None}, {"recompute": "none"}),
        ({"multi_latent_attention": True}, {"attention": "mla"}),
        ({"num_experts": 8, "expert_model_parallel_size": 4}, {"n_experts": 8, "topk": 2, "ep": 4}),
    ],
)
def test_arguments_of_megatron_have_their_columns(tmp_path, changes, columns):
    (row,) = read_rows(megatron(tmp_path, **changes), "training", {"chip": "H100"})
    for name, value in columns.items():
        assert (row.text.get(name) if isinstance(value, str) else row.number(name)) == value


def test_a_log_of_torchtitan_has_rates_per_device(tmp_path):
    path = titan(tmp_path, COMMAND)
    assert file_kind(path) == "training"
    (case,) = read_measurements(path, shipped_catalog(), {"chip": "H100", "model": "Llama-3.1-8B"}).cases
    assert isinstance(case, MeasuredTraining)
    row = case.row
    assert [row.number(name) for name in ("tp", "dp", "n_chips", "seq_len", "global_batch_sequences")] == [
        2,
        4,
        8,
        8192,
        8,
    ]
    assert row.number("tokens_per_s_per_chip") == 7412 and row.text["sharding"] == "zero3"
    assert case.step_s == pytest.approx(8 * 8192 / (7412 * 8))
    assert row.number("peak_memory_GB") == pytest.approx(65.71, abs=0.01)


def test_what_a_log_lacks_is_stated_beside_it(tmp_path):
    path = titan(tmp_path)
    stated = {
        "chip": "H100",
        "model": "Llama-3.1-8B",
        "n_chips": "8",
        "seq_len": "8192",
        "global_batch_sequences": "8",
        "tp": "1",
    }
    (case,) = read_measurements(path, shipped_catalog(), stated).cases
    assert case.row.number("n_chips") == 8
    without = read_measurements(path, shipped_catalog(), {"chip": "H100", "model": "Llama-3.1-8B"})
    assert not without.cases and "n_chips" in str(without.refused)
    assert validate(path, shipped_catalog(), None, stated).predicted == 1


def test_the_command_reads_logs(tmp_path, capsys):
    assert main(["validate", str(megatron(tmp_path)), "--set", "chip=H100"]) == 0
    assert "1 rows, 1 predicted" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"epoch 1 loss 2.0\n", b"\xff\xfe\x00", b"a,b\n1,2\n"])
def test_other_logs_are_refused(tmp_path, content):
    path = tmp_path / "other.log"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=r"other\.log: (holds no training step as Megatron-LM|is not text)"):
        read_rows(path)


def mlperf(folder, *events):
    """Write a log of MLPerf Training: settings, then `events` as (key, value, seconds, metadata)."""
    said = [("submission_org", "Ours"), ("submission_benchmark", "llama31_8b"), ("global_batch_size", 32), ("max_sequence_length", 8192),
            ("tensor_parallelism", 2), ("pipeline_parallelism", 1), ("number_of_ranks", 8)]  # fmt: skip
    all_of = [*((key, value, 0.0, {}) for key, value in said), *events]
    lines = [
        f":::MLLOG {json.dumps({'time_ms': 1000.0 * s, 'event_type': 'POINT_IN_TIME', 'key': key, 'value': value, 'metadata': told})}"
        for key, value, s, told in all_of
    ]
    path = folder / "result_0.txt"
    path.write_text("\n".join(["0: started", *lines, ":::MLLOG {broken"]) + "\n")
    return path


def test_a_log_of_mlperf_counts_samples_between_blocks_without_evaluation(tmp_path):
    blocks = [
        (key, "", s, {"samples_count": n})
        for key, s, n in (("block_start", 100, 0), ("block_stop", 140, 320), ("block_start", 190, 320), ("block_stop", 222, 640),
                          ("block_start", 300, 640), ("block_stop", 332, 960))
    ]  # fmt: skip
    (row,) = read_rows(mlperf(tmp_path, *blocks), "training", {"chip": "H100", "model": "Llama-3.1-8B"})
    assert row.number("step_time_s") == pytest.approx(32 / 320 * 32.0), "the first block, which warms up, is left out"
    columns = ("n_chips", "seq_len", "tp", "pp", "global_batch_sequences")
    assert [row.number(name) for name in columns] == [8, 8192, 2, 1, 32]
    assert row.text["source"] == "MLPerf Training, Ours"


def test_a_log_of_mlperf_with_throughput_states_the_step(tmp_path):
    stated = [("tracked_stats", {"throughput": rate}, 10.0 * i, {}) for i, rate in enumerate((4.0, 10.0, 10.0))]
    (row,) = read_rows(mlperf(tmp_path, *stated), "training", {"chip": "H100"})
    assert row.number("step_time_s") == pytest.approx(3.2)


def test_a_log_of_mlperf_without_steps_is_refused(tmp_path):
    with pytest.raises(SpecError, match="no"):
        read_rows(mlperf(tmp_path), "training", {"chip": "H100"})
