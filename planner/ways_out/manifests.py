"""Build what manifests of Kubernetes share: names, labels, annotations, containers of engines, and groups of pods that form a worker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.errors import Issue
from planner.messages import Message
from planner.ways_in.launch import SGLANG, VERSIONS, VLLM
from planner.ways_out.commands import COMMANDS, PORT, Command
from planner.ways_out.deployed import RESOURCES, Deployed, EnginePool, Served

IMAGES = {VLLM: f"vllm/vllm-openai:v{VERSIONS[VLLM]}", SGLANG: f"lmsysorg/sglang:v{VERSIONS[SGLANG]}"}
CONTAINER = "modelserver"
SHARED_MEMORY = "20Gi"
PATIENCE_S, PROBE_S = 3600, 30  # a worker that has not answered after so long is started again; time between two tries

Document = dict[str, Any]


def metadata(deployed: Deployed, name: str, labels: Mapping[str, str] = {}) -> Document:
    """Build the metadata of an object: its name, labels, and the plan that it is of."""
    return {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "flopwatt", **labels},
        "annotations": {"flopwatt/plan": deployed.plan_id, "flopwatt/bound": _bound(deployed)},
    }


def worker_spec(
    served: Served,
    pool: EnginePool,
    engine: str,
    port: int = PORT,
    labels: Mapping[str, str] = {},
    before: Mapping[str, Any] = {},
) -> Document:
    """Build the spec of a LeaderWorkerSet without its replicas: the group of pods that is one worker; `before`: first keys of the pod's spec."""
    template: Document = {
        "metadata": {
            "labels": {"app.kubernetes.io/name": served.name, "app.kubernetes.io/component": pool.role, **labels}
        },
        "spec": {**before, **pod(served, pool, engine, port)},
    }
    return {
        "leaderWorkerTemplate": {
            "size": pool.hosts,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "workerTemplate": template,
        }
    }


def pod(served: Served, pool: EnginePool, engine: str, port: int = PORT, name: str = CONTAINER) -> Document:
    """Build the spec of a pod with an engine; of several hosts each runs the same script with its own rank."""
    command = COMMANDS[engine](served, pool, port)
    return {
        "containers": [
            {
                "name": name,
                "image": IMAGES[engine],
                **_launch(command),
                "env": environment(served, pool),
                "ports": [{"containerPort": port}],
                "resources": resources(pool, pool.chips_per_host),
                **({} if pool.hosts > 1 else {"startupProbe": _probe(port)}),
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}}],
    }


def resources(pool: EnginePool, chips: int) -> Document:
    """Ask for chips of one host."""
    asked = {RESOURCES[pool.vendor]: str(chips)}
    return {"limits": asked, "requests": asked}


def can_be_asked_for(served: Served) -> bool:
    """Tell whether Kubernetes has a resource for the chips of every pool."""
    return all(pool.vendor in RESOURCES for pool in served.pools)


def left_out(deployed: Deployed) -> list[Issue]:
    """List the deployments whose chips Kubernetes has no resource for that is known here."""
    return [
        Issue(served.point["id"], Message.of("ways_out.no_resource", vendors=_vendors(served)).text())
        for served in deployed.served
        if not can_be_asked_for(served)
    ]


def foreign_images(served: Served, engine: str) -> list[str]:
    """Say for which vendors an image of the engine has to be named."""
    vendors = sorted({pool.vendor for pool in served.pools} - {"NVIDIA"})
    stated = {"engine": engine, "version": VERSIONS[engine]}
    return [Message.of("ways_out.foreign_image", vendor=vendor, **stated).text() for vendor in vendors]


def label(model: str) -> str:
    """Make a label of the name of a model without its publisher: letters, digits, points and hyphens, up to 63.

    >>> label("meta-llama/Llama-3.3-70B-Instruct")
    'Llama-3.3-70B-Instruct'
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", model.rpartition("/")[2])[:63].strip("-.") or "model"


def _vendors(served: Served) -> str:
    return ", ".join(sorted({pool.vendor for pool in served.pools} - {*RESOURCES}))


def _bound(deployed: Deployed) -> str:
    bound = deployed.plan["bound"]
    return "none" if bound is None else f"{bound:.12g} {deployed.plan.objective['unit']}"


def _launch(command: Command) -> Document:
    """Name the program and its arguments; a command that needs a shell is run by one."""
    if command.after or any(name.startswith(("data-parallel-start", "node-rank")) for name in command.flags):
        return {"command": ["/bin/bash", "-c"], "args": [command.script]}
    return {"command": [*command.program], "args": command.words}


def environment(served: Served, pool: EnginePool) -> list[Document]:
    """List the environment: the token of the hub, the address by which caches are fetched, the model that drafts."""
    token = {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "HF_TOKEN", "optional": True}},
    }
    address = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    draft = {"name": "DRAFT_MODEL", "valueFrom": {"configMapKeyRef": {"name": f"{served.name}-draft", "key": "model"}}}
    return [token, *([address] if served.is_split else []), *([draft] if served.has_draft_model else [])]


def _probe(port: int) -> Document:
    return {
        "httpGet": {"path": "/health", "port": port},
        "periodSeconds": PROBE_S,
        "failureThreshold": PATIENCE_S // PROBE_S,
    }
