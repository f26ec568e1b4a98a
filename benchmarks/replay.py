"""Hold the closed forms of latencies against the replay of requests at drawn points of serving, and on three shapes of arrivals and lengths.

A point has one pool, one pool with a prefix cache, or two pools; utilisation is its rate over the highest that the closed forms sustain. Constants are those of the catalog.
Run: python benchmarks/replay.py [--points N] [--requests N] [--seed S] [--rows FILE.csv]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

from catalog.lookup import Catalog
from models.serving import examples
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import DisaggregatedPoint, TransferLink, WorkerPool, disaggregated
from models.serving.kv_cache import cache_bytes_per_chip
from models.serving.percentiles import latency_s
from models.serving.prefix_cache import PrefixCache, Tier, Zipf
from models.serving.workload import Lengths, Precisions
from planner.replay.requests import Requests, Stream, drawn
from planner.replay.simulate import Run, Server, simulate
from planner.replay.steps import Worker
from planner.tables import as_csv, as_text

PRECISIONS = Precisions("bf16", "bf16")
LINK = TransferLink(25e9)
BANDS = ((0.3, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.95))
KINDS = ("one pool", "prefixes", "two pools")
FIGURES = tuple((metric, share) for metric in ("ttft", "tpot", "e2e") for share in (0.5, 0.95))
GRID = np.geomspace(1e-3, 1.0, 300)
PREFIXES = 200
MOST_VARIATION = 3.0
DENSE_LAYOUTS = ((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (1, 2, 1, 1))
EXPERT_LAYOUTS = ((1, 1, 1, 1), (1, 1, 4, 4), (2, 1, 2, 4))
WORKERS = ((1, 1), (2, 1), (1, 2), (3, 2))


@dataclass(frozen=True, slots=True)
class Point:
    """A drawn point of serving."""

    kind: str
    experts: bool
    layout: tuple[int, int, int, int]
    lengths: Lengths
    utilisation: float
    workers: tuple[int, int]
    prefix_share: float
    exponent: float
    kept_share: float  # part of the memory for caches in which prefixes stay
    constants: ServingConstants
    arrival_scv: float = 1.0

    @property
    def worker(self) -> Worker:
        arch = examples.MOE if self.experts else examples.DENSE
        return Worker(arch, examples.CHIP, ServingLayouts(*self.layout), self.constants, PRECISIONS, self.lengths)

    @property
    def cache(self) -> PrefixCache | None:
        if self.kind != "prefixes":
            return None
        w = self.worker
        free = float(cache_bytes_per_chip(w.arch, w.chip, w.layouts, "bf16", w.constants))
        tokens = max(round(self.prefix_share * float(self.lengths.prompt)), 1)
        tier = Tier(self.kept_share * free, np.inf, 0.0, in_hbm=True)
        return PrefixCache(float(tokens), Zipf(PREFIXES, self.exponent), (tier,), int(w.layouts.chips))

    @property
    def server(self) -> Server:
        w = self.worker
        if self.kind != "two pools":
            return Server(w, cache=self.cache)
        return Server(w, w, self.workers, LINK)

    def group(self, batch) -> DisaggregatedPoint:
        w = self.worker
        prefill, decode = (WorkerPool(w.chip, w.layouts, count, w.constants) for count in self.workers)
        return disaggregated(
            w.arch, prefill, decode, batch, link=LINK, lengths=self.lengths, precisions=PRECISIONS, arrival_scv=self.arrival_scv
        )  # fmt: skip

    def at(self, batch) -> ServingPoint:
        if self.kind == "two pools":
            return self.group(batch).point
        w = self.worker
        return aggregated(
            w.arch, w.chip, w.layouts, batch, lengths=self.lengths, precisions=PRECISIONS, constants=w.constants, cache=self.cache,
            arrival_scv=self.arrival_scv,
        )  # fmt: skip

    def sustained(self) -> tuple[np.ndarray, np.ndarray]:
        """List batches that last, and their rates [1/s]: places, the prompt server and links have room."""
        batches = GRID * float(np.floor(self.at(1.0).slots))
        found = self.at(batches)
        if self.kind == "two pools":
            group = self.group(batches)
            lasts = (np.asarray(found.prefill_utilisation) < 1.0) & (
                found.requests_per_s * group.full_s < self.workers[0]
            )
            lasts &= found.requests_per_s * group.links_s < 1.0
        else:
            lasts = (found.prefill_load < 1.0) & (found.batch + found.requests_per_s * found.prompt_s <= found.slots)
        return batches[lasts], np.maximum.accumulate(found.requests_per_s)[lasts]

    def point(self) -> ServingPoint | None:
        """Find the closed form at the utilisation; None where no batch lasts."""
        batches, rates = self.sustained()
        if len(rates) < 2:
            return None
        return self.at(float(np.interp(self.utilisation * rates[-1], rates, batches)))


def drawn_points(count: int, seed: int, constants: ServingConstants) -> Iterator[Point]:
    """Draw points of serving."""
    rng = np.random.default_rng(seed)
    for place in range(count):
        kind, experts = KINDS[place % 3], bool(rng.random() < 0.4)
        layouts = EXPERT_LAYOUTS if experts else DENSE_LAYOUTS
        spreads = rng.choice([0.0, 0.25, 1.0], 2)
        # the part of a prompt beside its prefix varies by no more than a spec may state
        most = 1.0 - np.sqrt(spreads[0]) / MOST_VARIATION
        tokens = np.exp(rng.uniform(np.log([200, 50]), np.log([8000, 1000])))
        yield Point(
            kind, experts, layouts[rng.integers(len(layouts))],
            Lengths(float(round(tokens[0])), float(round(tokens[1])), float(spreads[0]), float(spreads[1])),
            float(rng.uniform(0.3, 0.95)), WORKERS[rng.integers(len(WORKERS))], float(rng.uniform(0.3, min(0.9, most))),
            float(rng.uniform(0.8, 1.1)), float(rng.uniform(0.05, 0.4)), constants,
        )  # fmt: skip


def differences(point: ServingPoint, run: Run) -> dict[str, float]:
    """Compute closed form over replay less one, by figure."""
    seen = {"ttft": run.ttft_s, "tpot": run.tpot_s, "e2e": run.e2e_s}
    return {
        f"{metric} p{100 * share:.0f}": float(latency_s(point, metric, share)) / float(np.quantile(seen[metric], share))
        - 1.0
        for metric, share in FIGURES
    }


def replayed(case: Point, point: ServingPoint, count: int, seed: int, requests: Requests | None = None) -> Run:
    rate = float(point.requests_per_s)
    if requests is None:
        cache = case.cache
        stream = Stream(
            rate,
            case.lengths,
            case.arrival_scv,
            PREFIXES if cache else 0,
            case.exponent,
            cache.prefix_tokens if cache else 0.0,
        )
        requests = drawn(stream, count, seed, rate * float(latency_s(point, "e2e", "mean")))
    return simulate(case.server, requests, 1, "random", seed, requests_per_s=rate)


def table(rows: Sequence[dict], by: str, keys: Sequence) -> list[dict]:
    """Summarise the differences: medians of their size, and the share within a fifth."""
    found = []
    for key in keys:
        chosen = [row for row in rows if row[by] == key]
        if chosen:
            sizes = {f"{m} p{100 * q:.0f}": np.abs([row[f"{m} p{100 * q:.0f}"] for row in chosen]) for m, q in FIGURES}
            found.append({by: key, "points": len(chosen), **{name: f"{np.median(each):.1%}" for name, each in sizes.items()},
                          "within 20 %": f"{np.mean([each <= 0.2 for each in sizes.values()]):.0%}"})  # fmt: skip
    return found


# -- shapes of traces --------------------------------------------------------------------------------------------------


def shapes(rate: float, count: int, seed: int) -> Iterator[tuple[str, Requests]]:
    """Draw three traces: a rate that swings by half between low and high, bursts, and chat mixed with long documents."""
    rng = np.random.default_rng(seed)
    plain = drawn(Stream(rate, Lengths(1000, 200, 1.0, 1.0)), count, seed)
    period = plain.arrivals_s[-1] / 4.0
    clock = plain.arrivals_s / period
    wave = clock + 0.5 / (2 * np.pi) * (1 - np.cos(2 * np.pi * clock))  # time at which so much has come, inverted below
    yield "swings by half", replace(plain, arrivals_s=period * np.interp(clock, wave, clock))
    yield "bursts, cv 2", drawn(Stream(rate, Lengths(1000, 200, 1.0, 1.0), arrival_scv=4.0), count, seed)
    long = rng.random(len(plain)) < 0.1
    yield "chat and documents", replace(
        plain, prompts=np.where(long, 5 * plain.prompts, plain.prompts * 5 // 9 + 1), outputs=np.where(long, plain.outputs, plain.outputs)
    )  # fmt: skip


def on_shapes(constants: ServingConstants, count: int, seed: int) -> list[dict]:
    """Compare on the three traces, the closed forms at the means and variances that a trace has, at a utilisation of 0.6."""
    base = Point(
        "one pool", False, (1, 1, 1, 1), Lengths(1000.0, 200.0, 1.0, 1.0), 0.6, (1, 1), 0.5, 1.0, 0.1, constants
    )
    rate = float(base.point().requests_per_s)
    rows = []
    for name, requests in shapes(rate, count, seed):
        gaps = np.diff(requests.arrivals_s)
        scvs = [float(values.var() / values.mean() ** 2) for values in (requests.prompts, requests.outputs, gaps)]
        lengths = Lengths(float(requests.prompts.mean()), float(requests.outputs.mean()), *scvs[:2])
        case = replace(base, lengths=lengths, arrival_scv=scvs[2])
        batches, rates = case.sustained()
        point = case.at(float(np.interp(1.0 / gaps.mean(), rates, batches)))
        run = replayed(case, point, count, seed, requests)
        rows.append({"trace": name, **{key: f"{value:+.1%}" for key, value in differences(point, run).items()}})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", metavar="FILE")
    arguments = parser.parse_args()
    constants = ServingConstants.from_values(Catalog.load().constants("serving"))
    rows, skipped, begun = [], 0, time.perf_counter()
    for place, case in enumerate(drawn_points(arguments.points, arguments.seed, constants)):
        point = case.point()
        if point is None:
            skipped += 1
            continue
        run = replayed(case, point, arguments.requests, arguments.seed + place)
        band = next(f"{low:g}-{high:g}" for low, high in BANDS if case.utilisation <= high)
        described = {
            "kind": case.kind, "utilisation": round(case.utilisation, 3), "band": band, "experts": case.experts, "layout": str(case.layout),
            "input": case.lengths.input_tokens, "output": case.lengths.output_tokens, "input_scv": case.lengths.input_scv,
            "output_scv": case.lengths.output_scv, "workers": str(case.workers), "batch": round(float(point.batch), 1),
            "slots": round(float(point.slots), 1), "evicted": run.evicted, "hits": round(run.means["hits"], 3),
        }  # fmt: skip
        rows.append({**described, **differences(point, run)})
        if arguments.rows:
            Path(arguments.rows).write_text(as_csv(rows), encoding="utf-8")
    print(f"{len(rows)} points, {skipped} that no batch serves, {time.perf_counter() - begun:.0f} s")
    print(as_text(table(rows, "band", [f"{low:g}-{high:g}" for low, high in BANDS])))
    print(as_text(table([row for row in rows if row["utilisation"] <= 0.85], "kind", KINDS)))
    print(as_text(table([{**row, "all": "to 0.85"} for row in rows if row["utilisation"] <= 0.85], "all", ["to 0.85"])))
    print(as_text(on_shapes(constants, 20_000, arguments.seed)))


if __name__ == "__main__":
    main()
