"""Compare closed forms of latency percentiles with an event simulation, for one pool and two, by latency, percentile and utilisation.

Utilisation is the arrival rate over the highest that the engine sustains: the lower of the rates at which all slots are taken, or
the prompt server, which also waits for the decode steps in between, is busy all the time.
Run: python benchmarks/percentiles.py [--quick] [--write]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np

from catalog.units import GIGA
from models.serving import examples
from models.serving.continuous_batching import ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.percentiles import MEAN, METRICS, goodput, latency_s
from models.serving.workload import Lengths
from tests.models.serving.simulation import Engine, Load, Outcome, simulate_aggregated, simulate_disaggregated

ONE = ServingLayouts(1, 1, 1, 1)
# The simulated engine has one budget of prompt tokens per step, and no overhead of two pools.
CONSTANTS = replace(
    examples.SERVING, chunk_tokens=2048.0, interleave_tokens=2048.0, disaggregated_first_token_factor=1.0
)
ENGINES = {
    "dense": Engine(examples.DENSE, examples.CHIP, ONE, CONSTANTS),
    "experts": Engine(examples.MOE, examples.CHIP, ONE, CONSTANTS),
    "little memory": Engine(examples.DENSE, replace(examples.CHIP, hbm_bytes=28 * GIGA), ONE, CONSTANTS),
}
LENGTHS = ((500, 100), (1000, 200), (4000, 300), (200, 800), (8000, 100), (2000, 1000))
VARIATION = (0.0, 1.0)
UTILISATION = (0.3, 0.5, 0.7, 0.85, 0.92)
QUANTILES = (0.5, 0.9, 0.95, 0.99)
POOLS = ((1, 1), (2, 1), (1, 3))
LINK_BYTES_PER_S = 25 * GIGA
REQUESTS = {100: 12000, 200: 9000, 300: 9000, 800: 5000, 1000: 5000}
GRID = np.geomspace(1e-3, 1.0, 400)


@dataclass(frozen=True, slots=True)
class Case:
    """One load on one engine; `workers` for two pools."""

    engine: str
    input_tokens: int
    output_tokens: int
    variation: float
    arrival_scv: float
    utilisation: float
    workers: tuple[int, int] | None = None

    def load(self) -> dict:
        lengths = Lengths(self.input_tokens, self.output_tokens, self.variation**2, self.variation**2)
        return {"lengths": lengths, "precisions": ENGINES[self.engine].precisions, "arrival_scv": self.arrival_scv}

    def at(self, batch: np.ndarray | float) -> ServingPoint:
        engine = ENGINES[self.engine]
        if self.workers is None:
            return aggregated(
                engine.arch, engine.chip, engine.layouts, batch, constants=engine.constants, **self.load()
            )
        prefill, decode = (WorkerPool(engine.chip, ONE, workers, engine.constants) for workers in self.workers)
        link = TransferLink(LINK_BYTES_PER_S)
        return disaggregated(engine.arch, prefill, decode, batch, link=link, **self.load()).point

    def point(self) -> ServingPoint:
        """Find the operating point at the utilisation asked for."""
        slots = float(np.floor(self.at(1.0).slots))
        grid = self.at(GRID * slots)
        if self.workers is None:
            load = grid.requests_per_s * (grid.prefill_s + self.input_tokens / CONSTANTS.chunk_tokens * grid.step_s)
            inside = grid.batch + grid.requests_per_s * grid.prompt_s
        else:
            load, inside = grid.requests_per_s * grid.prefill_s / self.workers[0], grid.batch
        rate = np.maximum.accumulate(grid.requests_per_s)
        most = rate[(load < 1.0) & (inside <= slots)].max()
        return self.at(float(np.interp(self.utilisation * most, rate, GRID * slots)))

    def simulate(self, point: ServingPoint, requests: int, seed: int = 7) -> Outcome:
        engine, scv = ENGINES[self.engine], self.variation**2
        load = Load(float(point.requests_per_s), self.input_tokens, self.output_tokens, scv, scv, self.arrival_scv)
        if self.workers is None:
            return simulate_aggregated(engine, load, int(point.slots), requests, seed)
        return simulate_disaggregated(
            engine, engine, load, self.workers, int(point.slots), LINK_BYTES_PER_S, requests, seed
        )


def cases(quick: bool = False) -> Iterator[Case]:
    lengths, variation = (LENGTHS[1:3], VARIATION) if quick else (LENGTHS, VARIATION)
    for engine, (prompt, output), cv, scv, load in itertools.product(
        ENGINES, lengths, variation, (1.0, 3.0), UTILISATION
    ):
        if scv == 1.0 or engine == "dense":
            yield Case(engine, prompt, output, cv, scv, load)
    for (prompt, output), cv, scv, load, workers in itertools.product(
        lengths, variation, (1.0, 3.0), UTILISATION, POOLS
    ):
        if scv == 1.0 or workers == (2, 1):
            yield Case("dense", prompt, output, cv, scv, load, workers)


def errors(case: Case, requests: int) -> dict[tuple[str, str], float]:
    """Compute predicted over simulated less one, by latency and percentile; for goodput the difference."""
    point = case.point()
    seen = case.simulate(point, requests)
    found = {
        (metric, f"p{round(100 * q)}"): float(latency_s(point, metric, q)) / seen.quantile(metric, q) - 1.0
        for metric in METRICS
        for q in QUANTILES
    }
    found |= {
        (metric, MEAN): float(latency_s(point, metric, MEAN)) / float(seen.of(metric).mean()) - 1.0
        for metric in METRICS
    }
    limits = seen.quantile("ttft", 0.9), seen.quantile("tpot", 0.9)
    return found | {("goodput", "at both p90"): float(goodput(point, *limits)) - seen.goodput(*limits)}


def table(found: dict[Case, dict], keep: Callable[[Case], bool]) -> list[str]:
    lines = [f"| latency | {' | '.join(f'{u:g}' for u in UTILISATION)} |", f"|{'---|' * (len(UTILISATION) + 1)}"]
    for metric, name in next(iter(found.values())):
        cells = []
        for load in UTILISATION:
            some = np.array(
                [values[metric, name] for case, values in found.items() if keep(case) and case.utilisation == load]
            )
            cells.append(
                f"{np.median(some):+.0%} ({np.median(abs(some)):.0%}, {np.quantile(abs(some), 0.9):.0%}, {abs(some).max():.0%})"
            )
        lines.append(f"| {metric} {name} | {' | '.join(cells)} |")
    return lines


def report(found: dict[Case, dict], seconds: float) -> str:
    groups = {
        "One pool, Poisson arrivals": lambda c: c.workers is None and c.arrival_scv == 1.0,
        "One pool, arrivals of squared coefficient of variation 3": lambda c: (
            c.workers is None and c.arrival_scv != 1.0
        ),
        "Two pools, Poisson arrivals": lambda c: c.workers is not None and c.arrival_scv == 1.0,
        "Two pools, arrivals of squared coefficient of variation 3": lambda c: (
            c.workers is not None and c.arrival_scv != 1.0
        ),
    }
    below = [
        abs(v)
        for case, values in found.items()
        if case.utilisation <= 0.85
        for (metric, _), v in values.items()
        if metric in METRICS
    ]
    lines = [
        "# Percentiles of latency against the event simulation", "",
        f"{len(found)} loads in {seconds:.0f} s: `python benchmarks/percentiles.py --write`. Prompts and answers of {', '.join(f'{i}/{o}' for i, o in LENGTHS)} "
        f"tokens, coefficients of variation {', '.join(map(str, VARIATION))} of both, engines {', '.join(ENGINES)}, pools of {', '.join(f'{p} + {d}' for p, d in POOLS)} workers.",
        "", f"Up to utilisation 0.85, {np.mean(np.array(below) <= 0.1):.0%} of the figures lie within 10 % of the simulation, whose own far percentiles still move with the length of a run.",
        "Cells: median error (median, 90th percentile and largest of its size); columns: utilisation.",
    ]  # fmt: skip
    for title, keep in groups.items():
        lines += ["", f"## {title}", "", *table(found, keep)]
    worst = sorted(
        (
            (abs(v), case, name)
            for case, values in found.items()
            if case.utilisation <= 0.85
            for name, v in values.items()
        ),
        key=lambda x: -x[0],
    )[:12]
    lines += [
        "",
        "## Largest errors up to utilisation 0.85",
        "",
        "| engine | tokens | variation | arrivals | utilisation | workers | figure | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c.engine} | {c.input_tokens}/{c.output_tokens} | {c.variation} | {c.arrival_scv:g} | {c.utilisation} | {c.workers or 'one pool'} | {' '.join(name)} | {size:.0%} |"
        for size, c, name in worst
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two lengths, a third of the requests")
    parser.add_argument("--write", action="store_true", help="to benchmarks/percentiles.md instead of the screen")
    arguments = parser.parse_args()
    began = time.perf_counter()
    found = {
        case: errors(case, REQUESTS[case.output_tokens] // (3 if arguments.quick else 1))
        for case in cases(arguments.quick)
    }
    text = report(found, time.perf_counter() - began)
    if arguments.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
