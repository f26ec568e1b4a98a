"""Many different training runs at once: runs of one kind stacked into arrays, so that a fit over hundreds of them is quick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.roofline import ChipRates
from models.training.layouts import Layouts
from models.training.memory import training_memory
from models.training.step import CHUNK, Recipe, TrainingConstants, TrainingStep, training_step
from models.transformer.architecture import Architecture
from models.transformer.shapes import SWITCHES

_ARCHITECTURE_FLAGS = ("gated", "tied", "mla", "routing", "checkpoints")
_RECIPE_NUMBERS = ("release_year", "flushes", "power_ratio", "forgotten")


@dataclass(frozen=True, slots=True)
class Case:
    """One run: the arguments of `step.training_step` for a single layout."""

    arch: Architecture
    chip: ChipRates
    layout: Mapping[str, int]
    global_batch_sequences: float
    sequence_tokens: int
    precision: str
    family: str
    recipe: Recipe

    def memory_bytes(self, recompute: int, constants: TrainingConstants) -> float:
        """Predict the memory of the fullest chip at a level of recompute [byte]."""
        layouts = Layouts.of(**{**self.layout, "recompute": recompute})
        memory = training_memory(
            self.arch, layouts, global_batch_sequences=self.global_batch_sequences, sequence_tokens=self.sequence_tokens,
            constants=constants, recipe=self.recipe,
        )  # fmt: skip
        return float(memory.total[0])


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs of one kind, stacked; `index` says where each stands among all."""

    index: Ints
    arguments: Mapping[str, Any]  # arguments of `training_step`, with columns of arrays for the numbers

    def step(self, constants: TrainingConstants) -> TrainingStep:
        """Predict time and memory of every run of the batch."""
        return training_step(constants=constants, **self.arguments)


def stack(cases: Sequence[Case]) -> list[Batch]:
    """Group runs by what the closed forms branch on, and stack each group into arrays.

    Shapes: a list in, groups of one axis out. Units: as `Case`. Reference: `step.training_step`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> runs = [Case(DENSE, CHIP, {"tp": tp, "dp": 8}, 64.0, 4096, "bf16", "hopper", Recipe(release_year=y)) for tp, y in ((1, 2025.0), (8, 2026.0))]
    >>> [(batch.index.tolist(), batch.step(TRAINING).step_s.shape) for batch in stack(runs)]
    [([0, 1], (2,))]
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault(_kind(case), []).append(i)
    batches = []
    for members in groups.values():
        for start in range(0, len(members), CHUNK):
            part = members[start : start + CHUNK]
            batches.append(Batch(np.array(part), _stacked([cases[i] for i in part])))
    return batches


LONGEST = 4_000  # rows that a batch is repeated up to


class Predictor:
    """ln(step time) of many runs as a function of the constants."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.count = len(cases)
        self._cases = list(cases)
        self._batches = stack(cases)
        self._repeated: dict[tuple[int, int], Batch] = {}

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """ln(step time) [1] of all runs, in their order."""
        constants = TrainingConstants.from_values(values)
        out = np.empty(self.count)
        for batch in self._batches:
            out[batch.index] = np.log(batch.step(constants).step_s)
        return out

    def many(self, points: Sequence[Mapping[str, float]]) -> Floats:
        """ln(step time) [1] at several sets of constants [points x runs].

        Each batch is repeated once per point and predicted at once: its arrays are short, so that most of the time goes into calls.
        """
        known = [TrainingConstants.from_values(values) for values in points]
        out = np.empty((len(points), self.count))
        for place, batch in enumerate(self._batches):
            rows, together = len(batch.index), max(1, LONGEST // len(batch.index))
            for start in range(0, len(points), together):
                some = known[start : start + together]
                columns: dict[str, Any] = {
                    f.name: np.repeat([getattr(c, f.name) for c in some], rows) for f in fields(TrainingConstants)
                }
                constants = TrainingConstants(**columns)
                step_s = self._again(place, len(some)).step(constants).step_s
                out[start : start + len(some), batch.index] = np.log(step_s).reshape(len(some), rows)
        return out

    def _again(self, place: int, times: int) -> Batch:
        """Return a batch repeated a number of times."""
        if (place, times) not in self._repeated:
            batch = self._batches[place]
            members = [self._cases[i] for i in batch.index]
            self._repeated[place, times] = Batch(np.tile(batch.index, times), _stacked(members * times))
        return self._repeated[place, times]


def _kind(case: Case) -> tuple[object, ...]:
    arch, recipe = case.arch, case.recipe
    flags = tuple(getattr(arch, name) for name in _ARCHITECTURE_FLAGS) + tuple(
        bool(getattr(arch, name)) for name in SWITCHES
    )
    unset: dict[str, Any] = dict.fromkeys(_RECIPE_NUMBERS, 0.0)
    recipe = replace(recipe, **unset)
    return flags, recipe, case.precision, case.family


def _stacked(cases: Sequence[Case]) -> dict[str, Any]:
    first = cases[0]

    def column(items: Sequence[object], name: str) -> NDArray[Any]:
        return np.array([getattr(item, name) for item in items])

    arches, chips, recipes = ([getattr(case, part) for case in cases] for part in ("arch", "chip", "recipe"))
    counts: dict[str, Any] = {
        f.name: column(arches, f.name) for f in fields(Architecture) if f.name not in _ARCHITECTURE_FLAGS
    }
    rates: dict[str, Any] = {f.name: column(chips, f.name) for f in fields(ChipRates)}
    numbers: dict[str, Any] = {name: column(recipes, name) for name in _RECIPE_NUMBERS}
    names = [f.name for f in fields(Layouts) if any(f.name in case.layout for case in cases)]
    layout = {name: [case.layout[name] for case in cases] for name in names}
    return {
        "arch": replace(first.arch, **counts),
        "chip": ChipRates(**rates),
        "layouts": Layouts.of(**layout),
        "global_batch_sequences": column(cases, "global_batch_sequences"),
        "sequence_tokens": column(cases, "sequence_tokens"),
        "precision": first.precision,
        "family": first.family,
        "recipe": replace(first.recipe, **numbers),
    }
