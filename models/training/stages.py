"""What lies on the ranks of a pipeline: dense layers first, layers that predict further tokens last, embedding and head at the ends."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Result
from models.training.layouts import Layouts
from models.training.pipeline import DUALPIPE, V_HALF, stage_layers, weight_copies
from models.transformer.architecture import Architecture, attention_on_ranks, parameter_counts


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of one rank of each layout; counts [1] that broadcast along the axis of layouts, `rank` its place in the pipeline."""

    rank: Floats
    leading: Floats  # dense layers before those with experts
    others: Floats
    predicting: Floats  # layers that predict further tokens
    embedding: Floats
    head: Floats

    @property
    def by_kind(self) -> tuple[Floats, Floats, Floats]:
        """Count the layers of each kind: leading dense ones, others, predicting ones."""
        return self.leading, self.others, self.predicting

    def unless(self, condition: Bools, other: Contents) -> Contents:
        """Take the other contents where a condition holds."""
        if not condition.any():
            return self
        return Contents(*(np.where(condition, getattr(other, f.name), getattr(self, f.name)) for f in fields(Contents)))


_NONE, _ONE = np.asarray(0.0), np.asarray(1.0)


def leading_layers(arch: Architecture) -> Floats:
    """Count the dense layers that come before those with experts; 0 where they lie among them, or a layer is one block.

    Shapes: as the architecture. Units: [1]. Reference: DeepSeek-V3, arXiv:2412.19437, section 4.2 (all but the first three layers).

    >>> from models.serving.examples import DENSE
    >>> float(leading_layers(DENSE))
    0.0
    """
    if not np.any(arch.dense_layers):
        return _NONE
    first = (
        (np.asarray(arch.experts) > 0) & (np.asarray(arch.spread_dense) == 0) & (np.asarray(arch.attention_layers) == 0)
    )
    found: Floats = np.where(first, arch.dense_layers, 0).astype(float)
    return found


def leading_on(leading: ArrayLike, stage: ArrayLike, chunk: ArrayLike) -> Floats:
    """Count the leading layers of the first chunk of a stage:  min(max(d - i k, 0), k).

    Shapes: broadcast. Units: leading layers d, stage i, layers of a chunk k [1]. Reference: Narayanan et al., arXiv:2104.04473, section 2.2.

    >>> leading_on(5, [0, 1, 2], 4).tolist()
    [4.0, 1.0, 0.0]
    """
    i, k = np.asarray(stage, float), np.asarray(chunk, float)
    found: Floats = np.clip(np.asarray(leading, float) - i * k, 0.0, k)
    return found


def first_without_leading(leading: ArrayLike, chunk: ArrayLike, stages: ArrayLike) -> Floats:
    """Find the first stage before the last one that has the fewest leading layers:  min(ceil(d/k), p - 2).

    Shapes: broadcast. Units: leading layers d, layers of a chunk k, stages p, result [1]. Reference: as `leading_on`.

    >>> first_without_leading(3, 4, [2, 3, 16]).tolist()
    [0.0, 1.0, 1.0]
    """
    found: Floats = np.ceil(np.asarray(leading, float) / np.asarray(chunk, float))
    return np.minimum(found, np.maximum(np.asarray(stages, float) - 2.0, 0.0))


def chunk_layers(layers: ArrayLike, layouts: Layouts) -> Floats:
    """Count the layers of a chunk:  ceil(ceil(L/p) / v), half of a stage for V-Half.

    Shapes: one axis. Units: [1]. Reference: Narayanan et al., arXiv:2104.04473, section 2.2.2; Qi et al., arXiv:2405.15362, section 3.

    >>> chunk_layers(61, Layouts.of(pp=[1, 16, 8], vpp=[1, 1, 2])).tolist()
    [61.0, 4.0, 4.0]
    """
    parts = np.where(layouts.schedule == V_HALF, 2.0, layouts.vpp)
    found: Floats = np.ceil(np.ceil(np.asarray(layers, float) / layouts.pp) / parts)
    return found


def rank_contents(arch: Architecture, layouts: Layouts, mtp_layers: int = 0) -> list[Contents]:
    """List the ranks of which one is the fullest: the first and the last, and between them, behind dense layers, the first with the fewest of these.

    c = ceil(L/p) layers on every stage but the last, which has the rest, the n layers that predict further tokens and the head; with n > 0 also an
    embedding, which these layers look up. V-Half has both ends on a rank, DualPipe two stages: i and p - 1 - i. Where all layers are alike
    the last stage is taken as full as the others.
    Shapes: broadcast to the axis of layouts. Units: [1].
    Reference: Narayanan et al., arXiv:2104.04473, section 2.2; DeepSeek-V3, arXiv:2412.19437, sections 2.2 and 3.2.1; Qi et al., arXiv:2405.15362.

    >>> from models.serving.examples import MOE
    >>> [(float(sum(rank.by_kind)[0]), float(np.squeeze(rank.head))) for rank in rank_contents(MOE, Layouts.of(pp=2))]
    [(24.0, 0.0), (24.0, 1.0)]
    """
    p, n, d = layouts.pp.astype(float), float(mtp_layers), leading_layers(arch)
    most = stage_layers(arch.layers, layouts.pp)
    if n or np.any(d):
        return _uneven_contents(arch, layouts, n)
    copies = np.asarray(weight_copies(layouts.schedule), float)
    both = ((p == 1.0) | (layouts.schedule == V_HALF) | (copies > 1.0)).astype(float)
    return [
        Contents(_NONE, _NONE, copies * most, _NONE, _ONE, both),
        Contents(p - 1.0, _NONE, copies * most, _NONE, both, _ONE),
    ]


def _uneven_contents(arch: Architecture, layouts: Layouts, predicting: float) -> list[Contents]:
    """List the ranks of `rank_contents` where layers are of several kinds."""
    p, n, d = layouts.pp.astype(float), predicting, leading_layers(arch)
    total, chunk = np.asarray(arch.layers, float), chunk_layers(arch.layers, layouts)
    most = stage_layers(arch.layers, layouts.pp)
    left = np.maximum(total - (p - 1.0) * most, 0.0)

    def stage(rank: Floats, layers: Floats, embedding: float, head: float, predicted: float = 0.0) -> Contents:
        dense = np.minimum(leading_on(d, rank, chunk), layers)
        return Contents(rank, dense, layers - dense, *(np.asarray(part) for part in (predicted, embedding, head)))

    whole = Contents(_NONE, d, total - d, np.asarray(n), _ONE, _ONE)
    first, last = stage(_NONE, most, 1.0, 0.0), stage(p - 1.0, left, float(n > 0), 1.0, n)
    middle = stage(first_without_leading(d, chunk, p), most, 0.0, 0.0)
    folded = Contents(_NONE, first.leading, first.others, np.asarray(n), _ONE, _ONE)
    pair = Contents(_NONE, first.leading + last.leading, first.others + last.others, np.asarray(n), _ONE, _ONE)
    inner = Contents(_NONE, 2.0 * middle.leading, 2.0 * middle.others, _NONE, _NONE, _NONE)
    half, dual, alone = layouts.schedule == V_HALF, layouts.schedule == DUALPIPE, p == 1.0
    ends = [rank.unless(half, folded).unless(dual, pair).unless(alone, whole) for rank in (first, last)]
    return [ends[0], middle.unless(dual, inner.unless(p <= 2.0, pair)).unless(alone, whole), ends[1]]


def layer_parameters(arch: Architecture, tp: ArrayLike = 1.0) -> tuple[Result, Result, Result]:
    """Count the parameters of a layer on all tensor ranks together: (a leading one, another one without its routed experts, these experts).

    What has no heads to divide, such as projections down to a latent, is whole on each rank, as `attention_on_ranks` has it.
    Shapes: as the architecture and tp. Units: [1]. Reference: `architecture.parameter_counts`, `architecture.attention_on_ranks`.

    >>> from models.serving.examples import DENSE
    >>> from models.transformer.architecture import parameter_counts
    >>> bool(np.isclose(32 * layer_parameters(DENSE)[1], parameter_counts(DENSE).total - 2 * 4096 * 128256))
    True
    """
    counts, d = parameter_counts(arch), leading_layers(arch)
    others = np.maximum(np.asarray(arch.layers, float) - d, 1.0)
    mixer, dense = attention_on_ranks(arch, tp) / arch.layers, arch.ffn_matrices * 1.0 * arch.hidden * arch.ffn
    rest = (counts.dense_ffn - d * dense + counts.router) / others
    return mixer + dense, mixer + rest, counts.moe_layers * arch.experts * counts.per_expert / others


def prediction_parameters(arch: Architecture, tp: ArrayLike = 1.0) -> tuple[Result, Result]:
    """Count the parameters of a layer that predicts a further token, as `layer_parameters`: (without routed experts, these), with its projection of 2 h to h.

    It is a layer of the kind of the last ones: both blocks where a layer of the network is one. Embedding and head are shared with the network.
    Shapes: as the architecture and tp. Units: [1]. Reference: DeepSeek-V3, arXiv:2412.19437, section 2.2, equations 21 to 23.

    >>> from models.serving.examples import DENSE
    >>> bool(prediction_parameters(DENSE)[0] - layer_parameters(DENSE)[1] == 2 * 4096**2)
    True
    """
    _, rest, experts = layer_parameters(arch, tp)
    blocks = np.where(np.asarray(arch.attention_layers) > 0, 2.0, 1.0)
    return blocks * rest + 2.0 * np.asarray(arch.hidden, float) ** 2, blocks * experts


def parameters_of(arch: Architecture, layouts: Layouts, contents: Contents) -> tuple[Floats, Floats]:
    """Count the (dense, expert) parameters of a rank: layers / tp, experts / ep, or / tp where ep is 1; a tied head is a copy where it lies apart.

    Projections down to a latent are whole on each tensor rank, which has them for its part of the sequence.
    Shapes: one axis. Units: [1]. Reference: Narayanan et al., arXiv:2104.04473, section 2; Singh et al., arXiv:2303.06318, section 3 (experts).

    >>> from models.serving.examples import DENSE
    >>> layouts = Layouts.of(tp=[1, 8])
    >>> dense, _ = parameters_of(DENSE, layouts, rank_contents(DENSE, layouts)[0])
    >>> float(dense[0] / dense[1])
    8.0
    """
    counts, tp = parameter_counts(arch), layouts.tp.astype(float)
    leading, rest, experts = layer_parameters(arch, tp)
    head = np.where(contents.embedding > 0, counts.head, counts.embedding)
    dense = contents.others * rest + contents.embedding * counts.embedding + contents.head * head
    expert = contents.others * experts
    if contents.leading.any():
        dense = dense + contents.leading * leading
    if contents.predicting.any():
        predicting, its_experts = prediction_parameters(arch, tp)
        dense, expert = dense + contents.predicting * predicting, expert + contents.predicting * its_experts
    if not np.any(arch.experts):
        return dense / tp, np.zeros_like(tp)
    return dense / tp, expert / np.where(layouts.ep > 1, layouts.ep, tp)
