"""Time of one operator on one chip: peak arithmetic against memory traffic. What the operators are is in models/transformer/architecture.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result


@dataclass(frozen=True, slots=True)
class ChipRates:
    """Rates of one chip; links in one direction. Bandwidths beyond the chip are as printed, before any efficiency."""

    flop_per_s: float  # peak of the weight GEMMs, in the arithmetic that weights of their format take here [FLOP/s]
    flop16_per_s: float  # peak at 16 bit, for attention [FLOP/s]
    hbm_bytes_per_s: float  # [byte/s]
    hbm_bytes: Result  # [byte]
    scaleup_bytes_per_s: float  # to chips of the same scale-up domain [byte/s]
    scaleup_chips: int  # chips of a scale-up domain [1]
    scaleout_bytes_per_s: float  # to chips of other domains [byte/s]
    tdp_w: float  # [W]
    scaleout_latency_s: float = 0.0  # a message's way through the switches between domains [s]
    attention8_flop_per_s: float = 0.0  # attention over a KV cache of 8 bit; 0: computed in 16 bit [FLOP/s]
    host_bytes_per_s: float = 0.0  # to the memory of the host; 0 where it is not known [byte/s]
    # How the scale-up rate falls with the chips of a group, as (g / 2)^-c: 0 where each chip has links of its own [1].
    scaleup_crowding: float = 0.0
    reached: Result = (
        1.0  # factor in flop_per_s of what a probe found, which utilisation of the peak does not count [1]
    )
    gemm_bits: Result = 0.0  # operands of the weight GEMMs; 0: as the format of the weights has them [1]

    def __post_init__(self) -> None:
        wrong = [
            name
            for name in ("flop_per_s", "flop16_per_s", "hbm_bytes_per_s", "hbm_bytes", "reached")
            if not _all(getattr(self, name) > 0.0)
        ]
        wrong += [
            name
            for name in (
                "scaleup_bytes_per_s",
                "scaleout_bytes_per_s",
                "tdp_w",
                "scaleout_latency_s",
                "attention8_flop_per_s",
                "host_bytes_per_s",
                "gemm_bits",
            )
            if not _all(getattr(self, name) >= 0.0)
        ]
        if not _all(self.scaleup_chips >= 1):
            wrong.append("scaleup_chips")
        if wrong:
            raise ValueError(f"chip rates: {', '.join(wrong)} must be positive")


@dataclass(frozen=True, slots=True)
class Reached:
    """What a chip reaches of its published rates, over the rates expected of it [1]."""

    bits16: float = 1.0  # matrix products with operands of 16 bits
    bits8: float = 1.0
    attention: float = 1.0
    memory: float = 1.0
    scaleup: float = 1.0

    def on(self, rates: ChipRates) -> ChipRates:
        """Return rates with the factors:  r x factor, of GEMMs that of their operands' width; utilisation still counts the published peak.

        Shapes: scalars. Units: [1] on [FLOP/s] and [byte/s]. Reference: a probe of the user's own, `planner.calibration.probes`.

        >>> chip = ChipRates(1e15, 1e15, 4e12, 8e10, 4e11, 8, 5e10, 700.0, gemm_bits=16.0)
        >>> Reached(bits16=0.5, memory=0.75).on(chip).flop_per_s / 1e15, Reached(bits8=0.5).on(chip).flop_per_s / 1e15
        (0.5, 1.0)
        """
        if self == AS_PUBLISHED:
            return rates
        gemm = {16.0: self.bits16, 8.0: self.bits8}.get(float(rates.gemm_bits), 1.0)
        return replace(
            rates,
            flop_per_s=rates.flop_per_s * gemm,
            reached=gemm,
            flop16_per_s=rates.flop16_per_s * self.attention,
            attention8_flop_per_s=rates.attention8_flop_per_s * self.attention,
            hbm_bytes_per_s=rates.hbm_bytes_per_s * self.memory,
            scaleup_bytes_per_s=rates.scaleup_bytes_per_s * self.scaleup,
        )


AS_PUBLISHED = Reached()


def _all(holds: Floats | bool) -> bool:
    return holds if isinstance(holds, bool) else bool(np.all(holds))


def roofline_s(flop: ArrayLike, moved_bytes: ArrayLike, flop_per_s: ArrayLike, bytes_per_s: ArrayLike) -> Result:
    """Compute the roofline time of an operator that overlaps arithmetic with memory traffic perfectly:  max(F / P, B / beta).

    Shapes: broadcast. Units: work [FLOP], traffic [byte], rates [FLOP/s] and [byte/s], result [s]. Both rates positive.
    Reference: Williams, Waterman and Patterson, Communications of the ACM 52 (2009), equation 1.

    >>> float(roofline_s(1e12, 1e9, 1e15, 1e12)), float(roofline_s(1e12, 1e10, 1e15, 1e12))
    (0.001, 0.01)
    """
    return as_result(np.maximum(np.divide(flop, flop_per_s), np.divide(moved_bytes, bytes_per_s)))


def ridge_flop_per_byte(flop_per_s: ArrayLike, bytes_per_s: ArrayLike) -> Result:
    """Compute the ridge point, the arithmetic intensity at which a chip is as busy computing as loading:  P / beta.

    Shapes: broadcast. Units: rates [FLOP/s] and [byte/s], result [FLOP/byte].
    Reference: Williams, Waterman and Patterson, Communications of the ACM 52 (2009), section 4 (ridge point).

    >>> float(ridge_flop_per_byte(300e12, 2e12))
    150.0
    """
    return as_result(np.divide(flop_per_s, bytes_per_s))


def saturation_factor(m: ArrayLike, n: ArrayLike, k: ArrayLike, half_size: ArrayLike) -> Result:
    """Compute how much longer a GEMM takes because it is small:  1 + n0 (1/M + 1/N + 1/K).

    n0 is the extent at which one dimension alone halves the rate: prologue, tile and wave quantisation in one smooth term. With n0 in proportion to
    the ridge point P / beta the excess over 2 M N K / P is the time to move a share of the operands, which no arithmetic hides, whatever P: a chip
    that computes faster is never slower.
    Shapes: broadcast. Units: extents and n0 [1], result [1]. Valid for positive extents; an empty product has no size to correct: 1.
    Reference: Hockney, Parallel Computing 2 (1985), n-half model, with a start-up for each operand of a GEMM.

    >>> float(saturation_factor(100, 1e9, 1e9, 100)).__round__(3)
    2.0
    """
    m, n, k = (np.asarray(extent, float) for extent in (m, n, k))
    filled = (m > 0.0) & (n > 0.0) & (k > 0.0)
    if not filled.all():
        m, n, k = (np.where(filled, extent, np.inf) for extent in (m, n, k))
    half = np.asarray(half_size, float)
    return as_result(1.0 + half * (1.0 / m + 1.0 / n + 1.0 / k))


def misalignment_factor(n: ArrayLike, k: ArrayLike, penalty: ArrayLike, multiple: int = 128) -> Result:
    """Compute how much longer a GEMM takes when N or K per rank is no multiple of the tile:  1 + penalty, else 1.

    Shapes: broadcast. Units: extents [1], penalty [1], result [1].
    Reference: NVIDIA, Matrix Multiplication Background User's Guide, section 3.1 (tensor core requirements) and tile quantisation.

    >>> float(misalignment_factor(256, 128, 0.5)), float(misalignment_factor(100, 128, 0.5))
    (1.0, 1.5)
    """
    aligned = (np.mod(n, multiple) == 0) & (np.mod(k, multiple) == 0)
    return as_result(np.where(aligned, 1.0, 1.0 + np.asarray(penalty, float)))


def gemm_s(
    m: ArrayLike, n: ArrayLike, k: ArrayLike, flop_per_s: ArrayLike, bytes_per_s: ArrayLike,
    bytes_per_element: ArrayLike, half_size: ArrayLike = 0.0, misalignment: ArrayLike = 0.0,
) -> Result:  # fmt: skip
    """Predict the time of an M x N x K matrix product: saturated arithmetic against reading both operands and writing the result.

    max(2 M N K / P x saturation x alignment, b (M K + K N + M N) / beta); nothing for an empty product.
    Shapes: broadcast. Units: extents [1], rates [FLOP/s] and [byte/s], bytes per element [byte], result [s].
    Reference: Williams, Waterman and Patterson, Communications of the ACM 52 (2009), equation 1; `saturation_factor`.

    >>> float(gemm_s(4096, 4096, 4096, 300e12, 2e12, 2)) == 2 * 4096**3 / 300e12
    True
    """
    m, n, k = (np.asarray(extent, float) for extent in (m, n, k))
    flop = 2.0 * m * n * k * saturation_factor(m, n, k, half_size) * misalignment_factor(n, k, misalignment)
    seconds = roofline_s(flop, np.asarray(bytes_per_element, float) * (m * k + k * n + m * n), flop_per_s, bytes_per_s)
    return as_result(np.where((m > 0.0) & (n > 0.0) & (k > 0.0), seconds, 0.0))
