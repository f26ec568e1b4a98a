"""Random questions of three sizes as ordinary specs, for `benchmarks/scale.py`. Nothing here is a fact about hardware or prices.

Systems: records of 8-chip nodes whose speed, memory, power and price are drawn around one another, bought on one network design.
Sites and origins: regions of the catalog. Hours: a number of days, evenly spaced over the year, with the same demand by local hour on
each and prices of electricity from one profile by region with noise in each hour. Serving may use any site that is near enough; a job
only the sites that hold its data, and only between its start and its deadline. Power and supply are set against the systems that the
demand needs, so that both bind. With phases the year is cut into that many, at whole sampled days where there are enough: demand grows
from 40 % to that of a question without phases; every third system is on sale from the second phase on, its supply spread over the
phases that are left, and later purchases cost less.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog, shipped_catalog
from catalog.units import DAY_S
from planner.problem.calendar import DAYS_PER_YEAR, SLOTS_PER_DAY, sampled_days

START = date(2027, 1, 1)
# architecture, tokens of prompt and answer, p95 of the time to first token and per output token, share of the peak at 16 bit that it reaches
CLASSES = (
    ("Llama-3.3-70B-Instruct", 1200, 300, "3 s", "60 ms", 0.43),
    ("Qwen3-32B", 3000, 600, "2500 ms", "45 ms", 0.37),
    ("Qwen3-235B-A22B", 2000, 500, "4 s", "50 ms", 0.065),
    ("Meta-Llama-3.1-8B", 800, 200, "2 s", "40 ms", 0.58),
    ("gpt-oss-120b", 2500, 700, "3 s", "40 ms", 0.13),
    ("Mixtral-8x22B-v0.1", 1500, 400, "5 s", "80 ms", 0.28),
)
JOBS = ("Qwen3-8B", "Llama-2-13b-hf", "Qwen3-14B", "Qwen3-32B")
PUE = 1.3  # about that of the regions
MOST_SYSTEMS = 512  # systems of one kind: as many as one tier of the network joins
NETWORK = {"radix": MOST_SYSTEMS, "port_bytes_per_s": "50 GB/s", "switch_price": "300000 USD", "link_price_one_tier": "1500 USD",
           "link_price_two_tier": "3000 USD", "switch_power_w": "9 kW", "optic_power_w": "15 W"}  # fmt: skip
LOAD, SERVING = 100.0, 0.85  # systems needed per site, and the share of them that serves
PEAK = 1.25  # peak of a class over its mean, all origins together
POWER, SUPPLY = 0.9, 1.0  # what there is of both, over the need
LARGE = 10_000  # site hours from which a question is given 16 GB of memory; large ones took 8.6
TRAINING_EFFICIENCY = 0.44  # as in CLASSES; these only serve to set power and supply against the need


@dataclass(frozen=True, slots=True)
class Size:
    systems: int
    points: int
    sites: int
    hours: int
    classes: int
    origins: int
    jobs: int
    electricity: bool = False  # whether it is a decision
    calendar: str = "sampled-days"
    spread: bool = False  # whether lines are rented and serving survives the failure of a zone

    @property
    def days(self) -> int:
        return self.hours // SLOTS_PER_DAY


SIZES = {
    "small": Size(6, 2, 4, 24, 3, 4, 3),
    "medium": Size(20, 3, 15, 168, 4, 10, 8),
    "large": Size(40, 3, 50, 672, 6, 25, 20),
    "features": Size(10, 3, 8, 192, 3, 6, 3, electricity=True, calendar="representative-days"),
    "features-lines": Size(10, 3, 8, 192, 3, 6, 3, electricity=True, calendar="representative-days", spread=True),
    "features-large": Size(20, 3, 15, 168, 4, 10, 8, electricity=True, spread=True),
    "year": Size(4, 3, 3, 8760, 2, 3, 1, electricity=True, calendar="full-year"),
}


def question(size: Size, seed: int, folder: Path, gap: float, time_limit_s: float, phases: int = 1) -> dict[str, Any]:
    """Draw the spec; write the hourly files that it names into `folder`."""
    document = _question(size, seed, folder, gap, time_limit_s)
    if size.electricity:
        _buy_electricity(document, np.random.default_rng([seed, 1]))
    if size.spread:
        _spread_over_lines(document)
    return document if phases == 1 else _in_phases(document, size, phases)


def _buy_electricity(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Give each site a connection, a demand charge, a battery and a contract with a solar plant, sized against its power."""
    for site in document["sites"]:
        power_w = float(site["power"].split()[0])
        site["electricity"] = {
            "connection": f"{1.05 * power_w:.0f} W",
            "demand_charge": f"{rng.uniform(8, 16):.2f} USD/kW-month",
            "battery": {"energy": f"{2e-3 * power_w:.0f} kWh", "power": f"{0.4e-3 * power_w:.0f} kW", "energy_price": f"{rng.uniform(120, 220):.0f} USD/kWh"},
            "ppa": [{"name": "sun", "capacity": f"{0.8e-3 * power_w:.0f} kW", "price": f"{rng.uniform(0.03, 0.06):.4f} USD/kWh", "profile": "solar"}],
        }  # fmt: skip


def _spread_over_lines(document: dict[str, Any]) -> None:
    """Offer lines between any two regions, and ask that serving uses two zones and survives the failure of one."""
    document["lines"] = [{"kind": "dedicated line", "units": 50}, {"kind": "internet TLS"}]
    for workload in document["workloads"]:
        if workload["kind"] == "serving":
            workload["spread"] = {"zones": 2, "least_share": 0.1, "survive": 1}


def _in_phases(document: dict[str, Any], size: Size, count: int) -> dict[str, Any]:
    """Turn the question into one with a build-out in phases."""
    days = np.rint(np.linspace(0, DAYS_PER_YEAR, max(size.days, count) + 1)).astype(int)[:-1]
    starts = days[np.rint(np.linspace(0, len(days), count + 1)).astype(int)[:-1]]
    phases = [{"name": f"phase {p + 1}", "start": f"{start} d"} for p, start in enumerate(starts)]
    reached = {phase["name"]: round(float(share), 4) for phase, share in zip(phases, np.linspace(0.4, 1.0, count))}
    for workload in document["workloads"]:
        if workload["kind"] == "serving":
            workload["demand"]["factor_by_phase"] = reached
    for i, offer in enumerate(document["offers"]):
        offer["price_change_per_year"] = -0.2
        if i % 3 == 2:
            offer["available_from"] = phases[1]["start"]
            offer["supply_by_phase"] = {phase["name"]: -(-offer["supply"] // (count - 1)) for phase in phases[1:]}
    return document | {"name": f"{document['name']}, {count} phases", "phases": phases}


def _question(size: Size, seed: int, folder: Path, gap: float, time_limit_s: float) -> dict[str, Any]:
    rng, catalog = np.random.default_rng(seed), shipped_catalog()
    regions = [name for name in catalog.names("regions") if name != "cn-national"]
    sites = [str(name) for name in rng.permutation(regions)[: size.sites]]
    origins = [str(name) for name in rng.permutation(regions)[: size.origins]]
    systems = _systems(rng, size.systems)
    speed = np.array([system.flop_per_s for system in systems])
    need = LOAD * size.sites * float(speed.mean())  # peak speed of the systems that all work would take
    for site in sites:
        _write_prices(rng, catalog, site, size, folder / f"{site}.csv")
    power = (
        _parts(rng, size.sites, 0.4)
        * PUE
        * POWER
        * need
        * float(np.mean([system.power_w for system in systems]) / speed.mean())
    )
    supply = rng.uniform(0.4, 1.6, size.systems)
    supply *= SUPPLY * need / float(supply @ speed)
    served, trained = (
        _parts(rng, size.classes, 0.3) * SERVING / PEAK * need,
        _parts(rng, size.jobs, 0.4) * (1 - SERVING) * need,
    )
    return {
        "name": f"{size.systems} systems, {size.sites} sites, {size.hours} hours, seed {seed}",
        "horizon": {"start": START.isoformat(), "calendar": size.calendar} | ({} if size.calendar == "full-year" else {"days": size.days}),
        "workloads": [
            *(_serving(rng, i, origins, catalog, flop_per_s) for i, flop_per_s in enumerate(served)),
            *(_training(rng, j, size, sites, catalog, flop_per_s) for j, flop_per_s in enumerate(trained)),
        ],
        "sites": [
            {
                "region": site, "power": f"{power[i]:.0f} W", "topologies": ["rail-only"], "fabric": "Made-up network", "hourly": f"{site}.csv",
                "fixed_cost": f"{rng.uniform(0.5, 2.0) * 2e3 * LOAD:.0f} USD/year",
            }
            for i, site in enumerate(sites)
        ],
        "offers": [
            {"system": system.name, "how": "buy", "price": f"{system.price:.0f} USD", "supply": int(np.clip(round(amount), 2, MOST_SYSTEMS))}
            for system, amount in zip(systems, supply, strict=True)
        ],
        "limits": {"export_control": False},
        "catalog": {"chips": [system.chip() for system in systems], "systems": [system.record() for system in systems], "fabrics": [{"name": "Made-up network", "figures": _figures(**NETWORK)}]},
        "solver": {
            "gap": gap, "time_limit": f"{time_limit_s:g} s", "points_per_system": size.points,
            "memory": "16 GB" if size.sites * size.hours >= LARGE else "4 GB" if size.electricity else "2 GB",
        },
    }  # fmt: skip


def _parts(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    """Draw shares of a whole, each within about `spread` of the mean."""
    drawn = rng.uniform(1 - spread, 1 + spread, count)
    return drawn / drawn.sum()


@dataclass(frozen=True, slots=True)
class _System:
    name: str
    flop_per_s: float  # a node at 16 bit
    hbm_bytes: float  # a chip
    hbm_bytes_per_s: float
    power_w: float
    price: float

    def chip(self) -> dict[str, Any]:
        tera, giga = 1e12, 1e9
        return {"name": f"{self.name} chip", "figures": _figures(
            bf16_flop_per_s=f"{self.flop_per_s / 8 / tera:.1f} TFLOP/s", fp8_flop_per_s=f"{self.flop_per_s / 4 / tera:.1f} TFLOP/s",
            hbm_bytes=f"{self.hbm_bytes / giga:.0f} GB", hbm_bytes_per_s=f"{self.hbm_bytes_per_s / giga:.0f} GB/s", tdp_w=f"{self.power_w / 12:.0f} W",
            scaleup_bytes_per_s="400 GB/s", scaleup_chips="8 chips", embodied_carbon_kg="150 kg",
        )}  # fmt: skip

    def record(self) -> dict[str, Any]:
        figures = _figures(
            chips="8 chips", nic_bytes_per_s="50 GB/s", nic_ports=8, power_w=f"{self.power_w / 1e3:.2f} kW"
        )
        return {
            "name": self.name,
            "text": {"chip": f"{self.name} chip", "form": "node", "cooling": "air"},
            "figures": figures,
        }


def _figures(**values: Any) -> dict[str, Any]:
    return {name: {"value": value, "note": "made up"} for name, value in values.items()}


def _systems(rng: np.random.Generator, count: int) -> list[_System]:
    found = []
    for i in range(count):
        flops = 8 * rng.uniform(300e12, 1500e12)
        found.append(_System(
            name=f"Node {i + 1:02d}",
            flop_per_s=flops,
            hbm_bytes=float(rng.choice([80e9, 96e9, 141e9, 192e9])),
            hbm_bytes_per_s=flops / 8 / 300 * rng.uniform(0.8, 1.3),
            power_w=flops / 8e15 * 10e3 * rng.uniform(0.7, 1.3) + 2e3,
            price=flops / 8e15 * 250e3 * rng.uniform(0.75, 1.25) + 40e3,
        ))  # fmt: skip
    return found


def _write_prices(rng: np.random.Generator, catalog: Catalog, region: str, size: Size, path: Path) -> None:
    """Write a row for each hour of the sampled days, or of all: a mean, a profile of the day by local hour, and noise."""
    mean, shift = rng.uniform(40.0, 120.0), rng.uniform(-2, 2)
    local = (np.arange(SLOTS_PER_DAY) + float(catalog.get("regions", region).value("longitude")) / 15) % 24
    profile = 1 + 0.25 * np.sin((local - 12 + shift) * np.pi / 12) + 0.1 * np.sin((local - 3) * np.pi / 6)
    rows = ["timestamp_utc,price_usd_per_mwh"]
    days = np.unique(sampled_days(size.days)) if size.calendar == "sampled-days" else np.arange(DAYS_PER_YEAR)
    for day in days:
        prices = mean * profile * (1 + 0.15 * rng.standard_normal(SLOTS_PER_DAY))
        stamp = (START + timedelta(days=int(day))).isoformat()
        rows += [f"{stamp}T{hour:02d}:00Z,{max(price, 1.0):.2f}" for hour, price in enumerate(prices)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _parameters(catalog: Catalog, architecture: str) -> float:
    """Count the parameters active for one token."""
    from models.transformer.attention import forward_flops_per_token
    from planner.resolve.architectures import shape_of
    from planner.resolve.ledger import Ledger

    return float(forward_flops_per_token(shape_of(catalog.get("architectures", architecture), Ledger(catalog)), 1)) / 2


def _serving(
    rng: np.random.Generator, index: int, origins: list[str], catalog: Catalog, flop_per_s: float
) -> dict[str, Any]:
    """`flop_per_s`: peak speed of the systems that the class needs on average; +-40 % over the day by local hour."""
    architecture, prompt, answer, ttft, tpot, efficiency = CLASSES[index]
    rate = flop_per_s * efficiency / (2 * _parameters(catalog, architecture) * (prompt + answer))
    shares = np.round(rng.dirichlet(np.full(len(origins), 3.0)) + 0.005, 4)
    shares = np.round(shares / shares.sum(), 6)
    shares[-1] = round(1 - float(shares[:-1].sum()), 6)
    top = rng.uniform(11, 20)
    return {
        "name": f"class {index + 1}", "kind": "serving", "architecture": architecture,
        "demand": {"requests_per_s": round(float(rate), 3), "profile": [round(float(1 + 0.4 * np.cos((hour - top) * np.pi / 12)), 4) for hour in range(24)]},
        "lengths": {"input": prompt, "output": answer},
        "origins": [{"region": name, "share": float(share)} for name, share in zip(origins, shares, strict=True)],
        "slo": {"ttft": {"p95": ttft}, "tpot": {"p95": tpot}},
        "precision": ["fp8"], "disaggregation": "never",
    }  # fmt: skip


def _training(
    rng: np.random.Generator, index: int, size: Size, sites: list[str], catalog: Catalog, flop_per_s: float
) -> dict[str, Any]:
    """`flop_per_s`: peak speed of the systems that the job needs; it runs in a part of the year, at some of the sites."""
    architecture = JOBS[index % len(JOBS)]
    edges = np.rint(np.linspace(0, DAYS_PER_YEAR, size.days + 1)).astype(int)
    length = max(int(rng.uniform(0.3, 0.7) * size.days), 1)
    first = int(rng.integers(0, size.days - length + 1))
    start, end = int(edges[first]), int(edges[first + length])
    tokens = flop_per_s * TRAINING_EFFICIENCY * (end - start) * DAY_S / (6 * _parameters(catalog, architecture))
    return {
        "name": f"job {index + 1}", "kind": "training", "architecture": architecture, "tokens": f"{tokens / 1e12:.4g}T",
        "start": f"{start} d", "deadline": f"{end} d", "precision": ["bf16"],
        "residency": sorted(str(name) for name in rng.choice(sites, max(3, size.sites // 5), replace=False)),
    }  # fmt: skip
