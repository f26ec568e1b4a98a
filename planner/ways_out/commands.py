"""Write the launch command of a worker for vLLM and SGLang: one script for each pool of a deployment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planner.ways_in.launch import SGLANG, VERSIONS, VLLM
from planner.ways_out.deployed import DECODE, ENCODE, PREFILL, Deployed, EnginePool, Served
from planner.ways_out.files import File
from planner.ways_out.heads import commented, remarks, served_lines

QUANTISATION = {"fp8": "fp8", "mxfp8": "mxfp8", "mxfp4": "mxfp4", "nvfp4": "modelopt_fp4"}
"""Format of the weights -> value of --quantization of either engine; other narrow formats are read from the checkpoint alone."""
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
CACHES = {VLLM: {"fp8": "fp8", "bf16": "bfloat16"}, SGLANG: {"fp8": "fp8_e4m3", "bf16": "bf16"}}
PORT, PORT_BEHIND_PROXY, RENDEZVOUS = 8000, 8200, 29500
TITLES = {VLLM: f"vLLM {VERSIONS[VLLM]}", SGLANG: f"SGLang {VERSIONS[SGLANG]}"}
RANK, ADDRESS = "NODE_RANK", "MASTER_ADDR"

Value = str | int | float | None
Flags = dict[str, Value]
"""Flag without dashes -> value; None for a switch. A value that begins with "$" is left to the shell."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: program with the words that no flag names, flags, lines of shell that must come before it, and words of shell at its end."""

    program: tuple[str, ...]
    flags: Flags
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """List flags as arguments of a container: `--flag=value`, with variables as Kubernetes fills them in."""
        return [f"--{name}" if value is None else f"--{name}={_variable(value)}" for name, value in self.flags.items()]

    @property
    def shell(self) -> str:
        """Write the command for a shell, one flag on a line."""
        flags = [f"--{name}" if value is None else f"--{name} {_quoted(value)}" for name, value in self.flags.items()]
        return " \\\n  ".join([f"exec {shlex.join(self.program)}", *flags, *self.after])

    @property
    def script(self) -> str:
        """Write the command with what must come before it."""
        return "\n".join(("set -euo pipefail", *self.before, self.shell)) + "\n"


def vllm_command(served: Served, pool: EnginePool, port: int = PORT) -> Command:
    """Build the command of a worker of vLLM."""
    flags: Flags = {"port": port, "tensor-parallel-size": pool.tp, "pipeline-parallel-size": pool.pp}
    if pool.dp > 1:
        flags["data-parallel-size"] = pool.dp
    if pool.ep > 1:
        flags["enable-expert-parallel"] = None
    if served.redundant_experts and pool.ep > 1:
        flags |= {"enable-eplb": None, "eplb-config": _json({"num_redundant_experts": served.redundant_experts})}
    flags |= _formats(pool, VLLM)
    if served.memory_share is not None:
        flags["gpu-memory-utilization"] = served.memory_share
    if pool.role not in (PREFILL, ENCODE):
        flags["max-num-seqs"] = -(-pool.batch // pool.dp)
    if served.spec.eager:
        flags["enforce-eager"] = None
    before: tuple[str, ...] = ()
    if served.has_draft_model:
        flags |= {"spec-method": "draft_model", "spec-model": "$DRAFT_MODEL", "spec-tokens": served.draft_tokens}
        before += (': "${DRAFT_MODEL:?}"',)
    elif served.draft_tokens:
        flags["speculative-config"] = _json({"method": "mtp", "num_speculative_tokens": served.draft_tokens})
    if (role := {PREFILL: "kv_producer", DECODE: "kv_consumer"}.get(pool.role)) is not None:
        flags["kv-transfer-config"] = _json({"kv_connector": "NixlConnector", "kv_role": role})
    if pool.role == ENCODE:
        flags["mm-encoder-only"] = None
    if pool.hosts > 1:
        flags |= _vllm_hosts(pool)
        before += _rank_and_address()
        if not pool.ranks_per_host:  # only the first host answers requests
            before += (f'if [ "${RANK}" -gt 0 ]; then set -- --headless; else set --; fi',)
            return Command(("vllm", "serve", served.model), flags, before, ('"$@"',))
    return Command(("vllm", "serve", served.model), flags, before)


def sglang_command(served: Served, pool: EnginePool, port: int = PORT) -> Command:
    """Build the command of a worker of SGLang, whose tensor ranks include the ranks of attention data parallelism."""
    flags: Flags = {"model-path": served.model, "port": port, "tp-size": pool.tp * pool.dp, "pp-size": pool.pp}
    if pool.dp > 1:
        flags["attn-dp-size"] = pool.dp
    if pool.ep > 1:
        flags["ep-size"] = pool.ep
    if served.redundant_experts and pool.ep > 1:
        flags |= {"enable-eplb": None, "ep-num-redundant-experts": served.redundant_experts}
    flags |= _formats(pool, SGLANG)
    if served.engine == SGLANG and served.memory_share is not None:
        flags["mem-fraction-static"] = served.memory_share
    if pool.role not in (PREFILL, ENCODE):
        flags["max-running-requests"] = pool.batch
    if served.spec.eager:
        flags["disable-cuda-graph"] = None
    before: tuple[str, ...] = ()
    if served.draft_tokens:
        algorithm = "STANDALONE" if served.has_draft_model else "NEXTN"
        flags |= {
            "speculative-algorithm": algorithm,
            "speculative-num-steps": served.draft_tokens,
            "speculative-eagle-topk": 1,
            "speculative-num-draft-tokens": served.draft_tokens + 1,
        }
        if served.has_draft_model:
            flags["speculative-draft-model-path"] = "$DRAFT_MODEL"
            before += (': "${DRAFT_MODEL:?}"',)
    if pool.role in (PREFILL, DECODE):
        flags["disaggregation-mode"] = pool.role
    if pool.role == ENCODE:
        flags["encoder-only"] = None
    if pool.hosts > 1:
        flags |= {"nnodes": pool.hosts, "node-rank": f"${RANK}", "dist-init-addr": f"${ADDRESS}:{RENDEZVOUS}"}
        before += _rank_and_address()
    return Command(("python3", "-m", "sglang.launch_server"), flags, before)


COMMANDS: Mapping[str, Callable[[Served, EnginePool, int], Command]] = {VLLM: vllm_command, SGLANG: sglang_command}
"""Engine -> the command of a worker."""


def engine_files(deployed: Deployed, engine: str) -> Iterable[File]:
    """Write a script for each pool of each deployment."""
    for served in deployed.served:
        for pool in served.pools:
            command = COMMANDS[engine](served, pool, PORT)
            head = commented(head_lines(deployed, served, pool, engine))
            yield File(f"{served.name}-{pool.role}.sh", f"#!/usr/bin/env bash\n{head}{command.script}", runs=True)


def head_lines(deployed: Deployed, served: Served, pool: EnginePool, engine: str, tool: str = "") -> list[str]:
    """Write the head of a file for one pool, with what its flags do not hold."""
    lines = served_lines(deployed, served, tool or TITLES[engine])
    return lines + remarks(served, pool, engine, VERSIONS[engine], pool.precision in QUANTISATION)


def manifest_engine(served: Served) -> str:
    """Return the engine of manifests that may run either: the one that the spec names, else vLLM."""
    return SGLANG if served.engine == SGLANG else VLLM


def _formats(pool: EnginePool, engine: str) -> Flags:
    flags: Flags = {}
    if pool.precision in QUANTISATION:
        flags["quantization"] = QUANTISATION[pool.precision]
    elif pool.precision in DTYPES:
        flags["dtype"] = DTYPES[pool.precision]
    if (cache := CACHES[engine].get(pool.kv_precision)) is not None:
        flags["kv-cache-dtype"] = cache
    return flags


def _vllm_hosts(pool: EnginePool) -> Flags:
    """Return the flags of a worker over several hosts: whole data-parallel ranks on each, or ranks that span hosts."""
    if local := pool.ranks_per_host:
        return {
            "data-parallel-size-local": local,
            "data-parallel-start-rank": f"$(({RANK} * {local}))",
            "data-parallel-address": f"${ADDRESS}",
            "data-parallel-rpc-port": RENDEZVOUS,
            "data-parallel-hybrid-lb": None,
        }
    return {"nnodes": pool.hosts, "node-rank": f"${RANK}", "master-addr": f"${ADDRESS}", "master-port": RENDEZVOUS}


def _rank_and_address() -> tuple[str, ...]:
    """Read rank and address of the first host from the environment, as LeaderWorkerSet sets them or as a person does."""
    return (
        f'{RANK}="${{{RANK}:-${{LWS_WORKER_INDEX:-0}}}}"',
        f'{ADDRESS}="${{{ADDRESS}:-${{LWS_LEADER_ADDRESS:-127.0.0.1}}}}"',
    )


def _variable(value: Value) -> Value:
    return f"$({value[1:]})" if isinstance(value, str) and value.startswith("$") else value


def _quoted(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) and value.startswith("$") else shlex.quote(str(value))


def _json(value: Mapping[str, str | int]) -> str:
    return json.dumps(value)
