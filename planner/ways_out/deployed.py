"""Gather what a plan deploys, in the words of engines and schedulers: deployments with their pools of workers, and jobs."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from catalog.errors import CatalogError, UnknownName
from catalog.lookup import Catalog
from catalog.records import Record
from planner.errors import Issue, SpecError, issues_of, unknown_record
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.fleet import DeployedPool, Deployment
from planner.plan.rows.points import Point, Pool
from planner.plan.rows.workloads import Workload
from planner.spec.workloads import Serving, Training

PREFILL, DECODE, ENCODE = "prefill", "decode", "encode"
RESOURCES = {
    "NVIDIA": "nvidia.com/gpu",
    "AMD": "amd.com/gpu",
    "Intel": "habana.ai/gaudi",
    "Google": "google.com/tpu",
    "AWS": "aws.amazon.com/neuron",
    "Huawei": "huawei.com/Ascend910",
}
"""Vendor of a chip -> the resource by which its device plugin offers it to Kubernetes."""
HOST_CHIPS = {"NVIDIA": 4, "Google": 4}
"""Chips of one host in a rack or pod of a vendor: a compute tray of NVIDIA's NVL72, a host of a TPU pod (both 4)."""
MOST_HOST_CHIPS = 8  # on a host in racks and pods of other vendors, as in the usual server
USUAL_LAYOUT = {"cp": 1, "ep": 1, "vpp": 1, "micro_batch": 1, "zero": 1, "recompute": 0, "schedule": 0, "offload": 0}
MOST_NAME = 40  # characters of a name, so that the suffixes of controllers fit into the 63 of a label


@dataclass(frozen=True, slots=True)
class EnginePool:
    """A pool of workers: layout, formats, batch and counts; `chips` of a worker, `host_chips` of a host at most."""

    role: str
    system: str
    vendor: str
    precision: str
    kv_precision: str
    tp: int
    pp: int
    dp: int
    ep: int
    batch: int
    per_replica: int
    workers: int
    host_chips: int

    @property
    def chips(self) -> int:
        """Count the chips of a worker."""
        return self.tp * self.pp * self.dp

    @property
    def rank_chips(self) -> int:
        """Count the chips of one data-parallel rank."""
        return self.tp * self.pp

    @property
    def ranks_per_host(self) -> int:
        """Count the data-parallel ranks that a host holds whole, as many on each; 0 where a rank spans hosts."""
        return (
            _largest_divisor(self.dp, self.host_chips // self.rank_chips) if self.rank_chips <= self.host_chips else 0
        )

    @property
    def chips_per_host(self) -> int:
        """Count the chips that a worker takes of each of its hosts."""
        ranks = self.ranks_per_host
        return ranks * self.rank_chips if ranks else _largest_divisor(self.chips, self.host_chips)

    @property
    def hosts(self) -> int:
        """Count the hosts that a worker spans."""
        return self.chips // self.chips_per_host


@dataclass(frozen=True, slots=True)
class Served:
    """A deployment: its name for files and objects, its point, the workload as the spec states it, the model and its pools."""

    name: str
    row: Deployment
    point: Point
    workload: Workload
    spec: Serving
    model: str
    memory_share: float | None
    pools: tuple[EnginePool, ...]

    @property
    def is_split(self) -> bool:
        """Tell whether prefill and decode run apart."""
        return {PREFILL, DECODE} <= {pool.role for pool in self.pools}

    @property
    def engine(self) -> str:
        """Return the engine that the spec names; an empty text without one."""
        return self.spec.engine or ""

    @property
    def draft_tokens(self) -> int:
        """Return the tokens drafted in each step; 0 without speculation."""
        return self.spec.speculation.draft_tokens if self.spec.speculation else 0

    @property
    def has_draft_model(self) -> bool:
        """Tell whether a model of its own drafts: the spec then states its share of the time."""
        return self.spec.speculation is not None and self.spec.speculation.draft_share is not None

    @property
    def redundant_experts(self) -> int:
        """Return the redundant copies of experts; 0 without any."""
        return self.spec.routing.redundant_experts if self.spec.routing else 0


@dataclass(frozen=True, slots=True)
class Job:
    """A training job: its name, its point and pool, the workload as the spec states it, the model with its record, and its hosts."""

    name: str
    point: Point
    workload: Workload
    spec: Training
    model: str
    record: Record
    pool: Pool
    chips: int
    host_chips: int

    @property
    def layout(self) -> dict[str, int]:
        """Return the layout with the fields that earlier releases did not write, as they computed them."""
        written = self.pool["layout"]
        return {**USUAL_LAYOUT, "sequence_parallel": int(written["tp"] > 1), **written}


@dataclass(frozen=True)
class Deployed:
    """What a plan deploys; `left` lists what no format can hold, with the reason."""

    plan: Plan
    served: tuple[Served, ...]
    jobs: tuple[Job, ...]
    left: tuple[Issue, ...]

    @cached_property
    def plan_id(self) -> str:
        """Hash the document with SHA-256, whatever the order of its keys."""
        text = json.dumps(self.plan.document, sort_keys=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def deployed(plan: Plan, overlays: Sequence[Path] = ()) -> Deployed:
    """Gather deployments and jobs of a plan. Raises SpecError for a plan without an answer, and for a catalog that lacks what the plan names."""
    if not plan.has_answer:
        raise SpecError([Issue("status", Message.of("ways_out.no_answer", status=plan.status).text())])
    try:
        catalog = Catalog.load(overlays, [block] if (block := plan["spec"].get("catalog")) else [])
        return _gathered(plan, catalog)
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None
    except UnknownName as error:
        raise SpecError([Issue("spec", unknown_record(error))]) from None


def _gathered(plan: Plan, catalog: Catalog) -> Deployed:
    stated = {each["name"]: each for each in plan["spec"]["workloads"]}
    names = _Names()
    served: list[Served] = []
    jobs: list[Job] = []
    left: list[Issue] = []
    rows = {row["point"]: row for row in plan.deployments}
    for workload in plan.workloads:
        document = stated[workload.get("of", workload["name"])]
        record = catalog.get("architectures", workload.get("architecture") or document["architecture"])
        model = record.words("hf_id") or record.name
        for point in workload["points"]:
            where = f"workloads.{workload['name']}.{point['id']}"
            if not point["pools"] or point["pools"][0]["how"] == "api":
                left.append(Issue(where, Message.of("ways_out.api_point").text()))
            elif workload["kind"] == "serving":
                row = rows.get(point["id"]) or _divisible_row(workload, point)
                pools = tuple(map(lambda pool, held: _pool(pool, held, catalog), point["pools"], row["pools"]))
                spec = Serving.model_validate(document)
                share = _memory_share(spec, catalog)
                served.append(Served(names.of(point["id"]), row, point, workload, spec, model, share, pools))
            elif workload["kind"] == "training":
                pool = point["pools"][0]
                system = catalog.get("systems", pool["system"])
                layout = pool["layout"]
                chips = math.prod(layout.get(degree, 1) for degree in ("tp", "pp", "dp", "cp"))
                host = _host_chips(system, catalog)
                run = Training.model_validate(document)
                jobs.append(Job(names.of(point["id"]), point, workload, run, model, record, pool, chips, host))
            else:
                left.append(Issue(where, Message.of("ways_out.other_kind", kind=workload["kind"]).text()))
    return Deployed(plan, tuple(served), tuple(jobs), tuple(left))


def _largest_divisor(count: int, most: int) -> int:
    return next(each for each in range(min(count, most), 0, -1) if count % each == 0)


class _Names:
    """Names of files and objects: lower case, digits and hyphens, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """Make a name of a text that Kubernetes takes; a digest follows where the text is too long or its name is taken."""
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        name = name if name[:1].isalpha() else f"w-{name}".rstrip("-")
        if len(name) > MOST_NAME or name in self._taken:
            name = f"{name[: MOST_NAME - 9].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        self._taken.add(name)
        return name


def _pool(pool: Pool, held: DeployedPool, catalog: Catalog) -> EnginePool:
    system = catalog.get("systems", pool["system"])
    layout = pool["layout"]
    return EnginePool(
        pool["role"],
        system.name,
        catalog.get("chips", system.words("chip")).words("vendor"),
        pool["precision"],
        pool.get("kv_precision", ""),
        **{degree: layout.get(degree, 1) for degree in ("tp", "pp", "dp", "ep")},
        batch=pool["batch"],
        per_replica=held["workers_per_replica"],
        workers=held["workers"],
        host_chips=_host_chips(system, catalog),
    )


def _host_chips(system: Record, catalog: Catalog) -> int:
    """Return the chips of one host of a system: all of a server, else as the vendor builds racks."""
    chips = int(system.value("chips"))
    if "node" in system.words("form").replace("supernode", "") or chips <= MOST_HOST_CHIPS:
        return chips
    return HOST_CHIPS.get(catalog.get("chips", system.words("chip")).words("vendor"), MOST_HOST_CHIPS)


def _divisible_row(workload: Workload, point: Point) -> Deployment:
    """Build the deployment of a point in a plan with divisible replicas: its peak, rounded up to whole replicas."""
    replicas = math.ceil(point["peak_replicas"] - 1e-9)
    pools: list[DeployedPool] = [
        {
            "role": pool["role"],
            "system": pool["system"],
            "workers_per_replica": pool["workers"],
            "systems_per_worker": pool["systems_per_replica"] / pool["workers"],
            "workers": replicas * pool["workers"],
            "least_workers": 0,
            "systems": replicas * pool["systems_per_replica"],
        }
        for pool in point["pools"]
    ]
    return {
        "point": point["id"],
        "workload": workload["name"],
        "site": point["site"],
        "replicas": replicas,
        "load_s": 0.0,
        "loads": 0.0,
        "pools": pools,
    }


def _memory_share(spec: Serving, catalog: Catalog) -> float | None:
    """Return the share of a chip's memory that the plan counts on: as stated, else as its engine ships; None where the engine computes it."""
    if spec.memory_utilisation is not None:
        return spec.memory_utilisation
    if spec.engine is None:
        return catalog.get("defaults", "memory_utilisation").value("value")
    figure = catalog.get("engines", spec.engine).get("memory_share")
    return None if figure is None else figure.number
