"""The cases that may be measured for a plan: on which hardware, for how long, at which price, and by which commands.

A case is the run of one workload on one kind of chip: its layout is that of the plan where the plan has one, else the best as predicted.
Engines and trainers differ from release to release; the commands follow their documentation in 2026.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.candidates.points import OperatingPoint
from planner.plan import Plan
from planner.problem.intervals import network
from planner.problem.scenarios import SERVING, Scenarios
from planner.studies.measure_fleets import FleetModel

SERVING_HOURS, TRAINING_HOURS = 3.0, 1.5  # set-up and warm-up, and five loads of some minutes, or some tens of steps
SHORT_TERM = 2.0  # price of a system for some hours, over what it costs by the hour in the plan's question
HOUR_S = 3600.0
LOADS = (0.125, 0.25, 0.5, 1.0, 1.5)  # clients, in multiples of the batch of the plan
PROMPTS_PER_CLIENT = 8


@dataclass(frozen=True, slots=True)
class Case:
    """A run to measure."""

    number: int
    kind: str  # serving or training
    chip: str
    label: str  # label of the errors that a training run shows: dense or moe
    workload: str
    system: str
    systems: float
    hours: float
    price: float
    commands: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name the case in a few words."""
        return f"{self.workload} on {self.chip}"

    def document(self) -> dict[str, Any]:
        """Write the case as JSON."""
        return {
            "name": self.name, "kind": self.kind, "workload": self.workload, "chip": self.chip, "system": self.system, "systems": self.systems,
            "hours": self.hours, "price": self.price, "commands": list(self.commands),
        }  # fmt: skip


def cases_of(model: FleetModel, plan: Plan) -> list[Case]:
    """List one case of serving for each chip that could serve, of the workload that costs most there, and one of training for each job and chip."""
    spent = {row["name"]: row["cost"] for row in plan.document["workloads"]}
    planned = _planned(plan)
    found: list[Case] = []
    serving: dict[str, tuple[tuple[bool, float], OperatingPoint]] = {}
    efficiency, _ = model.efficiencies(_without_errors(model))
    for g, points in enumerate(model.layouts):
        point = _best(points, planned)
        chip, name = point.uses[-1].option.system.chip, point.workload.name
        worth = _is_planned(point, planned), spent[name] * float(efficiency[g, 0] > 0)
        if chip not in serving or worth > serving[chip][0]:
            serving[chip] = worth, point
    for _, (_, point) in sorted(serving.items(), key=lambda item: item[0]):
        found.append(_serving_case(len(found), model, point))
    training: dict[tuple[str, str], OperatingPoint] = {}
    for point in model.jobs:
        training.setdefault((point.workload.name, point.uses[0].option.system.chip), point)
    for (_, chip), point in sorted(training.items()):
        found.append(_training_case(len(found), model, chip, point))
    return found


def _without_errors(model: FleetModel) -> Scenarios:
    """Return one scenario in which everything is as predicted."""
    chips = {option.system.chip for option in model.options}
    one = np.ones(1)
    return Scenarios(
        demand={w.name: one for w in model.problem.serving}, serving={chip: dict.fromkeys(SERVING, one) for chip in chips},
        training={}, prices={}, count=1,
    )  # fmt: skip


def _planned(plan: Plan) -> set[tuple[Any, ...]]:
    """Identify the layouts that the plan runs: workload, system and layout of each pool."""
    return {
        (workload["name"], pool["system"], pool["precision"], tuple(sorted(pool["layout"].items())))
        for workload in plan.document["workloads"]
        for point in workload["points"]
        for pool in point["pools"]
    }


def _is_planned(point: OperatingPoint, planned: set[tuple[Any, ...]]) -> bool:
    use = point.uses[-1]
    return (point.workload.name, use.option.system.name, use.precision, tuple(sorted(use.layout.items()))) in planned


def _best(points: tuple[OperatingPoint, ...], planned: set[tuple[Any, ...]]) -> OperatingPoint:
    """Choose the layout of the plan, else the one with most requests/s of a system."""
    return max(points, key=lambda p: (_is_planned(p, planned), p.capacity / sum(use.systems for use in p.uses)))


def _price(model: FleetModel, system: str, systems: float, hours: float) -> float:
    """Price some hours of systems by the cheapest way to hold one, at `SHORT_TERM` times its cost by the hour."""
    horizon_s = float(model.problem.calendar.seconds.sum())
    cost = min(
        c for c, option in zip(model.data.option_cost, model.options, strict=True) if option.system.name == system
    )
    return float(SHORT_TERM * systems * hours * HOUR_S * cost / horizon_s)


# -- serving -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Served:
    """What a serving benchmark runs: an architecture in a layout, and what the result is told about it."""

    name: str  # name of the architecture
    layout: Mapping[str, int]
    precision: str
    point: OperatingPoint
    clients: list[int]
    told: Mapping[str, Any]

    def flags(self, **words: str) -> str:
        """Write the flags of a server: flags of widths beyond 1, by the engine's words for them, and of the precision."""
        sizes = {name: word for name, word in words.items() if name == "tp" or self.layout[name] > 1}
        parts = [word.format(**self.layout) for word in sizes.values()]
        return " ".join(parts + ["--quantization fp8"] * (self.precision == "fp8"))

    def loop(self, bench: str, told: str) -> str:
        """Repeat a benchmark for each number of clients; `bench` ends with the flag that takes `told`."""
        prompts = f"--num-prompts $(({PROMPTS_PER_CLIENT}*c)) --max-concurrency $c"
        return f"for c in {' '.join(map(str, self.clients))}; do {bench} {prompts} {told}; done"

    def random(self) -> str:
        """Write the flags of random prompts of the workload's mean lengths."""
        lengths = self.point.serving.spec.lengths
        return f"--dataset-name random --random-input-len {lengths.input:g} --random-output-len {lengths.output:g}"


def _serving_case(number: int, model: FleetModel, point: OperatingPoint) -> Case:
    use = point.uses[-1]
    system, layout = use.option.system, use.layout
    ranks = layout["tp"] * layout["pp"] * layout["dp"]
    systems = float(max(1, math.ceil(ranks / system.chips)))
    stated = point.serving.spec.engine
    engine = stated if stated in ENGINES else "vllm"  # what is measured, and what the result is told
    told = {
        "chip": system.chip, "n_chips": ranks, "tp": layout["tp"], "pp": layout["pp"], "dp": layout["dp"], "ep": layout["ep"],
        "weight_dtype": use.precision, "engine": engine,
    }  # fmt: skip
    clients = sorted({max(1, round(share * max(use.batch, 8))) for share in LOADS})
    served = _Served(point.serving.spec.architecture or "", layout, use.precision, point, clients, told)
    return Case(
        number, "serving", system.chip, "", point.workload.name, system.name, systems, SERVING_HOURS,
        _price(model, system.name, systems, SERVING_HOURS), ENGINES[engine](served),
    )  # fmt: skip


def _vllm(served: _Served) -> tuple[str, ...]:
    flags = served.flags(
        tp="--tensor-parallel-size {tp}", pp="--pipeline-parallel-size {pp}", dp="--data-parallel-size {dp}", ep="--enable-expert-parallel"
    )  # fmt: skip
    return f"vllm serve {shlex.quote(served.name)} {flags}", _vllm_bench(served, "")


def _vllm_bench(served: _Served, backend: str) -> str:
    pairs = " ".join(shlex.quote(f"{key}={value}") for key, value in served.told.items())
    bench = f"vllm bench serve {backend}--model {shlex.quote(served.name)} {served.random()} --ignore-eos"
    return served.loop(bench, f"--save-result --metadata {pairs}")


def _sglang(served: _Served) -> tuple[str, ...]:
    """SGLang counts attention ranks among the ranks of tensor parallelism."""
    ranks = served.layout["tp"] * served.layout["dp"]
    flags = served.flags(
        tp=f"--tp {ranks}", pp="--pp-size {pp}", dp="--dp {dp} --enable-dp-attention", ep="--ep-size {ep}"
    )
    tag = shlex.quote(",".join(f"{key}={value}" for key, value in served.told.items()))
    bench = f"python -m sglang.bench_serving --backend sglang {served.random()} --random-range-ratio 1"
    server = f"python -m sglang.launch_server --model-path {shlex.quote(served.name)} {flags}"
    return server, served.loop(bench, f"--output-file sglang.jsonl --tag {tag}")


def _tensorrt(served: _Served) -> tuple[str, ...]:
    """The server speaks the protocol of OpenAI, so that vLLM's benchmark can drive it; its checkpoint states the precision."""
    ranks = served.layout["tp"] * served.layout["dp"]
    plain = replace(served, precision="")
    flags = plain.flags(tp=f"--tp_size {ranks}", pp="--pp_size {pp}", ep="--ep_size {ep}")
    return f"trtllm-serve {shlex.quote(served.name)} {flags}", _vllm_bench(served, "--backend openai ")


ENGINES = {"vllm": _vllm, "sglang": _sglang, "tensorrt_llm": _tensorrt, "tensorrt_plan": _tensorrt}


# -- training ----------------------------------------------------------------------------------------------------------


def _training_case(number: int, model: FleetModel, chip: str, point: OperatingPoint) -> Case:
    """Describe a run on as few systems as the model-parallel ranks need, with as many sequences per chip as the job has."""
    use, job = point.uses[0], point.workload
    system, layout = use.option.system, use.layout
    ranks = layout["tp"] * layout["pp"] * layout.get("cp", 1)
    systems = float(max(1, math.ceil(ranks / system.chips)))
    chips = int(systems) * system.chips
    dp = max(chips // ranks, 1)
    sequence = int(getattr(job.spec, "sequence_tokens", 0) or 0)
    whole = float(getattr(job, "batch_sequences", 0.0) or 0.0)
    micro = layout.get("micro_batch", 1)
    batch = max(round(whole * dp / max(layout.get("dp", dp), 1) / (dp * micro)), 1) * dp * micro
    told = {
        "chip": system.chip, "n_chips": chips, "model": job.spec.architecture, "seq_len": sequence, "global_batch_sequences": batch, "tp": layout["tp"],
        "pp": layout["pp"], "dp": dp, "cp": layout.get("cp", 1), "ep": layout.get("ep", 1), "micro_batch": micro, "dtype": use.precision,
    }  # fmt: skip
    columns, cells = ",".join([*told, "step_time_s"]), ",".join(map(str, told.values()))
    expert = bool(job.architecture.experts) or layout["pp"] > 1
    run = (_megatron if expert else _torchtitan)(told, system.chips)
    return Case(
        number, "training", chip, network(job.architecture.experts), job.name, system.name, systems, TRAINING_HOURS, _price(model, system.name, systems, TRAINING_HOURS),
        (run, f"printf '%s\\n' {shlex.quote(columns)} {shlex.quote(cells + ',SECONDS_PER_STEP')} > own_training.csv"),
    )  # fmt: skip


def _megatron(told: Mapping[str, Any], per_node: int) -> str:
    nodes = max(1, told["n_chips"] // per_node)
    flags = {
        "tensor-model-parallel-size": told["tp"], "pipeline-model-parallel-size": told["pp"], "context-parallel-size": told["cp"],
        "expert-model-parallel-size": told["ep"], "micro-batch-size": told["micro_batch"], "global-batch-size": told["global_batch_sequences"],
        "seq-length": told["seq_len"], "train-iters": 50, "log-interval": 1,
    }  # fmt: skip
    words = " ".join(f"--{name} {value}" for name, value in flags.items())
    return f"torchrun --nnodes {nodes} --nproc-per-node {min(per_node, told['n_chips'])} pretrain_gpt.py {words} --mock-data --{told['dtype']}  # shape of {told['model']}"


def _torchtitan(told: Mapping[str, Any], per_node: int) -> str:
    nodes = max(1, told["n_chips"] // per_node)
    flags = {
        "parallelism.tensor_parallel_degree": told["tp"], "parallelism.context_parallel_degree": told["cp"], "parallelism.data_parallel_shard_degree": told["dp"],
        "training.local_batch_size": told["micro_batch"], "training.global_batch_size": told["global_batch_sequences"], "training.seq_len": told["seq_len"],
        "training.steps": 50,
    }  # fmt: skip
    words = " ".join(f"--{name} {value}" for name, value in flags.items())
    return f"torchrun --nnodes {nodes} --nproc-per-node {min(per_node, told['n_chips'])} -m torchtitan.train {words}  # model of {told['model']}"
