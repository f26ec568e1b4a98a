"""Register the formats: a name, the tool with its version, the writer of files, and what the format leaves out.

A further format is a row of `FORMATS`; the command line, the page of the documentation and the tests read it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from planner.errors import Issue, SpecError, close_matches
from planner.messages import Message
from planner.plan import Plan
from planner.version import __version__
from planner.ways_in.launch import SGLANG, VLLM
from planner.ways_out import bench, bill, hours, jobs, kubernetes, manifests
from planner.ways_out.commands import TITLES, engine_files
from planner.ways_out.deployed import Deployed, deployed
from planner.ways_out.files import File


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its tool with the version, the writer, and a function that lists what it leaves out."""

    tool: str
    write: Callable[[Deployed], Iterable[File]]
    left: Callable[[Deployed], list[Issue]] = lambda deployed: []


FORMATS: Mapping[str, Format] = {
    "vllm": Format(TITLES[VLLM], partial(engine_files, engine=VLLM)),
    "sglang": Format(TITLES[SGLANG], partial(engine_files, engine=SGLANG)),
    "lws": Format(kubernetes.LWS_TITLE, kubernetes.lws_files, manifests.left_out),
    "llm-d": Format(kubernetes.LLM_D_TITLE, kubernetes.llm_d_files, manifests.left_out),
    "kserve": Format(kubernetes.KSERVE_TITLE, kubernetes.kserve_files, kubernetes.left_by_kserve),
    "keda": Format(hours.TITLE, hours.keda_files, manifests.left_out),
    "bench": Format(bench.TITLE, bench.bench_files, bench.not_sent),
    "megatron": Format(jobs.MEGATRON, jobs.megatron_files),
    "torchtitan": Format(jobs.TORCHTITAN, jobs.torchtitan_files),
    "slurm": Format(jobs.SLURM, jobs.slurm_files),
    "bill": Format(f"flopwatt {__version__}", bill.bill_files),
}
"""Name of a format -> how it is written; its files lie in a folder of the name."""
ALL = "all"
KUBERNETES = ("lws", "llm-d", "kserve", "keda")
MEANT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("kubernetes", "k8s", "helm", "yaml", "manifests"), KUBERNETES),
    **dict.fromkeys(("leaderworkerset", "leader-worker-set"), ("lws",)),
    **dict.fromkeys(("hpa", "autoscaling"), ("keda",)),
    **dict.fromkeys(("docker", "commands", "launch"), (VLLM, SGLANG)),
    **dict.fromkeys(("training", "torchrun", "sbatch"), ("megatron", "torchtitan", "slurm")),
    **dict.fromkeys(("csv", "excel", "xlsx", "bom"), ("bill",)),
}
"""What a person may call a format -> the formats that are meant."""


@dataclass(frozen=True, slots=True)
class Export:
    """The files of some formats, and what they leave out, by format."""

    files: tuple[File, ...]
    left: tuple[Issue, ...]


def _unknown(name: str, known: str) -> str:
    """Say that there is no such format, and which are meant where the name is one of `MEANT`."""
    if meant := MEANT.get(name.lower()):
        return Message.of("ways_out.formats_meant", given=name, meant=", ".join(meant)).text()
    return Message.of("ways_out.unknown_format", given=name, close=close_matches(name, FORMATS), known=known).text()


def export(plan: Plan, names: Sequence[str], overlays: Sequence[Path] = ()) -> Export:
    """Write a plan in some formats. Raises SpecError for an unknown format, a plan without an answer, and a catalog that lacks what it names."""
    chosen = list(FORMATS) if ALL in names else list(dict.fromkeys(names))
    if unknown := [name for name in chosen if name not in FORMATS]:
        known = ", ".join((*FORMATS, ALL))
        raise SpecError(Issue("--to", _unknown(name, known)) for name in unknown)
    found = deployed(plan, overlays)
    files = [replace(file, path=f"{name}/{file.path}") for name in chosen for file in FORMATS[name].write(found)]
    left = [replace(issue, path=f"{name}: {issue.path}") for name in chosen for issue in FORMATS[name].left(found)]
    return Export(tuple(files), (*found.left, *left))
