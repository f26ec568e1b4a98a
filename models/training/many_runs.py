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

_ARCHITECTURE_FLAGS = ("gated", "tied", "mla")
# Figures that switch a block on: runs with and without one are not stacked.
_SWITCHES = ("experts", "q_lora_rank", "attention_layers", "expert_hidden", "shared_ffn")
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
    arguments: Mapping[str, Any]  # of `training_step`, with columns of arrays for the numbers

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


class Predictor:
    """ln(step time) of many runs as a function of the constants; a batch that a changed constant does not touch is not repeated."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.count = len(cases)
        self._batches = stack(cases)
        self._touching: list[set[str] | None] = [None] * len(self._batches)
        self._last: list[tuple[dict[str, float], Floats] | None] = [None] * len(self._batches)

    def __call__(self, values: Mapping[str, float]) -> Floats:
        """ln(step time) [1] of all runs, in their order."""
        constants = TrainingConstants.from_values(values)
        out = np.empty(self.count)
        for batch, touching, last in zip(self._batches, self._touching, self._last, strict=True):
            same = last is not None and touching is not None and all(values[name] == last[0][name] for name in touching)
            out[batch.index] = last[1] if last is not None and same else np.log(batch.step(constants).step_s)
        return out

    def base(self, values: Mapping[str, float], names: Sequence[str]) -> None:
        """Set the point near which the next calls lie, and learn once which of `names` affect which batch."""
        constants = TrainingConstants.from_values(values)
        for i, batch in enumerate(self._batches):
            known, last = self._touching[i], self._last[i]
            if known is not None and last is not None and all(values[name] == last[0][name] for name in known):
                continue
            here = np.log(batch.step(constants).step_s)
            if known is None:
                self._touching[i] = {name for name in names if self._moves(batch, values, name, here)}
            self._last[i] = (dict(values), here)

    @staticmethod
    def _moves(batch: Batch, values: Mapping[str, float], name: str, here: Floats) -> bool:
        moved = TrainingConstants.from_values({**values, name: values[name] * 0.7})
        return bool(
            np.any(batch.step(moved).step_s != np.exp(here))
            and np.any(np.abs(np.log(batch.step(moved).step_s) - here) > 0.0)
        )


def _kind(case: Case) -> tuple[object, ...]:
    arch, recipe = case.arch, case.recipe
    flags = tuple(getattr(arch, name) for name in _ARCHITECTURE_FLAGS) + tuple(
        bool(getattr(arch, name)) for name in _SWITCHES
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
