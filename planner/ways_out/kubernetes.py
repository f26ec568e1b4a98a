"""Write deployments as objects of Kubernetes: LeaderWorkerSets, DisaggregatedSets of llm-d with Kustomize, and LLMInferenceServices of KServe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planner.errors import Issue
from planner.messages import Message
from planner.ways_in.launch import VLLM
from planner.ways_out.commands import COMMANDS, PORT, PORT_BEHIND_PROXY, TITLES, head_lines, manifest_engine
from planner.ways_out.deployed import DECODE, ENCODE, PREFILL, Deployed, EnginePool, Served
from planner.ways_out.files import File
from planner.ways_out.heads import commented
from planner.ways_out.manifests import (
    IMAGES,
    Document,
    can_be_asked_for,
    environment,
    foreign_images,
    label,
    left_out,
    metadata,
    resources,
    worker_spec,
)
from planner.ways_out.yaml_text import documents, yaml_text

LWS, DISAGGREGATED, KSERVE = "leaderworkerset.x-k8s.io/v1", "disaggregatedset.x-k8s.io/v1", "serving.kserve.io/v1alpha2"
LWS_TITLE = "LeaderWorkerSet v1, chart 0.10"
LLM_D_TITLE = "llm-d 0.7 with DisaggregatedSet v1, chart 0.10 of LeaderWorkerSet with enableDisaggregatedSet=true"
KSERVE_TITLE = "KServe LLMInferenceService v1alpha2, chart 0.20.0"
APPEND = "serving.kserve.io/merge-append-fields"
SIDECAR = "ghcr.io/llm-d/llm-d-routing-sidecar:v0.8.0"
MODEL_SERVER = "REPLACE_MODEL_SERVER_IMAGE"


def lws_files(deployed: Deployed) -> Iterable[File]:
    """Write a LeaderWorkerSet for each pool: its workers are the replicas, the hosts of a worker its size."""
    for served in _askable(deployed):
        engine = manifest_engine(served)
        for pool in served.pools:
            title = f"{LWS_TITLE}; {TITLES[engine]}"
            head = commented([*head_lines(deployed, served, pool, engine, title), *foreign_images(served, engine)])
            document = leader_worker_set(deployed, served, pool, pool.workers, engine)
            yield File(f"{served.name}-{pool.role}.yaml", head + yaml_text(document))


def leader_worker_set(
    deployed: Deployed, served: Served, pool: EnginePool, workers: int, engine: str, labels: Mapping[str, str] = {}
) -> Document:
    """Build a LeaderWorkerSet with a number of workers."""
    return {
        "apiVersion": LWS,
        "kind": "LeaderWorkerSet",
        "metadata": metadata(deployed, set_name(served, pool), labels),
        "spec": {
            "replicas": workers,
            "startupPolicy": "LeaderCreated",
            **worker_spec(served, pool, engine, labels=labels),
        },
    }


def set_name(served: Served, pool: EnginePool) -> str:
    """Name the LeaderWorkerSet of a pool."""
    return f"{served.name}-{pool.role}"


def llm_d_files(deployed: Deployed) -> Iterable[File]:
    """Write a Kustomize folder for each deployment: a DisaggregatedSet where prefill and decode run apart, else LeaderWorkerSets.

    Slices are the whole replicas, roles the pools with their workers in a replica. Workers that the plan holds beyond whole replicas
    are a further set of one slice where each pool has some, else a LeaderWorkerSet of their role.
    """
    for served in _askable(deployed):
        objects = list(_llm_d_objects(deployed, served))
        lines = head_lines(deployed, served, served.pools[-1], VLLM, f"{LLM_D_TITLE}; {TITLES[VLLM]}")
        head = commented([*lines, *foreign_images(served, VLLM)])
        image, _, tag = IMAGES[VLLM].partition(":")
        kustomization: Document = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["modelserver.yaml"],
            "images": [{"name": MODEL_SERVER, "newName": image, "newTag": tag}],
        }
        yield File(f"{served.name}/kustomization.yaml", head + yaml_text(kustomization))
        yield File(f"{served.name}/modelserver.yaml", head + documents(*objects))


def _llm_d_objects(deployed: Deployed, served: Served) -> Iterator[Document]:
    slices = served.row["replicas"]
    pools = {pool: pool.workers - slices * pool.per_replica for pool in served.pools}
    if served.is_split and slices:
        yield _disaggregated_set(deployed, served, slices, {pool: pool.per_replica for pool in pools}, served.name)
        beyond = pools
    else:
        beyond = {pool: pool.workers for pool in pools}
    if served.is_split and all(count > 0 for count in beyond.values()):
        yield _disaggregated_set(deployed, served, 1, beyond, f"{served.name}-more")
        return
    for pool, count in beyond.items():
        if count > 0:
            document = leader_worker_set(deployed, served, pool, count, VLLM, _labels(served, pool.role))
            document["spec"] |= _role(served, pool)
            yield document


def _disaggregated_set(
    deployed: Deployed, served: Served, slices: int, workers: Mapping[EnginePool, int], name: str
) -> Document:
    roles = [{"name": pool.role, "spec": {"replicas": count, **_role(served, pool)}} for pool, count in workers.items()]
    return {
        "apiVersion": DISAGGREGATED,
        "kind": "DisaggregatedSet",
        "metadata": metadata(deployed, name, _labels(served)),
        "spec": {"slices": slices, "roles": roles},
    }


def _role(served: Served, pool: EnginePool) -> Document:
    """Build the group of pods of a role as llm-d has it: decode stands behind a proxy that asks for the prefill."""
    is_behind = served.is_split and pool.role == DECODE
    proxy: Document = {
        "name": "routing-proxy",
        "image": SIDECAR,
        "args": [f"--port={PORT}", "--kv-connector=nixlv2", "--secure-proxy=false"],
        "ports": [{"containerPort": PORT}],
        "restartPolicy": "Always",
    }
    before = {"initContainers": [proxy]} if is_behind else {}
    port = PORT_BEHIND_PROXY if is_behind else PORT
    spec = worker_spec(served, pool, VLLM, port, _labels(served, pool.role), before)
    spec["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = MODEL_SERVER
    return spec


def _labels(served: Served, role: str = "") -> dict[str, str]:
    """Label an object, or a pod of a role, as the router of llm-d looks for it."""
    labels = {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": label(served.model), "llm-d.ai/engine-type": VLLM}
    return {**labels, "llm-d.ai/role": role} if role else labels


def kserve_files(deployed: Deployed) -> Iterable[File]:
    """Write an LLMInferenceService for each deployment that it can hold: decode, or the single pool, at the top, prefill below."""
    for served in _askable(deployed):
        if _kserve_problem(served):
            continue
        prefill = next((pool for pool in served.pools if pool.role == PREFILL), None)
        main = next(pool for pool in served.pools if pool.role != PREFILL)
        spec: Document = {
            "model": {"uri": f"hf://{served.model}", "name": served.model},
            **_kserve_pool(served, main),
            "router": {"route": {}, "gateway": {}, "scheduler": {}},
        }
        if prefill is not None:
            spec["prefill"] = _kserve_pool(served, prefill)
        described = metadata(deployed, served.name)
        described["annotations"][APPEND] = "\n".join(_argument_paths(spec))
        document: Document = {"apiVersion": KSERVE, "kind": "LLMInferenceService", "metadata": described, "spec": spec}
        lines = head_lines(deployed, served, main, VLLM, f"{KSERVE_TITLE}; {TITLES[VLLM]}")
        head = commented([*lines, *foreign_images(served, VLLM)])
        yield File(f"{served.name}.yaml", head + yaml_text(document))


def left_by_kserve(deployed: Deployed) -> list[Issue]:
    """List the deployments that KServe cannot hold: chips without a resource, encoders on chips of their own, layouts that it refuses."""
    problems = ((served, _kserve_problem(served)) for served in _askable(deployed))
    return [*left_out(deployed), *(Issue(served.point["id"], problem) for served, problem in problems if problem)]


def _kserve_problem(served: Served) -> str:
    """Say why KServe cannot hold a deployment; an empty text where it can.

    Its hosts are the stages of a pipeline or groups of data-parallel ranks: it refuses both at once, and tensor ranks over several hosts.
    """
    if any(pool.role == ENCODE for pool in served.pools):
        return Message.of("ways_out.encoders_apart").text()
    for pool in served.pools:
        if pool.dp > 1 and (pool.pp > 1 or not pool.ranks_per_host):
            return Message.of("ways_out.kserve_both_degrees", role=pool.role, pp=pool.pp, dp=pool.dp).text()
        if pool.tp > pool.host_chips:
            return Message.of("ways_out.kserve_wide_tensor", role=pool.role, tp=pool.tp, chips=pool.host_chips).text()
    return ""


def _kserve_pool(served: Served, pool: EnginePool) -> Document:
    """Build one pool; KServe writes the degrees, ports and addresses itself, so that the container gets the other flags alone."""
    parallelism: Document = {"tensor": pool.tp}
    is_staged = pool.pp > 1 and pool.hosts > 1  # each host runs a stage
    if pool.dp > 1:
        parallelism |= {"data": pool.dp, "dataLocal": pool.ranks_per_host}
    elif pool.pp > 1:
        parallelism["pipeline"] = pool.pp
    if pool.ep > 1:
        parallelism["expert"] = True
    template: Document = {
        "containers": [
            {
                "name": "main",
                "image": IMAGES[VLLM],
                "args": [word for word in COMMANDS[VLLM](served, pool, PORT).words if not word.startswith(OWN)],
                "env": environment(served, pool),
                "resources": resources(pool, pool.tp if is_staged else pool.chips_per_host),
            }
        ]
    }
    return {
        "replicas": pool.workers,
        "parallelism": parallelism,
        "template": template,
        **({"worker": template} if pool.hosts > 1 else {}),
    }


def _argument_paths(spec: Mapping[str, Any]) -> Iterator[str]:
    """Name the lists of arguments that are added to KServe's own, which they would replace otherwise."""
    for where, pool in (("", spec), ("prefill.", spec.get("prefill", {}))):
        yield from (f"{where}{part}.containers.[name=main].args" for part in ("template", "worker") if part in pool)


OWN = (
    "--port",
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--data-parallel",
    "--enable-expert-parallel",
    "--nnodes",
    "--node-rank",
    "--master",
)
"""Flags that KServe writes itself from `parallelism`."""


def _askable(deployed: Deployed) -> list[Served]:
    return [served for served in deployed.served if can_be_asked_for(served)]
