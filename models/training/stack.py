"""Time of the layers of a network for one micro-batch by their kind, and of the fullest stage of a pipeline of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Result, equal_rows, sum_of
from models.training.layer import BACKWARD_GEMMS, PARTS, Times, head_s, layer_times, projection_s
from models.training.pipeline import DUALPIPE, slowest_stage, stage_layers
from models.training.run import Run
from models.training.stages import chunk_layers, first_without_leading, leading_layers, leading_on

# What a layer's time on a rank depends on; dimensions outside (dp, pp) and the levels of ZeRO and offload do not enter.
WORK_FIELDS = ("tp", "cp", "ep", "micro_batch", "recompute", "sequence_parallel")
LEAST_SHARED = 64  # layouts from which on looking for equal work pays
LEADING, OTHERS, PREDICTING = "leading", "others", "predicting"  # kinds of layers
Sides = tuple[Times, Times]  # forward and backward by part


@dataclass(frozen=True, slots=True)
class Work:
    """Times of one micro-batch [s]: of all layers of each kind forward and backward by part, of all kinds on each side, of the head forward."""

    kinds: Mapping[str, Times]
    forward: Floats
    backward: Floats
    products: Floats  # matrices of all kinds, forward
    head: Floats

    @classmethod
    def of(cls, run: Run) -> Work:
        """Predict the times of a run."""
        found = stack_times(run)
        kinds = {kind: {part: one[part] + two[part] for part in PARTS} for kind, (one, two) in found.items()}
        forward, backward = (
            sum_of((part for sides in found.values() for part in sides[side].values()), np.zeros_like(run.tokens))
            for side in (0, 1)
        )
        products = sum_of((sides[0]["compute"] for sides in found.values()), np.zeros_like(run.tokens))
        return cls(kinds, forward, backward, products, head_s(run))

    def at(self, place: Ints) -> Work:
        """Take the entries at an index."""
        kinds = {kind: {part: seconds[place] for part, seconds in times.items()} for kind, times in self.kinds.items()}
        return Work(kinds, *(side[place] for side in (self.forward, self.backward, self.products, self.head)))


def work_of(run: Run) -> Work:
    """Predict the times of each kind of layer and of the head, once for layouts that give a rank the same work.

    Shapes: one axis. Units: [s]. Reference: `stack_times`, `layer.head_s`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> from models.training.layouts import Layouts
    >>> list(work_of(Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe(mtp_layers=1))).kinds)
    ['others', 'predicting']
    """
    layouts = run.layouts
    if len(layouts) < LEAST_SHARED or np.ndim(run.arch.layers) or np.ndim(run.sequence_tokens):
        return Work.of(run)
    columns = [getattr(layouts, name) for name in WORK_FIELDS]
    columns.append(layouts.schedule == DUALPIPE)
    if run.scaleout is not None:
        columns += [run.scaleout[name] for name in ("tp", "cp", "ep")]
    first, place = equal_rows(columns)
    if 2 * len(first) > len(layouts):
        return Work.of(run)
    scaleout = None if run.scaleout is None else {name: rates[first] for name, rates in run.scaleout.items()}
    some = Run.of(
        run.arch, run.chip, layouts.take(first), run.sequence_tokens, run.precision, run.constants, run.family, run.recipe, scaleout
    )  # fmt: skip
    return Work.of(some).at(place)


def stack_times(run: Run) -> dict[str, Sides]:
    """Predict (forward, backward) of all layers of each kind for one micro-batch, by part: dense ones before those with experts, the others, and
    layers that predict further tokens, which are of the kind of the last and project 2 h to h first.

    Shapes: one axis per part. Units: [s].
    Reference: `layer.layer_times`; DeepSeek-V3, arXiv:2412.19437, section 2.2 (multi-token prediction).

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> from models.training.layouts import Layouts
    >>> run = Run.of(DENSE, CHIP, Layouts.of(), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> bool(np.isclose(stack_times(run)["others"][0]["compute"], 32 * layer_times(run, False)[0]["compute"])[0])
    True
    """
    arch, extra, leading = run.arch, float(run.recipe.mtp_layers), leading_layers(run.arch)
    moe = arch.moe_layers
    found = {}
    if np.any(leading):
        found[LEADING] = _layers_times(run, (leading, 0.0), (0.0, 0.0))
    blocks = (arch.attention_blocks, arch.state_blocks)
    found[OTHERS] = _layers_times(run, (arch.ffn_layers - moe - leading, moe), blocks)
    if extra:
        forward, backward = _layers_times(run, (0.0, extra) if np.any(moe) else (extra, 0.0), (extra, 0.0))
        once = extra * projection_s(run)
        forward["compute"] = forward["compute"] + once
        backward["compute"] = backward["compute"] + (BACKWARD_GEMMS - (run.recipe.adapter_rank > 0)) * once
        found[PREDICTING] = forward, backward
    return found


def _layers_times(run: Run, layers: tuple[Result, Result], blocks: tuple[Result, Result]) -> Sides:
    """Add up (dense, expert) layers; `blocks`: of attention and of a state, where each layer of the network is one block."""
    arch = run.arch
    if np.any(arch.attention_layers):
        kinds = list(zip(((False, "attention", False), (False, "state", False)), blocks, strict=True))
        kinds += list(zip(((False, "", True), (True, "", True)), layers, strict=True))
    else:
        attending = arch.attention_blocks / arch.layers  # share of the layers that attend; the others keep a state
        kinds = [
            ((way, "attention", True), count * attending) for way, count in zip((False, True), layers, strict=True)
        ]
        kinds += [
            ((way, "state", True), count * (1.0 - attending)) for way, count in zip((False, True), layers, strict=True)
        ]
    forward, backward = ({part: np.zeros_like(run.tokens) for part in PARTS} for _ in range(2))
    for kind, count in kinds:
        if np.any(count):
            for total, times in zip((forward, backward), layer_times(run, *kind), strict=True):
                for part in PARTS:
                    total[part] += count * times[part]
    return forward, backward


def fullest_stage_s(run: Run, kinds: Mapping[str, Times], head_seconds: Floats | float) -> Times:
    """Compute the time of the stage for which all others of the pipeline wait, by part, from the times of all layers of each kind.

    `pipeline.slowest_stage` over the layers that are not dense ones in front; the last stage also has the head and the layers that predict further
    tokens. With c layers on a stage of which j are dense ones in front, a stage takes (c - j) t + j t_dense: linear in j, which falls from
    stage to stage, so that the first stage or the first with the fewest is the slowest.
    Shapes: one axis. Units: [s]. Reference: Llama 3, arXiv:2407.21783, section 3.3.2; DeepSeek-V3, arXiv:2412.19437, section 3.2.1.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> from models.training.layouts import Layouts
    >>> run = Run.of(DENSE, CHIP, Layouts.of(pp=4), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> kinds = {"others": {part: np.array([32.0 * (part == "compute")]) for part in PARTS}}
    >>> fullest_stage_s(run, kinds, 1.5)["compute"].tolist()
    [9.5]
    """
    arch, layouts, d = run.arch, run.layouts, leading_layers(run.arch)
    counted = np.maximum(np.asarray(arch.layers, float) - d, 1.0)
    other, last = kinds[OTHERS], kinds.get(PREDICTING)
    beside = np.asarray(head_seconds, float) + (0.0 if last is None else sum_of(last.values()))
    pace = sum_of(other.values()) / counted
    most, heads = slowest_stage(arch.layers, layouts.pp, pace, beside)
    share = most / counted
    stage = {part: share * seconds for part, seconds in other.items()}
    if LEADING in kinds:
        dense = {part: seconds / np.maximum(d, 1.0) for part, seconds in kinds[LEADING].items()}
        chunk = chunk_layers(arch.layers, layouts)
        full = (
            np.floor(np.asarray(arch.layers, float) / stage_layers(arch.layers, layouts.pp)) - 1.0
        )  # the last such stage
        fewest = np.where(
            sum_of(dense.values()) < pace, np.minimum(first_without_leading(d, chunk, layouts.pp), full), 0.0
        )
        j = np.minimum(leading_on(d, np.where(heads > 0, layouts.pp - 1.0, fewest), chunk), most)
        stage = {part: seconds + j * (dense[part] - other[part] / counted) for part, seconds in stage.items()}
    if last is not None:
        stage = {part: seconds + heads * last[part] for part, seconds in stage.items()}
    stage["compute"] = stage["compute"] + heads * head_seconds
    if LEADING not in kinds:
        return stage
    # The stages were split as if all layers were alike: the first and the last one may be slower than the one that was found.
    left = np.where(heads > 0, most, np.maximum(arch.layers - (layouts.pp - 1.0) * most, 0.0))
    full = stage_layers(arch.layers, layouts.pp)
    for count, rank, ends in ((full, 0.0, 0.0), (left, layouts.pp - 1.0, 1.0)):
        j = np.minimum(leading_on(d, rank, chunk), count)
        also = {
            part: count * seconds / counted + j * (dense[part] - seconds / counted) for part, seconds in other.items()
        }
        if last is not None:
            also = {part: seconds + ends * last[part] for part, seconds in also.items()}
        also["compute"] = also["compute"] + ends * head_seconds
        slower = sum_of(also.values()) > sum_of(stage.values())
        stage = {part: np.where(slower, also[part], seconds) for part, seconds in stage.items()}
    return stage
