"""Rates of a chip for the closed forms, from the figures that its catalog record states."""

from __future__ import annotations

from collections.abc import Callable

from catalog.records import Record
from models.formats import ARITHMETICS, FORMATS, OPERAND_BITS, arithmetic_of
from models.roofline import ChipRates, Reached
from planner.messages import Message

# Formats whose published peak is that of an arithmetic, most direct first: BF16 and FP16 run at one rate.
PUBLISHED_AS = {"bf16": ("bf16", "fp16")}
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


def peak_flop_per_s(read: Read, arithmetic: str) -> float | None:
    """Return the peak rate of matrix products in an arithmetic [FLOP/s], None where the chip states none."""
    names = PUBLISHED_AS.get(arithmetic, (arithmetic,))
    return next((rate for name in names if (rate := read(f"{name}_flop_per_s")) is not None), None)


def peak_rates(read: Read) -> dict[str, float]:
    """Return the peak rates [FLOP/s] of every arithmetic that the chip has."""
    return {name: rate for name in ARITHMETICS if (rate := peak_flop_per_s(read, name)) is not None}


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
    rates = peak_rates(read)
    return next(((rates[name] * OPERAND_BITS[name] / 16, name) for name in ARITHMETICS if rates.get(name)), None)


def attention8_flop_per_s(family: str, rate: float | None) -> float:
    """Return the rate of attention over a KV cache of 8 bit, of a chip with a peak `rate` in FP8; 0 where it is computed in 16 bit [FLOP/s]."""
    return (rate or 0.0) if family in EITHER_ORDER_OF_8_BIT else 0.0


def reached(read: Read) -> Reached:
    """Read what the user's probe found of the rates of a chip; 1 where there was none."""
    names = ("16bit", "8bit", "attention", "memory", "scaleup")
    return Reached(*(read(f"reached_{name}") or 1.0 for name in names))


def chip_rates(
    chip: Record,
    precision: str,
    *,
    arithmetic: str = "",
    scaleup_bytes_per_s: float,
    scaleup_chips: float,
    scaleout_bytes_per_s: float,
    ranks_per_chip: int = 1,
) -> ChipRates:
    """Build the rates of one rank: a chip, or its part where a layout counts cores or dies. Links are stated per chip [byte/s].

    Weights are multiplied in the first arithmetic of their format that the chip has, or in the stated one (`arithmetic_of`).
    Raises UnknownRate where the record lacks memory, bandwidth or a peak rate.
    """
    read = stated(chip)
    memory, bandwidth = read(memory_figure(chip)), read("hbm_bytes_per_s")
    if not memory or not bandwidth:
        raise UnknownRate(Message.of("resolve.no_memory_figures").text())
    peaks, attention = peak_rates(read), attention_flop_per_s(read)
    if attention is None:
        raise UnknownRate(Message.of("resolve.no_peak_rate").text())
    used = arithmetic_of(precision, peaks, arithmetic)
    if used is None:
        raise UnknownRate(
            Message.of(
                "resolve.no_rate_for_weights",
                arithmetic=arithmetic or FORMATS[precision].arithmetic[-1],
                precision=precision,
            ).text()
        )
    rates = ChipRates(
        flop_per_s=peaks[used] / ranks_per_chip,
        flop16_per_s=attention[0] / ranks_per_chip,
        hbm_bytes_per_s=bandwidth / ranks_per_chip,
        hbm_bytes=memory / ranks_per_chip,
        scaleup_bytes_per_s=scaleup_bytes_per_s / ranks_per_chip,
        scaleup_chips=int(scaleup_chips * ranks_per_chip),
        scaleout_bytes_per_s=scaleout_bytes_per_s / ranks_per_chip,
        tdp_w=(read("tdp_w") or 0.0) / ranks_per_chip,
        attention8_flop_per_s=attention8_flop_per_s(chip.words("family") or "", read("fp8_flop_per_s"))
        / ranks_per_chip,
        gemm_bits=float(OPERAND_BITS[used]),
    )
    return reached(read).on(rates)
