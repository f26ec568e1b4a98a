"""Draft a spec from what a person has: the figures that their files state, and a guess, marked as one, for each that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.errors import CatalogError
from catalog.huggingface import from_config
from catalog.lookup import Catalog
from models.formats import FORMATS
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.benchmarks import Benchmark
from planner.ways_in.fleets import Fleet
from planner.ways_in.formats import format_in_name
from planner.ways_in.hub import PREFIX
from planner.ways_in.launch import Launch
from planner.ways_in.named import known_architecture, near_architecture
from planner.ways_in.rents import is_cloud_instance, usual_rent
from planner.ways_in.traces import HistogramBand, Trace
from planner.ways_in.training import Run, with_run

REGION = "us-virginia"
SYSTEMS = ("DGX H200", "DGX B200")
ARCHITECTURE = "Meta-Llama-3.1-8B"
RATE = 1.0  # requests/s
SHARE_AT_ONCE, LEAST_SHARE_AT_ONCE = 0.1, 0.01  # shares of the users in the busiest and in the quietest hour
REQUESTS_PER_HOUR = 15.0  # by a user at work
PEAK_HOUR = 14  # local time
INPUT, OUTPUT = 1000, 300  # tokens
TTFT, TPOT = "2 s", "50 ms"
AGE = "2 years"
UNTIL, NOTICE = "1 year", "30 d"
INTERRUPTED = "12 h"
WIDE = "bf16"  # format of checkpoints whose config names none
MOST_CV = 3.0  # coefficient of variation that a spec takes

DEMO: Mapping[str, Any] = {
    "name": "demo: chat in Virginia",
    "note": "The spec of `flopwatt plan --demo`: a chat service of 20 requests/s, on bought or rented servers in one region.",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": ARCHITECTURE, "demand": {"requests_per_s": 20},
            "lengths": {"input": 500, "output": 100}, "origins": [{"region": REGION, "share": 1}],
            "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "50 ms"}}, "precision": ["fp8"],
        }
    ],
    "sites": [{"region": REGION, "systems": ["DGX H100", "DGX H200"]}],
}  # fmt: skip
"""A spec that needs no file, every price from the catalog."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of a spec; None and empty for each that is not given.

    `config`: a Hugging Face config with the name to give it; `rate`: requests/s; `lengths`: mean prompt and answer [token]; `systems`: that may be had; `run`: the training run.
    """

    config: tuple[str, Mapping[str, Any]] | None = None
    model: str = ""
    launch: Launch | None = None
    trace: Trace | None = None
    log: Benchmark | None = None
    fleet: Fleet | None = None
    users: int = 0
    region: str = ""
    rate: float = 0.0
    lengths: tuple[int, int] | None = None
    systems: tuple[str, ...] = ()
    run: Run | None = None


@dataclass(slots=True)
class _Draft:
    """The spec so far, its guesses by path, and how sources were read."""

    document: dict[str, Any]
    guesses: dict[str, str] = field(default_factory=dict)
    notes: list[Fact] = field(default_factory=list)

    def guess(self, path: str, code: str, **arguments: str | int | float) -> None:
        self.guesses[path] = Message.of(code, **arguments).text()


def drafted(sources: Sources, catalog: Catalog) -> tuple[dict[str, Any], tuple[Fact, ...]]:
    """Return (spec, how the sources were read). Guesses stand under `assumptions` of the spec, by path, with their reasons."""
    workload: dict[str, Any] = {"name": "requests", "kind": "serving"}
    draft = _Draft({"name": "", "note": Message.of("ways_in.note_of_spec").text(), "workloads": [workload]})
    _architecture(draft, workload, sources, catalog)
    region = home(sources.region, sources.fleet)
    if not sources.region:
        is_of_fleet = any(place for _, place in sources.fleet.counts) if sources.fleet else False
        draft.guess("workloads[0].origins[0].region", "ways_in.guess_origin" if is_of_fleet else "ways_in.guess_region")
    _demand(draft, workload, sources)
    _lengths(draft, workload, sources)
    workload["origins"] = [{"region": region, "share": 1}]
    workload["slo"] = {"ttft": {"p95": TTFT}, "tpot": {"p95": TPOT}}
    for metric in ("ttft", "tpot"):
        draft.guess(f"workloads[0].slo.{metric}.p95", "ways_in.guess_slo")
    if sources.launch is not None:
        workload |= sources.launch.workload
        draft.guesses |= {f"workloads[0].{key}": reason for key, reason in sources.launch.guesses.items()}
        draft.notes.append(
            Fact(f"--{sources.launch.engine}", Message.of("ways_in.launch_chips", chips=sources.launch.chips))
        )
        if sources.launch.left:
            left = ", ".join(sources.launch.left)
            draft.notes.append(Fact(f"--{sources.launch.engine}", Message.of("ways_in.flags_left", flags=left)))
    elif sources.log is not None and sources.log.engine in ("vllm", "sglang", "tensorrt_llm"):
        workload["engine"] = sources.log.engine
    _formats(draft, workload, sources, catalog)
    _fleet(draft, sources, region, catalog)
    draft.document["name"] = (
        f"{workload['architecture']} in {', '.join(site['region'] for site in draft.document['sites'])}"
    )
    if draft.guesses:
        draft.document["assumptions"] = draft.guesses
    for source in (sources.trace, sources.log, sources.fleet):
        draft.notes += source.notes if source is not None else ()
    document = draft.document if sources.run is None else with_run(draft.document, sources.run)
    return document, tuple(draft.notes)


def home(region: str, fleet: Fleet | None) -> str:
    """Return the region of the users: the one stated, else the first of the fleet, else a guess."""
    places = [place for _, place in fleet.counts if place] if fleet else []
    return region or (places or [REGION])[0]


def _architecture(draft: _Draft, workload: dict[str, Any], sources: Sources, catalog: Catalog) -> None:
    """Name the architecture: of a config, of a model, of the launched model, or a guess."""
    if sources.config is not None:
        name, config = sources.config
        draft.document["catalog"] = {"architectures": [{"name": name, "config": dict(config)}]}
        workload["architecture"] = name
        return
    launched = sources.launch.model if sources.launch else sources.log.model if sources.log else ""
    model = (sources.model or launched).removeprefix(PREFIX)
    if not model:
        workload["architecture"] = ARCHITECTURE
        draft.guess("workloads[0].architecture", "ways_in.guess_architecture")
        return
    workload["architecture"], is_stand_in = known_architecture(model, catalog)
    if not workload["architecture"]:  # neither the hub nor its cache had the config
        workload["architecture"], is_stand_in = near_architecture(model, catalog), True
    if is_stand_in:
        draft.guess("workloads[0].architecture", "ways_in.stands_for", model=model, record=workload["architecture"])
        return
    draft.notes.append(Fact("--model", Message.of("ways_in.of_catalog", model=model, record=workload["architecture"])))


def _formats(draft: _Draft, workload: dict[str, Any], sources: Sources, catalog: Catalog) -> None:
    """State the formats of weights and KV cache that an engine was launched or measured with; those of the checkpoint, as a guess, where neither says.

    Without an engine weights in 16 bit may be narrowed to 8, which is a guess too.
    """
    log = sources.log
    if log is None and sources.launch is None:
        published = _published(workload, sources, catalog)
        workload["precision"] = ["fp8", WIDE] if published == WIDE else [published]
        draft.guess("workloads[0].precision", f"ways_in.guess_formats_{'open' if published == WIDE else 'published'}")
        return
    if "precision" not in workload:
        stated = log.weights if log is not None else ""
        workload["precision"] = [stated or _published(workload, sources, catalog)]
        if not stated:
            code = "ways_in.guess_weights" if sources.launch is None else "ways_in.guess_weights_of_launch"
            draft.guess("workloads[0].precision", code)
    if "kv_precision" in workload or log is None:
        return
    workload["kv_precision"] = [log.cache or FORMATS[workload["precision"][0]].cache]
    if not log.cache:
        draft.guess("workloads[0].kv_precision", "ways_in.guess_cache_format")


def _published(workload: Mapping[str, Any], sources: Sources, catalog: Catalog) -> str:
    """Return the format in which the weights are published: as the model's name says, its config or its record; 16 bit where none does."""
    served = sources.launch.model if sources.launch else sources.log.model if sources.log else ""
    if named := format_in_name(sources.model or served):
        return named
    if sources.config is not None:
        try:
            return str(from_config(sources.config[1], sources.config[0])["text"].get("weights") or WIDE)
        except CatalogError:  # reported when the spec is checked
            return WIDE
    return catalog.get("architectures", workload["architecture"]).words("weights") or WIDE


def _demand(draft: _Draft, workload: dict[str, Any], sources: Sources) -> None:
    """State the demand: users, else the rate of the trace, else a guess; and its shape over day and week."""
    trace = sources.trace
    profile = None if trace is None or trace.profile is None else [round(weight, 4) for weight in trace.profile]
    demand: dict[str, Any] = {}
    if sources.rate:
        demand["requests_per_s"] = sources.rate
    elif sources.users:
        demand["users"] = _users(draft, sources.users, has_profile=profile is not None)
    elif trace is not None and trace.rate is not None:
        demand["requests_per_s"] = float(f"{trace.rate:.6g}")
    elif sources.log is not None and sources.log.rate:
        demand["requests_per_s"] = float(f"{sources.log.rate:.4g}")
        draft.guess("workloads[0].demand.requests_per_s", "ways_in.guess_rate_of_log")
    else:
        demand["requests_per_s"] = RATE
        draft.guess("workloads[0].demand.requests_per_s", "ways_in.guess_rate")
    if profile is not None:
        demand["profile"] = profile
    elif sources.rate or not sources.users:
        draft.guess("workloads[0].demand", "ways_in.guess_flat")
    if trace is not None and trace.week is not None and min(trace.week) > 1e-3:
        demand["week"] = [round(weight, 4) for weight in trace.week]
    workload["demand"] = demand


def _users(draft: _Draft, count: int, *, has_profile: bool) -> dict[str, Any]:
    """State the number of users, with guesses at how many are at work at once, at their requests, and at their hours without a profile."""
    users: dict[str, Any] = {"count": count}
    guesses: dict[str, tuple[str, float]] = {
        "share_at_once": ("ways_in.guess_share_at_once", SHARE_AT_ONCE),
        "requests_per_hour": ("ways_in.guess_requests_per_hour", REQUESTS_PER_HOUR),
    }
    if not has_profile:
        guesses |= {
            "peak_hour": ("ways_in.guess_peak_hour", PEAK_HOUR),
            "least_share_at_once": ("ways_in.guess_least_share", LEAST_SHARE_AT_ONCE),
        }
    for key, (code, value) in guesses.items():
        users[key] = value
        draft.guess(f"workloads[0].demand.users.{key}", code)
    return users


def _lengths(draft: _Draft, workload: dict[str, Any], sources: Sources) -> None:
    """State the lengths and the reuse of prefixes: of the trace, else guesses within the context that the engine was launched with."""
    trace, log = sources.trace, sources.log
    if sources.lengths is not None:
        workload["lengths"] = dict(zip(("input", "output"), sources.lengths, strict=True))
        return
    if trace is None and log is not None and log.input and log.output:
        workload["lengths"] = {"input": log.input, "output": max(2, log.output)}
        for key in ("input", "output"):
            draft.guess(f"workloads[0].lengths.{key}", "ways_in.guess_lengths_of_log")
        return
    if trace is None:
        most = (sources.launch.most_context if sources.launch else 0) or 10 * (INPUT + OUTPUT)
        workload["lengths"] = {"input": max(1, min(INPUT, most * 3 // 4)), "output": max(2, min(OUTPUT, most // 4))}
        for key in ("input", "output"):
            draft.guess(f"workloads[0].lengths.{key}", "ways_in.guess_lengths")
        return
    lengths: dict[str, Any] = {
        "input": max(1, round(trace.input.mean)),
        "output": max(2, round(trace.output.mean)),
    }
    for key, figures in (("input", trace.input), ("output", trace.output)):
        lengths[f"{key}_cv"] = round(min(figures.cv, MOST_CV), 3)
        if figures.cv > MOST_CV:
            draft.guess(f"workloads[0].lengths.{key}_cv", "ways_in.guess_cv", cv=figures.cv, most=MOST_CV)
    if max(trace.input.cv, trace.output.cv) <= MOST_CV and len(trace.histogram) > 1:
        prompt = sum(band.share * band.input_mean for band in trace.histogram)
        answer = sum(band.share * band.output_mean for band in trace.histogram)
        lengths = {"input": max(1, round(prompt)), "output": max(2, round(answer))}  # variations follow from the bands
        lengths["histogram"] = [_band(band) for band in trace.histogram]
    workload["lengths"] = lengths
    reuse = trace.reuse
    if reuse is not None and reuse.hit_rate > 0.0 and workload["lengths"]["input"] > 1:
        held = min(round(reuse.prefix_tokens), workload["lengths"]["input"] - 1)
        share = reuse.hit_rate * reuse.prefix_tokens / held
        workload["cache"] = {"prefix_tokens": held, "hit_rate": round(min(share, 1.0), 4)}
        draft.guess("workloads[0].cache.hit_rate", "ways_in.guess_cache")


def _band(band: HistogramBand) -> dict[str, int | float]:
    """Write a band of the prompt length as a spec has it; its share keeps its digits, for all add up to 1."""
    return {
        "up_to": band.most,
        "share": band.share,
        "input": round(band.input_mean, 1),
        "input_cv": round(min(band.input_cv, MOST_CV), 3),
        "output": round(band.output_mean, 1),
        "output_cv": round(min(band.output_cv, MOST_CV), 3),
    }


def _fleet(draft: _Draft, sources: Sources, region: str, catalog: Catalog) -> None:
    """State sites, systems that exist with a guess at their age, instances with guesses at their contracts, and offers."""
    fleet = sources.fleet
    if fleet is None:
        measured = sources.log.systems if sources.log else ()
        draft.document["sites"] = [{"region": region, "systems": list(sources.systems or measured or SYSTEMS)}]
        if not sources.systems:
            draft.guess("sites[0].systems", "ways_in.guess_systems_of_log" if measured else "ways_in.guess_systems")
        if not sources.region:
            draft.guess("sites[0].region", "ways_in.guess_region")
        return
    by_site: dict[str, list[str]] = {}
    for system, place in [*fleet.counts, *((row["system"], (row.get("regions") or [""])[0]) for row in fleet.offers)]:
        systems = by_site.setdefault(place or region, [])
        if system not in systems:
            systems.append(system)
    draft.document["sites"] = [{"region": place, "systems": systems} for place, systems in by_site.items()]
    if region in by_site and not sources.region and any(not place for _, place in fleet.counts):
        draft.guess(f"sites[{list(by_site).index(region)}].region", "ways_in.guess_region")
    owned = [
        {"system": system, "region": place or region, "count": count, "age": AGE}
        for (system, place), count in fleet.counts.items()
        if not is_cloud_instance(system)
    ]
    _rented(draft, fleet, region, catalog)
    if owned:
        draft.document["owned"] = owned
        for i in range(len(owned)):
            draft.guess(f"owned[{i}].age", "ways_in.guess_age")
    if fleet.offers:
        draft.document["offers"] = [
            {**row, "interruption_interval": INTERRUPTED} if row["how"] == "spot" else dict(row) for row in fleet.offers
        ]
        for i, row in enumerate(fleet.offers):
            if row["how"] == "spot":
                draft.guess(f"offers[{i}].interruption_interval", "ways_in.guess_interruptions")


def _rented(draft: _Draft, fleet: Fleet, region: str, catalog: Catalog) -> None:
    """State the instances of clouds as rented, with guesses at price, end, notice and fee of their contracts."""
    rows: list[dict[str, Any]] = []
    for (system, place), count in fleet.counts.items():
        if not is_cloud_instance(system):
            continue
        path, known = f"rented[{len(rows)}]", fleet.rents.get((system, place))
        rent = f"{known:g} USD/h" if known else usual_rent(system, place or region, catalog)
        terms = {"price": rent, "until": UNTIL, "notice": NOTICE, "exit_fee": 0}
        rows.append({"system": system, "region": place or region, "count": count, **terms})
        for key in terms:
            if key != "price" or not known:
                draft.guess(f"{path}.{key}", f"ways_in.guess_rented_{key}")
    if rows:
        draft.document["rented"] = rows
