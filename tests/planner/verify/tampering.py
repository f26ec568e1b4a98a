"""Change one value of a plan at a time, beyond any tolerance, and tell whether `flopwatt verify` notices or says that it does not check it.

The plans are small ones, of each feature that has a part of its own in a plan. As a program it takes many changes and prints those that went unnoticed:

    python -m tests.planner.verify.tampering 5000
"""

from __future__ import annotations

import copy
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
ABSENT = object()
OF_THE_QUESTION = ("spec",)  # another question, not another answer: see `verify`
WORDS = ("another", "", "x", "DGX H1000", "us-nowhere", "9.9.9")


# -- plans -------------------------------------------------------------------------------------------------------------


def small() -> dict[str, Any]:
    """Return the spec of `tests/golden`: a serving and a training workload, and a limit of every kind."""
    found: dict[str, Any] = json.loads((ROOT / "tests/golden/small_spec.json").read_text(encoding="utf-8"))
    return found


def carbon() -> dict[str, Any]:
    return small() | {"objective": {"minimise": "carbon"}}


def throughput() -> dict[str, Any]:
    return small() | {"objective": {"maximise": "throughput"}, "workloads": small()["workloads"][:1]}


def infeasible() -> dict[str, Any]:
    document = small()
    document["sites"][0]["power"] = "1 kW"
    return document


def halls() -> dict[str, Any]:
    """Return a spec with racks, storage and a job that pays for pre-emption."""
    document = small()
    document["sites"][0] |= {"rack_positions": 20, "rack_power": "40 kW", "storage_bandwidth": "40 GB/s"}
    document["workloads"][1]["preemption"] = {}
    return document


def _tiny(requests_per_s: float, **changes: Any) -> dict[str, Any]:
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": requests_per_s},
        "lengths": {"input": 500, "output": 200}, "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["bf16"], "disaggregation": "never",
    }  # fmt: skip
    bought = {"system": "DGX H100", "how": "buy", "price": "310000 USD"}
    site = {"region": "us-virginia", "systems": ["DGX H100"]}
    return {"name": "tiny", "workloads": [chat], "sites": [site], "offers": [bought], "solver": {"gap": 1e-6}} | changes


def api() -> dict[str, Any]:
    gateway = {
        "name": "gateway", "region": "us-virginia", "workloads": ["chat"], "input": "0.01 USD/1M tokens", "output": "0.05 USD/1M tokens",
        "latency": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "20 ms"}},
    }  # fmt: skip
    return _tiny(1, apis=[gateway])


def phases() -> dict[str, Any]:
    rented = {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "55 USD/h"}
    bought = {"system": "DGX H100", "how": "buy", "price": "310000 USD"}
    starts = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "180 d"}]
    return _tiny(3000, sites=[{"region": "us-virginia"}], offers=[bought, rented], phases=starts)


def robust() -> dict[str, Any]:
    return _tiny(2000, robust={"scenarios": 100})


def quality() -> dict[str, Any]:
    scores = {"Llama-3.2-1B": 30, "Llama-3.2-3B": 45, "Meta-Llama-3.1-8B": 60}
    document = _tiny(20_000)
    document["workloads"][0] |= {
        "alternatives": [
            {"architecture": name, "quality": score, "source": "made up"} for name, score in scores.items()
        ],
        "quality_floor": {"least": 40, "source": "made up"},
    }
    return document


def meter() -> dict[str, Any]:
    """Return a spec with a meter, contracts and a battery on two typical days of a made-up year, and its dispatch."""
    hours = range(8760)
    price = [30 + 20 * ((h // 24) % 60) / 60 - 25 * (10 <= h % 24 <= 15) for h in hours]
    series = {
        "start": "2027-01-01T00",
        "columns": {"price_usd_per_mwh": price, "carbon_g_per_kwh": [400 - 200 * (10 <= h % 24 <= 15) for h in hours]},
    }
    block = {
        "connection": "40 kW", "demand_charge": "15 USD/kW-month",
        "ppa": [{"name": "sun", "capacity": "100 kW", "price": "0.02 USD/kWh", "profile": "solar", "carbon": "10 g/kWh"}],
        "battery": {"energy": "200 kWh", "power": "50 kW", "energy_price": "60 USD/kWh", "power_price": "20 USD/kW", "life": "15 years"},
    }  # fmt: skip
    site = {
        "region": "us-virginia",
        "systems": ["DGX H100"],
        "electricity": block,
        "hourly": "made-up.csv",
        "delivery": "0 USD/kWh",
    }
    horizon = {"calendar": "representative-days", "days": 2, "years": 1}
    return _tiny(300, sites=[site], horizon=horizon, series={"made-up.csv": series})


def lines() -> dict[str, Any]:
    """Return a spec with lines, spread over zones, and a zone that may fail."""
    document = small()
    chat = document["workloads"][0] | {
        "demand": {"requests_per_s": 100, "profile": [1] * 12 + [3] * 12},
        "origins": [{"region": "us-texas", "share": 0.6}, {"region": "us-california", "share": 0.4}],
        "security": "encrypted", "traffic": {"telemetry": {"rate": "300 Mbit/s"}},
        "spread": {"zones": 2, "largest_share": 0.7, "survive": 1},
    }  # fmt: skip
    sites = [
        {"region": "us-oregon", "systems": ["DGX H100"]},
        {"region": "us-texas", "systems": ["DGX H100"], "power": "60 kW", "zone": "south"},
        {"region": "us-arizona", "systems": ["DGX H100"], "zone": "south"},
    ]
    kinds = [
        {"kind": "dedicated line", "setup": "0 s", "units": 4},
        {"kind": "IPSec VPN", "between": ["us-texas", "us-oregon"], "capacity": "200 Mbit/s"},
        {"kind": "SD-WAN"},
        {"kind": "TLS"},
    ]
    return {
        "name": "two zones", "workloads": [chat], "sites": sites, "lines": kinds, "solver": {"gap": 0.01},
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
    }  # fmt: skip


SPECS: dict[str, Callable[[], dict[str, Any]]] = {
    spec.__name__: spec
    for spec in (small, carbon, throughput, infeasible, halls, api, phases, robust, quality, meter, lines)
}


# -- changes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One value of a plan: its place, as keys and positions, and what stands there instead; ABSENT where it is taken out."""

    path: tuple[str | int, ...]
    value: Any
    kind: str

    @property
    def place(self) -> str:
        """Write the place as `verify` writes it: "fleet[0].count"."""
        text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return text.removeprefix(".")

    def made(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the document with the change in it; what it does not touch is shared with the original."""
        return _made(document, self.path, self.value)


def _made(node: Any, path: Sequence[str | int], value: Any) -> Any:
    copied = copy.copy(node)
    head, rest = path[0], path[1:]
    if rest:
        copied[head] = _made(node[head], rest, value)
    elif value is ABSENT:
        del copied[head]
    elif isinstance(copied, list) and head == len(copied):
        copied.append(value)
    else:
        copied[head] = value
    return copied


def leaves(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield every value of a document with its path, objects and lists among them."""
    if path:
        yield path, node
    inner = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from leaves(value, (*path, key))


def shape_of(path: Sequence[str | int]) -> str:
    """Write a path without positions: "fleet[].count"."""
    return re.sub(r"\[\d+\]", "[]", Change(tuple(path), None, "").place)


def changes(document: Mapping[str, Any], seed: int) -> Iterator[Change]:
    """Draw changes without end: first a kind of place, each as likely as any other, then one such place, then what is done to it."""
    by_shape: dict[str, list[tuple[tuple[str | int, ...], Any]]] = defaultdict(list)
    for path, value in leaves(document):
        if path[0] not in OF_THE_QUESTION:
            by_shape[shape_of(path)].append((path, value))
    draw, shapes = random.Random(seed), sorted(by_shape)
    while True:
        path, value = draw.choice(by_shape[draw.choice(shapes)])
        kind, changed = draw.choice(list(alternatives(value, draw)))
        if kind == "doubled":
            yield Change((*path, len(value)), changed, kind)
        elif kind == "dropped":
            yield Change((*path, changed), ABSENT, kind)
        else:
            yield Change(path, changed, kind)


def alternatives(value: Any, draw: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield (kind, other value) for a value: numbers off by a ten-thousandth and by more, other words, rows that are gone or twice there."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, (int, float)):
        if isinstance(value, int):
            yield "off by one", value + draw.choice((-1, 1))
            yield "bigger", 10 * value + 7
        elif value:
            yield "bent", value * (1 + draw.choice((-1e-4, 1e-4)))
            yield "doubled in size", 2 * value
            yield "turned", -value
        else:
            yield "no zero", draw.choice((1e-3, 1.0, -1.0))
    elif isinstance(value, str):
        yield "other word", draw.choice([word for word in WORDS if word != value])
        yield "longer", value + "x"
    elif value is None:
        yield "no null", draw.choice((1.0, 0, "x"))
    elif isinstance(value, list) and value:
        yield "doubled", copy.deepcopy(draw.choice(value))
        yield "dropped", draw.randrange(len(value))
    elif isinstance(value, Mapping) and value:
        yield "dropped", draw.choice(sorted(value))
    else:
        yield "no empty", "x"
    if value is not None:
        yield "null", None


def listed(place: str, patterns: Sequence[str]) -> bool:
    """Tell whether a place is, or lies within, one of the places that `verify` says it did not check; "[]" stands for any position."""
    shape = re.sub(r"\[\d+\]", "[]", place)
    return any(shape == pattern or shape.startswith((f"{pattern}.", f"{pattern}[")) for pattern in patterns)


def unnoticed(document: Mapping[str, Any], count: int, seed: int) -> list[str]:
    """Make so many changes, one at a time, and list those that `verify` neither notices nor says that it does not check."""
    from planner.errors import SpecError
    from planner.plan import parse_plan
    from planner.verify.plan import verified

    missed, drawn = [], changes(document, seed)
    for _ in range(count):
        change = next(drawn)
        try:
            found = verified(parse_plan(json.dumps(change.made(document))))
        except SpecError:
            continue
        if found.holds and not listed(change.place, [part.path for part in found.unchecked]):
            missed.append(f"{change.place} {change.kind}: {json.dumps(change.value, default=str)[:80]}")
    return missed


def main(count: int) -> int:
    """Make so many changes to the plans of all specs, in equal parts, and print those that went unnoticed; returns their number."""
    import planner

    missed = []
    for seed, (name, spec) in enumerate(sorted(SPECS.items())):
        document = json.loads(planner.solve(spec()).to_json())
        found = unnoticed(document, count // len(SPECS), seed)
        print(f"{name}: {len(found)} of {count // len(SPECS)} changes unnoticed", flush=True)
        missed += [f"{name}: {line}" for line in found]
    print("\n".join(missed))
    return len(missed)


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]))))
