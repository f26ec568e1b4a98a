"""Low-rank adapters beside frozen matrices: where they sit, how many parameters they have. Their times are in layer.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Result, as_result
from models.training.constants import Recipe
from models.training.layouts import Layouts
from models.training.pipeline import stage_layers
from models.transformer.architecture import Architecture


@dataclass(frozen=True, slots=True)
class Matrix:
    """A frozen matrix with an adapter; `split` is the side that tensor parallelism divides, empty for neither."""

    inputs: Result  # [1]
    outputs: Result  # [1]
    split: str = "outputs"

    def sides(self, tp: Floats) -> tuple[Floats, Floats]:
        """Return (inputs, outputs) on one rank [1]."""
        inputs = np.asarray(self.inputs, float) / (tp if self.split == "inputs" else 1.0)
        outputs = np.asarray(self.outputs, float) / (tp if self.split == "outputs" else 1.0)
        return inputs * np.ones_like(tp), outputs * np.ones_like(tp)


def mixer_matrices(arch: Architecture, mixer: str) -> tuple[Matrix, ...]:
    """List the matrices of an attention or state-space block; with latent attention the matrices of the latents too.

    Shapes: scalars. Units: [1]. Reference: Hu et al., LoRA, arXiv:2106.09685, section 4.2 (adapters of attention).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> [(matrix.inputs, matrix.outputs) for matrix in mixer_matrices(arch, "attention")]
    [(4096, 6144), (4096, 4096)]
    """
    if mixer == "state":
        return Matrix(arch.hidden, 2 * arch.state_width + arch.state_inputs), Matrix(
            arch.state_width, arch.hidden, "inputs"
        )
    output = Matrix(arch.heads * arch.v_dim, arch.hidden, "inputs")
    if not arch.mla:
        return Matrix(
            arch.hidden,
            arch.heads * (arch.qk_dim + arch.output_gate * arch.v_dim) + arch.kv_heads * (arch.qk_dim + arch.v_dim),
        ), output
    latents = Matrix(arch.hidden, arch.q_lora_rank + arch.kv_lora_rank + arch.qk_rope_dim, "")
    queries = Matrix(arch.q_lora_rank if np.any(arch.q_lora_rank) else arch.hidden, arch.heads * arch.qk_dim)
    return latents, queries, Matrix(arch.kv_lora_rank, arch.heads * (arch.qk_nope_dim + arch.v_head_dim)), output


def feed_forward_matrices(arch: Architecture, width: Result, inputs: Result | None = None) -> tuple[Matrix, Matrix]:
    """List the two matrices of a feed-forward block, gate and up as one.

    Shapes: scalars. Units: width [1]. Reference: Dettmers et al., QLoRA, arXiv:2305.14314, section 4 (adapters on all layers).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> [(matrix.inputs, matrix.outputs) for matrix in feed_forward_matrices(arch, 14336)]
    [(4096, 28672), (14336, 4096)]
    """
    hidden = arch.hidden if inputs is None else inputs
    return Matrix(hidden, (arch.ffn_matrices - 1) * width), Matrix(width, hidden, "inputs")


def adapter_parameters(arch: Architecture, recipe: Recipe, active: bool = False) -> Result:
    """Count the parameters of all adapters:  r (inputs + outputs) for each adapted matrix.

    Shapes: a scalar. Units: [1]. `active`: those that one token passes. Zero without adapters.
    Reference: Hu et al., LoRA, arXiv:2106.09685, section 4.1.

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> int(adapter_parameters(arch, Recipe(adapter_rank=16))) == 32 * 16 * (4096 + 6144 + 4096 + 4096)
    True
    """
    dense, expert = adapters_per_rank(arch, Layouts.of(), recipe)
    share = np.divide(arch.topk, arch.experts) if active and np.any(arch.experts) else 1.0
    total = dense + expert * share
    return as_result(total if np.ndim(arch.layers) else total[0])


def adapters_per_rank(arch: Architecture, layouts: Layouts, recipe: Recipe) -> tuple[Floats, Floats]:
    """Count (dense, expert) adapter parameters of the fullest rank.

    The factor beside the undivided side of a matrix is whole on every tensor-parallel rank.
    Shapes: one axis. Units: [1]. Reference: Hu et al., LoRA, arXiv:2106.09685, section 4.1; Shoeybi et al., arXiv:1909.08053, section 3.

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> dense, expert = adapters_per_rank(arch, Layouts.of(tp=[1, 8], pp=[1, 2]), Recipe(adapter_rank=16))
    >>> dense.tolist(), expert.tolist()
    ([9437184.0, 2424832.0], [0.0, 0.0])
    """
    tp = layouts.tp.astype(float)
    here = stage_layers(arch.layers, layouts.pp) / arch.layers
    unsplit = np.where(layouts.ep > 1, 1.0, tp)

    def of(matrices: tuple[Matrix, ...], split: Floats) -> Floats:
        total = np.zeros_like(tp)
        for matrix in matrices:
            inputs, outputs = matrix.sides(split)
            total = total + inputs + outputs
        return recipe.adapter_rank * total

    dense = arch.attention_blocks * of(mixer_matrices(arch, "attention"), tp)
    if np.any(arch.state_blocks):
        dense = dense + arch.state_blocks * of(mixer_matrices(arch, "state"), tp)
    expert = np.zeros_like(tp)
    if recipe.adapts_ffn:
        dense = dense + (arch.ffn_layers - arch.moe_layers) * of(feed_forward_matrices(arch, arch.ffn), tp)
        if np.any(arch.experts):
            dense = dense + arch.moe_layers * np.where(
                np.asarray(arch.shared_width) > 0, of(feed_forward_matrices(arch, arch.shared_width), tp), 0.0
            )
            one = of(feed_forward_matrices(arch, arch.expert_ffn, arch.expert_input), unsplit)
            expert = arch.moe_layers * arch.experts / layouts.ep * one
    return dense * here, expert * here
