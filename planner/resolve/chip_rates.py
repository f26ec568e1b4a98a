"""Rates of a chip for the closed forms, from the figures that its catalog record states."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from catalog.records import Record
from models.roofline import ChipRates

# Formats whose published peak holds for products at a precision, most direct first: BF16 and FP16 run at one rate, MXFP8 at that
# of FP8; weights narrower than the formats a chip computes in are widened to 16 bit.
RATED_AS = {
    "bf16": ("bf16", "fp16"),
    "fp16": ("fp16", "bf16"),
    "mxfp8": ("fp8",),
    "int4": ("bf16", "fp16"),
    "w8a16": ("bf16", "fp16"),
}
# Generations whose matrix units take 8-bit operands in either order of their elements, which values read from a KV cache need; those
# before take one order only (PTX ISA: wgmma against tcgen05), and attention widens such a cache to 16 bit.
EITHER_ORDER_OF_8_BIT = ("blackwell", "blackwell_ultra")
Read = Callable[[str], float | None]


class UnknownRate(ValueError):
    """A missing figure that every closed form needs."""


def stated(chip: Record) -> Read:
    """Read figures of a record in SI, None where it has none."""

    def read(name: str) -> float | None:
        figure = chip.get(name)
        return None if figure is None else figure.number

    return read


def peak_flop_per_s(read: Read, precision: str) -> float | None:
    """Return the peak rate of matrix products at a precision [FLOP/s], None where the chip states none."""
    names = RATED_AS.get(precision, (precision,))
    return next((rate for name in names if (rate := read(f"{name}_flop_per_s")) is not None), None)


def peak_rates(read: Read, precisions: Iterable[str]) -> dict[str, float]:
    """Return the peak rates [FLOP/s] of the precisions that the chip supports."""
    return {name: rate for name in precisions if (rate := peak_flop_per_s(read, name)) is not None}


def memory_figure(chip: Record) -> str:
    """Name the figure that holds the memory of a chip: what its driver reports, unless a user states another size as sold."""
    reported, sold = chip.get("driver_bytes"), chip.get("hbm_bytes")
    if reported is None or (sold is not None and sold.kind == "override" != reported.kind):
        return "hbm_bytes"
    return "driver_bytes"


def attention_flop_per_s(read: Read) -> tuple[float, str] | None:
    """Return the rate of attention, which is computed in 16 bit whatever the weights are, and the precision that it follows from.

    Where only narrower rates are published it is that of 8 bit halved, or that of 4 bit quartered, as the width of the operands has it.
    """
    for precision, width in (("bf16", 16), ("fp8", 8), ("int8", 8), ("fp4", 4)):
        if rate := peak_flop_per_s(read, precision):
            return rate * width / 16, precision
    return None


def attention8_flop_per_s(family: str, rate: float | None) -> float:
    """Return the rate of attention over a KV cache of 8 bit, of a chip with a peak `rate` in FP8; 0 where it is computed in 16 bit [FLOP/s]."""
    return (rate or 0.0) if family in EITHER_ORDER_OF_8_BIT else 0.0


def chip_rates(
    chip: Record,
    precision: str,
    *,
    scaleup_bytes_per_s: float,
    scaleup_chips: float,
    scaleout_bytes_per_s: float,
    ranks_per_chip: int = 1,
) -> ChipRates:
    """Build the rates of one rank: a chip, or its part where a layout counts cores or dies. Links are stated per chip [byte/s].

    Raises UnknownRate where the record lacks memory, bandwidth or a peak rate.
    """
    read = stated(chip)
    memory, bandwidth = read(memory_figure(chip)), read("hbm_bytes_per_s")
    if not memory or not bandwidth:
        raise UnknownRate("the chip has no published memory size or bandwidth")
    peak, attention = _peak(read, precision), attention_flop_per_s(read)
    if attention is None:
        raise UnknownRate("the chip has no published peak rate")
    return ChipRates(
        flop_per_s=peak / ranks_per_chip,
        flop16_per_s=attention[0] / ranks_per_chip,
        hbm_bytes_per_s=bandwidth / ranks_per_chip,
        hbm_bytes=memory / ranks_per_chip,
        scaleup_bytes_per_s=scaleup_bytes_per_s / ranks_per_chip,
        scaleup_chips=int(scaleup_chips * ranks_per_chip),
        scaleout_bytes_per_s=scaleout_bytes_per_s / ranks_per_chip,
        tdp_w=(read("tdp_w") or 0.0) / ranks_per_chip,
        attention8_flop_per_s=attention8_flop_per_s(chip.words("family") or "", read("fp8_flop_per_s"))
        / ranks_per_chip,
    )


def _peak(read: Read, precision: str) -> float:
    rate = peak_flop_per_s(read, precision)
    if not rate:
        raise UnknownRate(f"the chip has no published {precision} rate")
    return rate
