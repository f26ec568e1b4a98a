"""Write training jobs as arguments of Megatron-LM and of torchtitan, and as a script of Slurm that runs either."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping

from catalog.records import Record
from models.training.layouts import OFFLOAD, RECOMPUTE
from models.training.pipeline import DUALPIPE, ONE_F_ONE_B, SCHEDULES, ZERO_BUBBLE
from planner.messages import Message
from planner.ways_out.deployed import Deployed, Job
from planner.ways_out.files import File
from planner.ways_out.heads import commented, job_lines

MEGATRON, TORCHTITAN, SLURM = "Megatron-LM of 2026-08", "torchtitan 0.3.0", "Slurm"
SHAPE = {
    "layers": "num-layers",
    "hidden": "hidden-size",
    "heads": "num-attention-heads",
    "kv_heads": "num-query-groups",
    "head_dim": "kv-channels",
    "ffn": "ffn-hidden-size",
    "experts": "num-experts",
    "topk": "moe-router-topk",
    "expert_ffn": "moe-ffn-hidden-size",
    "q_lora_rank": "q-lora-rank",
    "kv_lora_rank": "kv-lora-rank",
    "qk_nope_dim": "qk-head-dim",
    "qk_rope_dim": "qk-pos-emb-head-dim",
    "v_head_dim": "v-head-dim",
}
"""Figure of an architecture -> flag of Megatron-LM."""
PRECISIONS = {
    "bf16": ("--bf16",),
    "fp16": ("--fp16",),
    "fp8": ("--bf16", "--fp8-format hybrid"),
    "mxfp8": ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
}
"""Recipe of the matrix products -> flags of Megatron-LM."""
RENDEZVOUS = 29500


def megatron_files(deployed: Deployed) -> Iterable[File]:
    """Write for each job a file that sets MEGATRON_ARGS."""
    for job in deployed.jobs:
        lines = [*job_lines(deployed, job, MEGATRON), *_megatron_remarks(job)]
        yield File(f"{job.name}.sh", commented(lines) + _array("MEGATRON_ARGS", megatron_flags(job)))


def torchtitan_files(deployed: Deployed) -> Iterable[File]:
    """Write for each job a file that sets TORCHTITAN_ARGS."""
    for job in deployed.jobs:
        lines = [*job_lines(deployed, job, TORCHTITAN), *_titan_remarks(job)]
        yield File(f"{job.name}.sh", commented(lines) + _array("TORCHTITAN_ARGS", torchtitan_flags(job)))


def slurm_files(deployed: Deployed) -> Iterable[File]:
    """Write a script of Slurm for each job; FRAMEWORK=torchtitan runs it by torchtitan in place of Megatron-LM."""
    for job in deployed.jobs:
        lines = [*job_lines(deployed, job, f"{SLURM}; {MEGATRON}; {TORCHTITAN}"), *_megatron_remarks(job)]
        yield File(f"{job.name}.sbatch", slurm_script(job, lines))


def megatron_flags(job: Job) -> list[str]:
    """List the arguments of Megatron-LM: shape, layout, batches, precision, checkpoints."""
    layout, spec = job.layout, job.spec
    flags = _shape(job.record)
    for degree, flag in (
        ("tp", "tensor-model-parallel-size"),
        ("pp", "pipeline-model-parallel-size"),
        ("cp", "context-parallel-size"),
        ("ep", "expert-model-parallel-size"),
    ):
        flags.append(f"--{flag} {layout[degree]}")
    if layout["ep"] > 1:
        flags += ["--expert-tensor-parallel-size 1", "--moe-token-dispatcher-type alltoall"]
    flags += _pipeline(job)
    flags += ["--sequence-parallel"] if layout["sequence_parallel"] else []
    flags += {0: [], 1: ["--use-distributed-optimizer"]}.get(layout["zero"], ["--use-megatron-fsdp"])
    flags += ["--overlap-grad-reduce"] + (["--overlap-param-gather"] if layout["zero"] else [])
    if layout["recompute"]:
        flags.append(f"--recompute-granularity {RECOMPUTE[layout['recompute']]}")
        flags += ["--recompute-method uniform", "--recompute-num-layers 1"] if layout["recompute"] == 2 else []
    flags += PRECISIONS.get(job.pool["precision"], PRECISIONS["bf16"])
    flags += [f"--micro-batch-size {layout['micro_batch']}", f"--global-batch-size {_sequences(job)}"]
    flags += [f"--seq-length {spec.sequence_tokens}", f"--max-position-embeddings {spec.sequence_tokens}"]
    flags += [f"--train-iters {_steps(job)}", f"--save-interval {_save_steps(job)}"]
    return [*flags, "--log-throughput"]


def _shape(record: Record) -> list[str]:
    """State the shape of an architecture."""
    attention = record.words("attention")
    unused = ("kv_heads", "head_dim") if attention == "mla" else ()
    flags = [
        f"--{flag} {record.value(name):.0f}" for name, flag in SHAPE.items() if record.get(name) and name not in unused
    ]
    flags += {
        "gqa": ["--group-query-attention"],
        "mqa": ["--group-query-attention"],
        "mla": ["--multi-latent-attention"],
    }.get(attention, [])
    if record.words("gated") == "true":
        flags.append("--swiglu")
    if record.words("tied") == "false":
        flags.append("--untie-embeddings-and-output-weights")
    if not record.get("experts"):
        return flags
    if dense := _count(record, "dense_layers"):
        flags.append(f"--moe-layer-freq ([0]*{dense}+[1]*{_count(record, 'layers') - dense})")
    if shared := _count(record, "shared_experts"):
        width = _count(record, "shared_ffn") or shared * _count(record, "expert_ffn")
        flags.append(f"--moe-shared-expert-intermediate-size {width}")
    return flags


def _count(record: Record, figure: str) -> int:
    found = record.get(figure)
    return 0 if found is None else round(found.number)


def torchtitan_flags(job: Job) -> list[str]:
    """List the arguments of torchtitan: layout, batches, steps; the architecture is chosen by --module and --config."""
    layout = job.layout
    shard = layout["dp"] if layout["zero"] else 1
    sequences = _sequences(job) // layout["dp"]
    local = layout["micro_batch"] if layout["pp"] == 1 else sequences
    return [
        f"--parallelism.data_parallel_replicate_degree {layout['dp'] // shard}",
        f"--parallelism.data_parallel_shard_degree {shard}",
        f"--parallelism.tensor_parallel_degree {layout['tp']}",
        f"--parallelism.pipeline_parallel_degree {layout['pp']}",
        *(
            [f"--parallelism.pipeline_parallel_schedule {_titan_schedule(layout) or '1F1B'}"]
            if layout["pp"] > 1
            else []
        ),
        f"--parallelism.context_parallel_degree {layout['cp']}",
        f"--parallelism.expert_parallel_degree {layout['ep']}",
        f"--training.local_batch_size {local}",
        f"--training.global_batch_size {_sequences(job)}",
        f"--training.seq_len {job.spec.sequence_tokens}",
        f"--training.steps {_steps(job)}",
    ]


def _titan_schedule(layout: Mapping[str, int]) -> str:
    """Return the name of a pipeline schedule in torchtitan; an empty text where it has none."""
    if layout["schedule"] == ONE_F_ONE_B:
        return "Interleaved1F1B" if layout["vpp"] > 1 else "1F1B"
    if layout["schedule"] == ZERO_BUBBLE and layout["vpp"] > 1:
        return "InterleavedZeroBubble"
    return "DualPipeV" if layout["schedule"] == DUALPIPE else ""


def slurm_script(job: Job, lines: list[str]) -> str:
    """Write a script that starts one launcher on each host, and the run by it."""
    each = next(count for count in range(min(job.chips, job.host_chips), 0, -1) if job.chips % count == 0)
    hosts = job.chips // each
    minutes = math.ceil((job.spec.deadline - job.spec.start) / 60.0)
    return f"""#!/usr/bin/env bash
#SBATCH --job-name={job.name}
#SBATCH --nodes={hosts}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={each}
#SBATCH --time={minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00
#SBATCH --exclusive
{commented(lines)}set -euo pipefail
{_array("MEGATRON_ARGS", megatron_flags(job))}{_array("TORCHTITAN_ARGS", torchtitan_flags(job))}head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
launch=(torchrun --nnodes "$SLURM_NNODES" --nproc_per_node {each} --rdzv_id "$SLURM_JOB_ID" --rdzv_backend c10d --rdzv_endpoint "$head:{RENDEZVOUS}")
if [ "${{FRAMEWORK:-megatron}}" = torchtitan ]; then
  srun "${{launch[@]}}" -m torchtitan.train --module "${{MODULE:?}}" --config "${{CONFIG:?}}" "${{TORCHTITAN_ARGS[@]}}"
else
  srun "${{launch[@]}}" "${{PRETRAIN:-pretrain_gpt.py}}" "${{MEGATRON_ARGS[@]}}" ${{DATA_ARGS:-}}
fi
"""


def _array(name: str, flags: list[str]) -> str:
    """Write flags as an array of bash, one on a line."""
    lines = "".join(f"  {shlex.join(flag.split())}\n" for flag in flags)
    return f"{name}=(\n{lines})\n"


def _sequences(job: Job) -> int:
    """Count the sequences of a step."""
    return max(1, round(job.spec.batch_tokens / job.spec.sequence_tokens))


def _steps(job: Job) -> int:
    """Count the steps of the run."""
    return math.ceil(job.spec.tokens / (_sequences(job) * job.spec.sequence_tokens) - 1e-9)


def _save_steps(job: Job) -> int:
    """Count the steps between two checkpoints."""
    interval_s = job.point.get("checkpoints", {}).get("interval_s")
    return _steps(job) if not interval_s else max(1, round(interval_s / job.point["time_s"]["step"]))


def _pipeline(job: Job) -> list[str]:
    """State how layers are cut into chunks: as many in each where that comes out even, else a layout that spreads the rest."""
    layout, layers = job.layout, round(job.record.value("layers"))
    chunks = layout["pp"] * layout["vpp"]
    if layers % chunks == 0:
        return [f"--num-layers-per-virtual-pipeline-stage {layers // chunks}"] if layout["vpp"] > 1 else []
    counts = [layers * (i + 1) // chunks - layers * i // chunks for i in range(chunks)]
    return [f"--pipeline-model-parallel-layout E{'|'.join(f't*{count}' for count in counts)}L"]


def _megatron_remarks(job: Job) -> list[str]:
    """Say what of the layout these arguments do not hold."""
    layout, found = job.layout, _remarks(job)
    if job.pool["precision"] not in PRECISIONS:
        found.append(Message.of("ways_out.recipe", precision=job.pool["precision"], tool=MEGATRON).text())
    if layout["pp"] > 1 and layout["schedule"] != ONE_F_ONE_B:
        name = SCHEDULES[layout["schedule"]].name
        found.append(Message.of("ways_out.schedule", schedule=name, tool=MEGATRON).text())
    return found


def _titan_remarks(job: Job) -> list[str]:
    """Say what of the layout these arguments do not hold."""
    layout, found = job.layout, _remarks(job)
    if job.pool["precision"] != "bf16":
        found.append(Message.of("ways_out.recipe", precision=job.pool["precision"], tool=TORCHTITAN).text())
    if layout["pp"] > 1 and not _titan_schedule(layout):
        name = SCHEDULES[layout["schedule"]].name
        found.append(Message.of("ways_out.schedule", schedule=name, tool=TORCHTITAN).text())
    if layout["recompute"]:
        found.append(Message.of("ways_out.recompute", recompute=RECOMPUTE[layout["recompute"]]).text())
    return [*found, Message.of("ways_out.module", model=job.model).text()]


def _remarks(job: Job) -> list[str]:
    """Say what neither tool takes from its arguments."""
    found = [Message.of("ways_out.data_arguments").text()]
    if offload := job.layout["offload"]:
        found.append(Message.of("ways_out.offload", what=OFFLOAD[offload]).text())
    if job.spec.tuning == "lora":
        found.append(Message.of("ways_out.adapters").text())
    return found
