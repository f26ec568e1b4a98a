"""FLOPs of a training step per token: those that the architecture needs, and those repeated by recompute."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, Result, as_result
from models.training.adapters import adapter_parameters
from models.training.constants import DEFAULT_RECIPE, Recipe
from models.training.layer import FORGOTTEN_EXPONENT
from models.training.run import Run
from models.training.stages import prediction_parameters
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import attention_flops

TRAINING_PASSES = 3.0  # forward, and backward of twice the work
FROZEN_PASSES = 2.0  # forward, and the gradients of the inputs


def forward_flops(
    arch: Architecture, sequence_tokens: Result | int, recipe: Recipe = DEFAULT_RECIPE
) -> tuple[Result, Result]:
    """Count the FLOPs of a forward pass per token: (matrices, attention core), packed sequences by their examples.

    A layer that predicts a further token has the FLOPs of a layer of the network, its projection of 2 h to h, and the head once more.
    Shapes: as the sequence. Units: sequence [token], results [FLOP/token].
    Reference: Kaplan et al., arXiv:2001.08361, table 1; `architecture.attention_flops`.

    >>> from models.serving.examples import DENSE
    >>> float(forward_flops(DENSE, 8192, Recipe(example_tokens=1024.0))[1] / forward_flops(DENSE, 8192)[1])
    0.125
    """
    seen = recipe.attended_tokens(sequence_tokens)
    counts, core, n = parameter_counts(arch), attention_flops(arch, seen, seen) / seen, recipe.mtp_layers
    active = counts.active
    if n:
        dense, experts = prediction_parameters(arch)
        visited = np.divide(arch.topk, np.maximum(arch.experts, 1)) * experts
        active = active + n * (dense + visited + 1.0 * arch.hidden * arch.vocab)
        core = core * (1.0 + n / arch.attention_blocks)
    return as_result(2.0 * active), as_result(core)


def training_flops_per_token(
    arch: Architecture, sequence_tokens: Result | int, recipe: Recipe = DEFAULT_RECIPE
) -> Result:
    """Count the FLOPs that training needs per token:  3 (2 n + attention); with adapters  2 (2 n) + 3 (2 n_adapters + attention).

    Frozen weights need no gradient of their own, only that of their inputs. Recompute is not counted.
    Shapes: as the sequence. Units: sequence [token], result [FLOP/token].
    Reference: Narayanan et al., arXiv:2104.04473, equation 3; Hu et al., LoRA, arXiv:2106.09685, section 4.2.

    >>> from models.serving.examples import DENSE
    >>> full, tuned = (training_flops_per_token(DENSE, 1, Recipe(adapter_rank=rank)) for rank in (0, 16))
    >>> bool(0.666 < tuned / full < 0.67)
    True
    """
    matrices, core = forward_flops(arch, sequence_tokens, recipe)
    if not recipe.adapter_rank:
        return TRAINING_PASSES * (matrices + core)
    added = 2.0 * adapter_parameters(arch, recipe, active=True)
    return as_result(FROZEN_PASSES * matrices + TRAINING_PASSES * (added + core))


def recomputed_flops_per_token(run: Run) -> Floats:
    """Count the FLOPs repeated by recompute: the layers' forward (full), the attention core (selective without fused attention), or a share of
    forward (selective).

    Shapes: one axis. Units: [FLOP/token].
    Reference: Korthikanti et al., arXiv:2205.05198, section 5 and appendix A.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.examples import TRAINING
    >>> from models.training.layouts import Layouts
    >>> run = Run.of(DENSE, CHIP, Layouts.of(recompute=[0, 1, 2]), 4096, "bf16", TRAINING, "hopper", Recipe())
    >>> (recomputed_flops_per_token(run) / 1e9).round(1).tolist()
    [0.0, 1.8, 15.0]
    """
    arch, c = run.arch, run.constants
    matrices, core = forward_flops(arch, run.sequence_tokens, run.recipe)
    layers = matrices + core - 2.0 * arch.hidden * arch.vocab
    selective = c.recompute_selective_moe if np.any(arch.experts) else c.recompute_selective
    some = selective * layers if run.recipe.fused_attention else core
    repeated = np.choose(run.layouts.recompute, [0.0 * layers, some, layers])
    forgotten: Floats = np.asarray(run.recipe.forgotten, float) ** FORGOTTEN_EXPONENT * layers
    most: Floats = np.maximum(repeated, forgotten)
    return most
