"""Encoders of images, sound and video: what turns an item of media into tokens of a language model, and what that computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result

_BYTES = 2.0  # bytes of a parameter and of an activation, in 16 bit


@dataclass(frozen=True, slots=True)
class Encoder:
    """A transformer over the patches of an image or the frames of a sound, with the projector behind it."""

    parameters: float  # [1]
    layers: float
    hidden: float
    input_tokens: float  # patches or frames of one item [token]
    output_tokens: float  # tokens of one item that the language model reads [token]
    attended_tokens: float = float("inf")  # tokens that a patch attends to, where attention has windows [token]

    @property
    def weight_bytes(self) -> float:
        """Weights in 16 bit [byte]."""
        return _BYTES * self.parameters


def encoder_flops(encoder: Encoder, items: ArrayLike = 1.0) -> Result:
    """Compute the FLOPs of encoding:  items x [2 P x + 4 L h x min(x, w)],  x patches that attend to each other, or to w of them.

    Shapes: items [1]; result [FLOP]. Attention is not causal, so that all x^2 pairs count, 2 h FLOPs each for scores and for values.
    Reference: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021; Kaplan et al., arXiv:2001.08361, section 2.1 (count of FLOPs).

    >>> round(encoder_flops(Encoder(0.3e9, 24, 1024, 576, 576)) / 1e9)
    378
    """
    x = encoder.input_tokens
    pairs = x * min(x, encoder.attended_tokens)
    each = 2.0 * encoder.parameters * x + 4.0 * encoder.layers * encoder.hidden * pairs
    return as_result(np.asarray(items, float) * each)
