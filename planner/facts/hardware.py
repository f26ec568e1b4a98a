"""Compare the figures of chips and systems that a user states with the catalog's: ratios that physics and markets keep narrow."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.figures import Figure
from catalog.records import Record
from catalog.units import show
from planner.facts import Fact
from planner.facts.ranges import Ratio, listed
from planner.messages import Message

SHARES = ("compute_share", "memory_share", "bandwidth_share")  # figures of a system that is a slice of one chip
NEXT_PREFIX = 1000.0**0.5  # times the catalog's figure: beyond, a figure is nearer to the next prefix of its unit


def _sixteen_bit(of: Mapping[str, float]) -> float:
    return of["bf16_flop_per_s"] if "bf16_flop_per_s" in of else of["fp16_flop_per_s"]


CHIP: Mapping[str, Ratio] = {
    "chip.efficiency": ("FLOP", lambda of: _sixteen_bit(of) / of["tdp_w"]),
    "chip.balance": ("1", lambda of: _sixteen_bit(of) / of["hbm_bytes_per_s"]),
    "chip.drain": ("s", lambda of: of["hbm_bytes"] / of["hbm_bytes_per_s"]),
    "chip.eight_bit": ("1", lambda of: of["fp8_flop_per_s"] / _sixteen_bit(of)),
    "chip.link": ("1", lambda of: of["scaleup_bytes_per_s"] / of["hbm_bytes_per_s"]),
}
"""Ratios of a chip by the code of their note: operations per joule, operations per byte, time to read its memory once, 8 over 16 bit, link over
memory; the range is that of the catalog."""
SYSTEM: Mapping[str, Ratio] = {
    "system.power": ("1", lambda of: of["power_w"] / (of["chips"] * of["chip.tdp_w"])),
    "system.network": ("1", lambda of: of["nic_bytes_per_s"] / of["chip.hbm_bytes_per_s"]),
}
"""Ratios of a system by the code of their note: its power over that of its chips, network of a chip over its memory; the range is that of
the catalog. Figures of the chip stand under "chip."."""


def slice_of_several(path: str, system: Record) -> Fact | None:
    """Refuse shares of a system with several chips: a slice is a part of one chip."""
    shares = [name for name in SHARES if system.get(name) is not None]
    chips = system.get("chips")
    if not shares or chips is None or chips.number == 1:
        return None
    told = {"system": system.name, "share": shares[0], "chips": f"{chips.number:g}"}
    return Fact(
        path, Message.of("slice.of_several", **told), "NVIDIA, MIG User Guide: instances of one GPU", refuses=True
    )


def another_prefix(path: str, stated: Figure | None, shipped: Figure | None) -> Fact | None:
    """Name an override that is nearer to another prefix of its unit (k, M, m: steps of 1000) than to the catalog's figure: 32 times, or a 32nd."""
    if stated is None or shipped is None:
        return None
    if isinstance(stated.value, tuple) or isinstance(shipped.value, tuple) or stated.unit != shipped.unit:
        return None
    if shipped.number <= 0.0 or stated.number <= 0.0 or 1 / NEXT_PREFIX < stated.number / shipped.number < NEXT_PREFIX:
        return None
    told = {"given": show(stated.number, stated.unit), "known": show(shipped.number, shipped.unit)}
    return Fact(path, Message.of("override.another_prefix", **told), f"the catalog's figure: {listed(shipped.source)}")
