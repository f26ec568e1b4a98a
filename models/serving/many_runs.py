"""Many different serving runs at once: runs of one kind stacked into arrays, so that a fit over thousands of them is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.formats import PRECISIONS
from models.roofline import ChipRates
from models.serving.closed_loop import closed_loop
from models.serving.constants import DIVISION, TABLES, ServingConstants, starts_from_host
from models.serving.decode import ServingLayouts
from models.serving.offered_load import (
    Replica,
    Served,
    best_batch,
    burst,
    decode_alone,
    prompts_alone,
    request_rate,
    static_batch,
    two_pools,
)
from models.serving.speculation import Speculation
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from models.transformer.shapes import SWITCHES

REGIMES = (
    "closed", "open", "maximum", "static", "static_maximum", "burst", "prefill", "decode", "decode_maximum", "disaggregated"
)  # fmt: skip
DECODE_ALONE = ("decode", "decode_maximum")
MEANS = ("tpot", "ttft", "throughput")
TTFT_QUANTILES = {"ttft_p50": 0.5, "ttft_p99": 0.99}
METRICS = (*MEANS, *TTFT_QUANTILES)
_FLAGS = ("gated", "tied", "mla", "routing", "checkpoints")
MEMORY = ("usable_memory", "runtime_bytes", *DIVISION)
UNCAPPED = 2.5  # times the usual limit on running requests, about 2,000: as far as submitters raise it
_LAYOUT = ("tp", "pp", "dp", "ep")
LONGEST = 12_000  # rows that a batch is repeated up to


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers of one layout (tp, pp, dp, ep)."""

    layout: Mapping[str, int]
    workers: float = 1.0

    @property
    def chips(self) -> int:
        """Chips of one worker."""
        return self.layout["tp"] * self.layout["pp"] * self.layout["dp"]


@dataclass(frozen=True, slots=True)
class Case:
    """One run. `load` is clients, requests per second or sequences of all workers, as the regime says; with regime "maximum" the
    bound on running sequences of all workers, 0 for none. `decode` is the pool of an aggregated run; `prefill` is None there."""

    arch: Architecture
    chip: ChipRates
    decode: Pool
    prefill: Pool | None
    weight_precision: str
    kv_precision: str
    engine: str
    release_year: float
    family: str
    regime: str
    input_tokens: float
    output_tokens: float
    load: float
    tpot_limit_s: float = 0.0  # on the p99 of TPOT; 0: none
    ttft_limit_s: float = 0.0  # on the p99 of TTFT; 0: none
    requests: float = 0.0  # requests of an open run that ends, of all workers; 0: no end
    running: float = 0.0  # most that the clients of an open run have in flight, of all workers; 0: any number
    capped: float = 1.0  # 0 where the limit on running requests was raised above the engine's usual one
    link_bytes_per_s: float = 0.0  # over which a KV cache moves, per chip
    eager: bool | None = None  # whether the host starts each kernel; None: as the engine does on the generation
    division: Mapping[str, float] = field(
        default_factory=dict
    )  # memory by the engine: constants of MEMORY that take the place of the usual
    median_ttft: bool = False  # whether the run reports the median of TTFT in place of its mean
    speculation: Speculation | None = None  # a run of decode alone

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise ValueError(f"unknown regime {self.regime!r}; known: {', '.join(REGIMES)}")


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs of one kind, stacked; `index` says where each stands among all."""

    index: Ints
    regime: str
    replica: Callable[[ServingConstants], Replica]
    prefill_layouts: ServingLayouts | None
    columns: Mapping[str, Floats]
    engines: Sequence[str]
    families: Sequence[str]
    release_years: Floats
    eager: Bools
    speculation: Speculation | None
    division: Mapping[str, Floats]  # constants by name, NaN where a run states none

    def profile(self, constants: ServingConstants) -> ServingConstants:
        """Scale the constants to the engine, generation and date of every run."""
        profile = constants.profile(self.engines, self.families, self.release_years, self.eager)
        cap = profile.batch_cap * np.where(self.columns["capped"] > 0.0, 1.0, UNCAPPED)
        divided: dict[str, Any] = {
            name: np.where(np.isnan(stated), getattr(profile, name), stated) for name, stated in self.division.items()
        }
        return replace(profile, batch_cap=cap, **divided)

    def served(self, constants: ServingConstants) -> Served:
        """Predict TPOT, TTFT and batch of every run, and the throughput of all its workers."""
        return self.served_by(self.profile(constants))

    def served_by(self, profile: ServingConstants) -> Served:
        """Predict the same by constants that are scaled already."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = self._served(self.replica(profile))
        workers = self.columns["workers"] if self.regime != "disaggregated" else 1.0
        return replace(found, tokens_per_s=found.tokens_per_s * workers)

    def _served(self, run: Replica) -> Served:
        each = self.columns["load"] / self.columns["workers"]
        if self.regime == "closed":
            loop = closed_loop(
                run.arch, run.chip, run.layouts, np.maximum(each, 1.0),
                lengths=run.lengths, precisions=run.precisions, constants=run.constants,
            )  # fmt: skip
            return Served(loop.tpot_s, loop.ttft_s, loop.tokens_per_s, loop.batch, loop.first)
        if self.regime == "open":
            requests, running = (self.columns[name] / self.columns["workers"] for name in ("requests", "running"))
            return request_rate(run, each, requests, running)
        if self.regime == "maximum":
            return best_batch(run, each, self.columns["tpot_limit_s"], self.columns["ttft_limit_s"])
        if self.regime == "static_maximum":
            return static_batch(run, run.places())
        if self.regime == "burst":
            return burst(run, np.maximum(each, 1.0))
        if self.prefill_layouts is not None:
            first = replace(run, layouts=self.prefill_layouts)
            c = self.columns
            return two_pools(first, run, c["prefill_workers"], c["workers"], c["load"], c["link_bytes_per_s"])
        if self.regime in DECODE_ALONE:
            most = run.places() if self.regime == "decode_maximum" else np.maximum(each, 1.0)
            return decode_alone(run, most, self.columns["tpot_limit_s"], self.speculation)
        return (prompts_alone if self.regime == "prefill" else static_batch)(run, np.maximum(each, 1.0))


def stack(cases: Sequence[Case]) -> list[Batch]:
    """Group runs by what the closed forms branch on, and stack each group into arrays.

    Shapes: a list in, groups of one axis out. Units: as `Case`. Reference: `offered_load`, `closed_loop`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> one = Case(DENSE, CHIP, Pool({"tp": 1, "pp": 1, "dp": 1, "ep": 1}), None, "bf16", "bf16", "vllm", 2025.0, "hopper", "closed", 1000.0, 200.0, 8.0)
    >>> [batch.index.tolist() for batch in stack([one, replace(one, load=16.0, weight_precision="fp8"), replace(one, regime="static")])]
    [[0, 1], [2]]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, case in enumerate(cases):
        switches = tuple(bool(getattr(case.arch, name)) for name in SWITCHES)
        groups.setdefault(
            (case.regime, case.speculation, *(getattr(case.arch, name) for name in _FLAGS), *switches), []
        ).append(i)
    return [_stacked(np.array(members), [cases[i] for i in members]) for members in groups.values()]


def _stacked(index: Ints, cases: Sequence[Case]) -> Batch:
    def column(items: Sequence[object], name: str) -> Floats:
        return np.array([getattr(item, name) for item in items], float)

    def layouts(pools: Sequence[Pool]) -> ServingLayouts:
        return ServingLayouts(*(np.array([pool.layout[name] for pool in pools]) for name in _LAYOUT))

    def stated(name: str) -> Floats:
        return np.array([case.division.get(name, np.nan) for case in cases], float)

    def codes(name: str) -> Ints:
        return np.array([PRECISIONS.index(getattr(case, name)) for case in cases])

    arches, chips = [case.arch for case in cases], [case.chip for case in cases]
    # Columns of arrays stand for the numbers of the records, which the closed forms take alike.
    shape: dict[str, Any] = {f.name: column(arches, f.name) for f in fields(Architecture) if f.name not in _FLAGS}
    same: dict[str, Any] = {name: 0 for name in (*SWITCHES, "state_layers") if not np.any(shape[name])}
    rates: dict[str, Any] = {f.name: column(chips, f.name) for f in fields(ChipRates)}
    prefill = [case.prefill for case in cases if case.prefill is not None]
    columns = {
        name: column(cases, name)
        for name in (
            "load",
            "tpot_limit_s",
            "ttft_limit_s",
            "capped",
            "link_bytes_per_s",
            "requests",
            "running",
        )
    }
    columns |= {"workers": np.array([case.decode.workers for case in cases])}
    columns |= {"prefill_workers": np.array([pool.workers for pool in prefill])} if prefill else {}
    return Batch(
        index=index,
        regime=cases[0].regime,
        replica=partial(
            Replica, replace(arches[0], **{**shape, **same}), ChipRates(**rates), layouts([case.decode for case in cases]),
            Lengths(column(cases, "input_tokens"), column(cases, "output_tokens")),
            Precisions(codes("weight_precision"), codes("kv_precision")),
        ),
        prefill_layouts=layouts(prefill) if prefill else None,
        columns=columns,
        engines=[case.engine for case in cases],
        families=[case.family for case in cases],
        release_years=column(cases, "release_year"),
        division={name: found for name in MEMORY if not np.all(np.isnan(found := stated(name)))},
        eager=np.array([starts_from_host(c.engine, c.family) if c.eager is None else c.eager for c in cases], bool),
        speculation=cases[0].speculation,
    )  # fmt: skip


def _joined(profiles: Sequence[ServingConstants], rows: int) -> ServingConstants:
    """Join constants scaled to the same runs into arrays, point after point."""

    def column(name: str) -> Floats:
        return np.concatenate([np.broadcast_to(np.asarray(getattr(p, name), float), (rows,)) for p in profiles])

    names = [f.name for f in fields(ServingConstants) if f.name not in TABLES]
    columns: dict[str, Any] = {name: column(name) for name in names}
    return replace(profiles[0], **columns)


class Predictor:
    """ln(value) of observations (place of the case, metric) as a function of the constants; a batch that a changed constant does not
    touch is not repeated. TPOT and TTFT in s, throughput in output token/s of all workers; quantiles of TTFT only where one is asked for."""

    def __init__(self, cases: Sequence[Case], observations: Sequence[tuple[int, str]]) -> None:
        self.count = len(cases)
        self._case = np.array([case for case, _ in observations], dtype=int)
        self._metric = np.array([METRICS.index(metric) for _, metric in observations], dtype=int)
        self._metrics = METRICS if np.any(self._metric >= len(MEANS)) else MEANS
        self._cases = list(cases)
        self._batches = stack(cases)
        self._repeated: dict[tuple[int, int], Batch] = {}
        self._touching: list[set[str] | None] = [None] * len(self._batches)
        self._last: list[tuple[dict[str, float], Floats] | None] = [None] * len(self._batches)

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """ln(value) [1] of all observations, in their order."""
        constants = ServingConstants.from_values(values)
        logs = np.empty((len(self._metrics), self.count))
        for batch, touching, last in zip(self._batches, self._touching, self._last, strict=True):
            same = last is not None and touching is not None and all(values[name] == last[0][name] for name in touching)
            logs[:, batch.index] = last[1] if last is not None and same else self._logs(batch, constants)
        predicted: Floats = logs[self._metric, self._case]
        return predicted

    def base(self, values: Mapping[str, float], names: Sequence[str]) -> None:
        """Set the point near which the next calls lie, and learn once which of `names` affect which batch."""
        constants = ServingConstants.from_values(values)
        for i, batch in enumerate(self._batches):
            known, last = self._touching[i], self._last[i]
            if known is not None and last is not None and all(values[name] == last[0][name] for name in known):
                continue
            here = self._logs(batch, constants)
            if known is None:
                moved = {name: ServingConstants.from_values({**values, name: values[name] * 0.9}) for name in names}
                self._touching[i] = {name for name in names if np.any(self._logs(batch, moved[name]) != here)}
            self._last[i] = (dict(values), here)

    def many(self, points: Sequence[Mapping[str, float]]) -> Floats:
        """ln(value) [1] at several sets of constants [points x observations].

        Each batch is repeated once per point and predicted at once: its arrays are short, so that most of the time goes into calls.
        """
        logs = np.empty((len(points), len(self._metrics), self.count))
        for place, batch in enumerate(self._batches):
            together = max(1, LONGEST // len(batch.index))
            for start in range(0, len(points), together):
                some = [ServingConstants.from_values(values) for values in points[start : start + together]]
                found = self._logs_by(
                    self._again(place, len(some)), _joined([batch.profile(c) for c in some], len(batch.index))
                )
                blocks = found.reshape(len(self._metrics), len(some), len(batch.index))
                logs[start : start + len(some), :, batch.index] = blocks.transpose(1, 0, 2)
        predicted: Floats = logs[:, self._metric, self._case]
        return predicted

    def _again(self, place: int, times: int) -> Batch:
        """Return a batch repeated a number of times."""
        if (place, times) not in self._repeated:
            batch = self._batches[place]
            members = [self._cases[i] for i in batch.index]
            self._repeated[place, times] = _stacked(np.tile(batch.index, times), members * times)
        return self._repeated[place, times]

    def _logs(self, batch: Batch, constants: ServingConstants) -> Floats:
        return self._logs_by(batch, batch.profile(constants))

    def _logs_by(self, batch: Batch, profile: ServingConstants) -> Floats:
        served = batch.served_by(profile)
        shape = batch.index.shape
        rows = [served.tpot_s, served.ttft_s, served.tokens_per_s]
        if self._metrics is METRICS:
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                rows += [served.ttft_quantile_s(quantile) for quantile in TTFT_QUANTILES.values()]
        logs: Floats = np.log(np.stack([np.broadcast_to(np.asarray(row, float), shape) for row in rows]))
        return logs
