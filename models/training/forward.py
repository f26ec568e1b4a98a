"""Forward pass over a batch in a training layout, which scores sequences without training on them."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats, sum_of
from models.training.layer import head_s
from models.training.run import Run
from models.training.stack import fullest_stage_s, stack_times
from models.training.step import pipeline_transfer_s, release_factor, straggler_factor


def forward_s(run: Run, sequences: float) -> Floats:
    """Predict the forward pass over `sequences` in the layouts of a run, without gradients:  T = (m + p - 1) F + m transfer / 2.

    m micro-batches of each replica pass p stages, of which F is the fullest, with the head if it is the last; half of the transfers of a training step are left. Straggler
    and release as in `step.training_step`; nothing is exchanged between replicas.
    Shapes: one axis of layouts. Units: sequences [1], result [s].
    Reference: Narayanan et al., arXiv:2104.04473, section 2.2 (fill of a pipeline); `step.training_step`.

    >>> from models.serving.examples import CHIP, DENSE
    >>> from models.training.constants import Recipe
    >>> from models.training.examples import TRAINING
    >>> from models.training.layouts import Layouts
    >>> from models.training.step import training_step
    >>> layouts = Layouts.of(tp=[1, 8], dp=[64, 8])
    >>> step = training_step(DENSE, CHIP, layouts, global_batch_sequences=512, sequence_tokens=4096, precision="bf16", constants=TRAINING, family="hopper")
    >>> once = forward_s(Run.of(DENSE, CHIP, layouts, 4096, "bf16", TRAINING, "hopper", Recipe()), 512)
    >>> bool(np.all((once > 0.25 * step.step_s) & (once < 0.4 * step.step_s)))
    True
    """
    layouts = run.layouts
    micro_batches = np.ceil(sequences / (layouts.dp * layouts.micro_batch))
    stage = fullest_stage_s(run, {kind: forward for kind, (forward, _) in stack_times(run).items()}, head_s(run))
    once = (micro_batches + layouts.pp - 1.0) * sum_of(stage.values())
    once = once + micro_batches * pipeline_transfer_s(run) / 2.0 + run.constants.step_overhead_s
    waiting = straggler_factor(layouts.dp * layouts.cp, run.constants.straggler_per_doubling)
    rate = run.constants.release_rate_moe if np.any(run.arch.experts) else run.constants.release_rate_dense
    return np.asarray(once * waiting * release_factor(run.recipe.release_year, rate), float)
