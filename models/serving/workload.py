"""Workload of a serving model: the lengths of requests with their spread, the precisions of weights and KV cache, and how weights of a format
are read and multiplied, by part of the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result, sum_of
from models.formats import WIDE_BYTES, Precision, Stored, operand_bits
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.transformer.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Media:
    """Images, sounds or videos in a prompt: how many [1], and the encoder of one."""

    encoder: Encoder
    items: float  # items of a request, on average
    items_scv: float = 0.0
    apart: bool = False  # whether they are encoded in a pool of their own

    @property
    def tokens(self) -> float:
        """Tokens that they add to a prompt, on average [token]."""
        return self.items * self.encoder.output_tokens


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean prompt and output lengths [token] of a workload, and the squared coefficient of variation of each [1].

    `input_tokens` and its variation count the text; what `media` add counts in `prompt` and `scv_of_input`.
    """

    input_tokens: ArrayLike
    output_tokens: ArrayLike
    input_scv: ArrayLike = 0.0
    output_scv: ArrayLike = 0.0
    media: tuple[Media, ...] = ()

    @property
    def media_tokens(self) -> float:
        """Mean tokens that media add to a prompt [token]."""
        return sum_of(media.tokens for media in self.media)

    @property
    def prompt(self) -> Floats:
        """Mean tokens of a prompt [token]."""
        return np.asarray(self.input_tokens, float) + self.media_tokens

    @property
    def output(self) -> Floats:
        """Mean output tokens of a request [token]."""
        return np.asarray(self.output_tokens, float)

    @property
    def later_tokens(self) -> Floats:
        """Mean output tokens after the first, which prefill yields [token]."""
        return np.asarray(self.output_tokens, float) - 1.0

    @property
    def scv_of_input(self) -> Floats:
        """Squared coefficient of variation of the prompt length [1]."""
        text = np.asarray(self.input_scv, float)
        if not self.media:
            return text
        spread = sum_of(media.items_scv * media.tokens**2 for media in self.media)
        both: Floats = (text * np.asarray(self.input_tokens, float) ** 2 + spread) / self.prompt**2
        return both

    @property
    def scv_of_output(self) -> Floats:
        """Squared coefficient of variation of the output length [1]."""
        return np.asarray(self.output_scv, float)

    @property
    def scv_of_held(self) -> Result:
        """Squared coefficient of variation of the tokens of a running request [1]: of its prompt, and of as much of its answer as it has.

        Long answers run longest: of answers O of c = cO^2 (gamma) a running one has (1 + c) O/2 on average, of square (1 + c)(1 + 2 c) O^2/3.
        """
        c, later = np.asarray(self.scv_of_output, float), np.asarray(self.later_tokens, float)
        answers = later**2 * (1.0 + c) * ((1.0 + 2.0 * c) / 3.0 - (1.0 + c) / 4.0)
        return as_result((self.prompt**2 * self.scv_of_input + answers) / self.running_context_tokens**2)

    @property
    def running_context_tokens(self) -> Result:
        """Mean context of the requests in decode [token]:  I + (O - 1)/2 (1 + scv), since long outputs are met more often among them."""
        return self.prompt + 0.5 * self.later_tokens * (1.0 + self.scv_of_output)


@dataclass(frozen=True, slots=True)
class Precisions:
    """Number formats of the weights and of the KV cache."""

    weights: Precision
    kv_cache: Precision


def products_s(
    chip: ChipRates, width: Stored, precision: Precision, constants: ServingConstants, flops: Mapping[str, Result]
) -> Result:
    """Predict products of the parts of a network on one chip:  narrow / (F e_c(bits) e_w) + wide / (F16 e_c(16)).

    What the checkpoint leaves in 16 bit is computed at that rate; e_w is `ServingConstants.widened`. Shapes: broadcast. Units: work [FLOP],
    result [s]. Reference: Williams, Waterman and Patterson, Roofline, CACM 52 (2009); Frantar et al., MARLIN, arXiv:2408.11743.

    >>> from models.formats import stored
    >>> from models.serving.examples import CHIP, SERVING
    >>> round(float(products_s(CHIP, stored((), "bf16"), "bf16", SERVING, {"ffn": 5e14})), 9)
    1.0
    """
    bits = gemm_bits(chip, precision)
    efficiency = constants.efficiency_at(bits) * constants.widened(width.narrow, bits)
    total: Result = sum_of(flops.values(), 0.0)
    rate = chip.flop_per_s * efficiency
    if not any(np.any(width.wide[part]) for part in flops):
        return total / rate
    wide = sum_of(work * width.wide[part] for part, work in flops.items())
    return (total - wide) / rate + wide / (chip.flop16_per_s * constants.efficiency_at(16))


def read_bytes(
    chip: ChipRates, width: Stored, precision: Precision, constants: ServingConstants, weights: Mapping[str, Result]
) -> Result:
    """Count the bytes of weights by part of the network, those that are widened on the way by how much slower they are read:  wide + narrow / e_w.

    Shapes: broadcast. Units: weights [1], result [byte]. Reference: Frantar et al., MARLIN, arXiv:2408.11743; fit, see the catalog.

    >>> from models.formats import stored
    >>> from models.serving.examples import CHIP, SERVING
    >>> float(read_bytes(CHIP, stored((), "bf16"), "bf16", SERVING, {"ffn": 10.0}))
    20.0
    """
    wide: Result = sum_of((count * WIDE_BYTES * width.wide[part] for part, count in weights.items()), 0.0)
    every: Result = sum_of((count * getattr(width, part) for part, count in weights.items()), 0.0)
    return wide + (every - wide) / constants.widened(width.narrow, gemm_bits(chip, precision))


def gemm_bits(chip: ChipRates, precision: Precision) -> Result:
    """Return the bits of the operands of weight GEMMs: the bits of the chip's arithmetic, else as the format has them.

    Shapes: as the precision; result [bit]. Reference: Frantar et al., MARLIN, arXiv:2408.11743 (4-bit weights, 16-bit products).

    >>> from models.serving.examples import CHIP
    >>> float(gemm_bits(CHIP, "fp8"))
    8.0
    """
    if not np.ndim(chip.gemm_bits):
        return chip.gemm_bits if chip.gemm_bits else operand_bits(precision)
    return as_result(np.where(chip.gemm_bits, chip.gemm_bits, operand_bits(precision)))
