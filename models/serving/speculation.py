"""Speculative decoding and multi-token prediction: tokens gained per step, and what drafting and verifying add to its time.

The step itself is in step.py; what a faster step does to a replica under load is in continuous_batching.py and disaggregation.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result, sum_of
from models.formats import Precision, stored
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts, held_experts
from models.serving.step import HOST, StepLoad, StepTime, step_time
from models.serving.workload import Precisions
from models.transformer.architecture import Architecture, attention_on_ranks, parameter_counts


@dataclass(frozen=True, slots=True)
class Speculation:
    """A number of drafted tokens per sequence and step, each accepted with the same chance given that those before it were.

    `draft_share`: time of one draft pass as a share of the step without speculation (a small network, or 0 for look-ups in the
    prompt); None for multi-token prediction, where a draft is one more layer of the architecture and its vocabulary head.
    """

    draft_tokens: int
    acceptance: float
    draft_share: float | None = None

    def __post_init__(self) -> None:
        wrong = [name for name, fine in (
            ("draft_tokens must be at least 1", self.draft_tokens >= 1),
            ("acceptance must lie between 0 and 1", 0.0 <= self.acceptance <= 1.0),
            ("draft_share must not be negative", self.draft_share is None or self.draft_share >= 0.0),
        ) if not fine]  # fmt: skip
        if wrong:
            raise ValueError(f"speculation: {'; '.join(wrong)}")

    @property
    def tokens_per_step(self) -> float:
        """Mean output tokens of a sequence and step."""
        return float(tokens_per_step(self.acceptance, self.draft_tokens))

    def in_answer(self, later_tokens: ArrayLike) -> Result:
        """Compute the mean output tokens of a step, over an answer of a number of tokens after its first (`tokens_per_step_of`) [token]."""
        return tokens_per_step_of(self.acceptance, self.draft_tokens, later_tokens)

    @property
    def verified_tokens(self) -> float:
        """Tokens of a sequence that a step passes through the network: the drafts and the one before them."""
        return self.draft_tokens + 1.0


def tokens_per_step(acceptance: ArrayLike, draft_tokens: ArrayLike) -> Result:
    """Compute the mean tokens that a step yields per sequence:  (1 - a^(g+1)) / (1 - a),  and g + 1 for a = 1.

    The first rejected draft is replaced by the network's own token, so one token is certain.
    Shapes: broadcast. Units: acceptance a [1] in [0, 1], drafts g [token] >= 0, result [token]. Acceptance is taken as
    independent of the position among the drafts.
    Reference: Leviathan, Kalman and Matias, Fast Inference from Transformers via Speculative Decoding, ICML 2023, equation 1.

    >>> float(tokens_per_step(0.5, 1)), float(tokens_per_step(0.0, 4)), float(tokens_per_step(1.0, 4))
    (1.5, 1.0, 5.0)
    """
    a, g = np.asarray(acceptance, float), np.asarray(draft_tokens, float)
    below = np.where(a < 1.0, a, 0.0)
    return as_result(np.where(a < 1.0, (1.0 - below ** (g + 1.0)) / (1.0 - below), g + 1.0))


def tokens_per_step_of(acceptance: ArrayLike, draft_tokens: ArrayLike, later_tokens: ArrayLike) -> Result:
    """Compute the mean tokens of a step over an answer of n tokens that speculation yields:  n / max(1, (n + r)/E).

    A request takes one step at least, and what its last step yields beyond the end is no part of the answer: r = (E[Y^2]/E - 1)/2 tokens on
    average, for Y tokens of a step, E = E[Y], E[Y^2] = sum of (2 j + 1) a^j. Exact for n of 1, and as n grows.
    Shapes: broadcast. Units: acceptance a [1], drafts g and n [token], result [token]. Valid for n > 0.
    Reference: Leviathan, Kalman and Matias, ICML 2023, equation 1; Feller, volume 1, section XIII.11 (renewals, residual time).

    >>> [round(float(tokens_per_step_of(0.8, 3, n)), 2) for n in (1, 10, 1e6)]
    [1.0, 2.63, 2.95]
    """
    a, g, n = np.asarray(acceptance, float), np.asarray(draft_tokens, float), np.asarray(later_tokens, float)
    mean = tokens_per_step(a, g)
    reached = np.arange(np.max(g) + 1.0)
    square = np.where(reached <= g[..., None], (2.0 * reached + 1.0) * a[..., None] ** reached, 0.0).sum(axis=-1)
    beyond = 0.5 * (square / mean - 1.0)
    return as_result(n / np.maximum(1.0, (n + beyond) / mean))


def step_tokens(speculation: Speculation | None, later_tokens: ArrayLike) -> tuple[Result, float]:
    """Return (output tokens, tokens passed through the network) of a sequence and step, with speculation or, for None, without.

    Shapes: as later_tokens [token], the tokens of an answer after its first; result [token]. Reference: as `tokens_per_step_of`.

    >>> step_tokens(None, 100.0), step_tokens(Speculation(4, 0.0), 100.0)[1]
    ((1.0, 1.0), 5.0)
    """
    return (1.0, 1.0) if speculation is None else (speculation.in_answer(later_tokens), speculation.verified_tokens)


def prediction_layer(arch: Architecture) -> Architecture:
    """Build the multi-token-prediction module as an architecture: one layer of the last kind, and the head.

    Shapes: a scalar architecture in and out; counts [1]. The projection that joins hidden state and embedding (2 h^2, a few
    per cent of a layer) is left out.
    Reference: DeepSeek-V3, arXiv:2412.19437, section 2.2; Gloeckle et al., Better & Faster Large Language Models via
    Multi-token Prediction, ICML 2024.

    >>> from models.serving import examples
    >>> prediction_layer(examples.MOE).layers, prediction_layer(examples.MOE).moe_layers
    (1, 1)
    """
    windowed = int(np.all(np.asarray(arch.full_layers) <= 0) and np.any(arch.window_layers))
    return replace(
        arch,
        layers=1,
        dense_layers=0,
        window_layers=windowed,
        linear_layers=0,
        attention_layers=0,
        state_layers=0,
        state_width=0,
        state_inputs=0,
    )


def draft_bytes_per_chip(
    arch: Architecture, layouts: ServingLayouts, weight_precision: Precision, speculation: Speculation
) -> Result:
    """Compute the weights of the prediction layer on a chip that holds it:  w N_dense / tp + w_e N_experts / (tp dp);  0 for other drafts.

    The head is the architecture's own. A separate draft network is taken to be small. Shapes: as layouts; result [byte].
    Reference: DeepSeek-V3, arXiv:2412.19437, section 2.2 (embedding and head are shared).

    >>> from models.serving import examples
    >>> one = ServingLayouts(1, 1, 1, 1)
    >>> bool(draft_bytes_per_chip(examples.DENSE, one, "bf16", Speculation(1, 0.8)) > 0)
    True
    >>> float(draft_bytes_per_chip(examples.DENSE, one, "bf16", Speculation(4, 0.8, draft_share=0.05)))
    0.0
    """
    if speculation.draft_share is not None:
        return np.zeros(np.shape(layouts.tp))
    count = parameter_counts(prediction_layer(arch))
    experts = count.per_expert * held_experts(arch, layouts) * count.moe_layers
    width = stored(arch.checkpoints, weight_precision)
    attention = attention_on_ranks(prediction_layer(arch), layouts.tp) * width.attention
    dense = attention + count.dense_ffn * width.ffn + count.router * width.router
    return as_result(dense / layouts.tp + width.experts * experts / layouts.stage_chips)


def speculative_step(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    speculation: Speculation,
    *,
    decode_sequences: ArrayLike,
    context_tokens: ArrayLike,
    precisions: Precisions,
    constants: ServingConstants,
) -> tuple[StepTime, StepTime]:
    """Predict (verification, the whole step with its drafts):  T = T_verify(b, g + 1 tokens each) + g T_draft(b).

    Verifying reads weights and KV cache once for all g + 1 tokens of a sequence; arithmetic, communication and the experts
    touched grow with the tokens. A draft of multi-token prediction is a step of `prediction_layer` without its host time; of
    another kind, `draft_share` of the step without speculation. Parts keep their names and add up to the whole.
    Shapes: layouts, decode_sequences [sequences of the micro-batch], context_tokens [token] broadcast; result [s].
    Reference: Leviathan, Kalman and Matias, ICML 2023, section 3.3; DeepSeek-V3, arXiv:2412.19437, section 2.2.

    >>> from models.serving import examples
    >>> verify, whole = speculative_step(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Speculation(2, 0.8),
    ...     decode_sequences=4, context_tokens=1024, precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> bool(whole.total_s > verify.total_s), bool(abs(sum(whole.breakdown.values()) - whole.total_s) < 1e-12)
    (True, True)
    """
    load = StepLoad(decode_sequences, context_tokens)
    verified = replace(load, tokens_per_sequence=speculation.verified_tokens)
    verify = step_time(arch, chip, layouts, verified, precisions=precisions, constants=constants)
    drafter, at = arch, layouts
    passes = float(speculation.draft_tokens)
    if speculation.draft_share is None:
        # A draft runs where the last stage is: the other stages do not take part.
        drafter, at = prediction_layer(arch), replace(layouts, pp=np.ones_like(layouts.pp))
    else:
        passes = speculation.draft_tokens * speculation.draft_share
    drafted = step_time(drafter, chip, at, load, precisions=precisions, constants=constants)
    parts = {
        name: part + (0.0 if name == HOST else passes * drafted.breakdown[name])
        for name, part in verify.breakdown.items()
    }
    return verify, StepTime(sum_of(parts.values()), parts)


def speculative_speedup(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    speculation: Speculation,
    *,
    decode_sequences: ArrayLike,
    context_tokens: ArrayLike,
    precisions: Precisions,
    constants: ServingConstants,
) -> Result:
    """Predict the decode rate with speculation over that without, at one batch:  E T(b) / T_spec(b),  E tokens per step.

    Above 1 while weights are read for few tokens; it falls with the batch once arithmetic counts, and at small batches of
    a mixture of experts since more drafts touch more experts. Shapes and units: as `speculative_step`; result [1].
    Reference: Leviathan, Kalman and Matias, ICML 2023, theorem 3.8; Sadhukhan et al., MagicDec, ICLR 2025 (the batch).

    >>> from models.serving import examples
    >>> gain = speculative_speedup(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), Speculation(3, 0.8),
    ...     decode_sequences=np.array([1, 512]), context_tokens=1024, precisions=Precisions("bf16", "bf16"),
    ...     constants=examples.SERVING)
    >>> bool(gain[0] > 2.0), bool(gain[1] < gain[0])
    (True, True)
    """
    plain = step_time(
        arch, chip, layouts, StepLoad(decode_sequences, context_tokens), precisions=precisions, constants=constants
    )
    _, whole = speculative_step(
        arch, chip, layouts, speculation, decode_sequences=decode_sequences, context_tokens=context_tokens,
        precisions=precisions, constants=constants,
    )  # fmt: skip
    return speculation.tokens_per_step * plain.total_s / whole.total_s


def decode_step(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    speculation: Speculation | None,
    *,
    decode_sequences: ArrayLike,
    context_tokens: ArrayLike,
    precisions: Precisions,
    constants: ServingConstants,
) -> tuple[StepTime, StepTime]:
    """Predict (the pass that prompts are mixed into, the whole step) of a decoding micro-batch, with speculation or, for None, without.

    Without it both are the same. Shapes and units: as `speculative_step`, result [s].
    Reference: as `speculative_step`.

    >>> from models.serving import examples
    >>> mixed, whole = decode_step(examples.DENSE, examples.CHIP, ServingLayouts(1, 1, 1, 1), None, decode_sequences=4,
    ...     context_tokens=1024, precisions=Precisions("bf16", "bf16"), constants=examples.SERVING)
    >>> mixed is whole
    True
    """
    if speculation is not None:
        return speculative_step(
            arch, chip, layouts, speculation, decode_sequences=decode_sequences, context_tokens=context_tokens,
            precisions=precisions, constants=constants,
        )  # fmt: skip
    load = StepLoad(decode_sequences, context_tokens)
    step = step_time(arch, chip, layouts, load, precisions=precisions, constants=constants)
    return step, step
