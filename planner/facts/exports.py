"""Say what the export rules of the United States make of a chip whose status for China the catalog does not know."""

from __future__ import annotations

from catalog.records import Record
from catalog.units import TERA
from planner.facts import Fact
from planner.messages import Message

CHINA = "CN"  # zone of sites that the rules are about
UNKNOWN, LICENCE = "unknown", "licence"
RULE = "BIS-2023"  # source of the threshold, with its date, in the catalog
LICENSED_FROM = 4800.0  # total processing performance from which ECCN 3A090 covers a part of any market
BITS = {"fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "fp6": 6, "fp4": 4, "int4": 4}


def processing_performance(chip: Record) -> float:
    """Compute the total processing performance of a chip: the largest  rate [10^12 operations/s] x width of the operands [bit].

    Dense rates, a multiplication and an addition as two operations. Source: ECCN 3A090, technical note 2 (88 FR 73458, 2023).
    """
    rates = {bits: chip.get(f"{name}_flop_per_s") for name, bits in BITS.items()}
    return max((rate.number / TERA * bits for bits, rate in rates.items() if rate is not None), default=0.0)


def export_status(chip: Record) -> str:
    """Return the status of a chip for China: the catalog's; where unknown, a licence from the rule's performance on, below it unknown."""
    stated = chip.words("export_cn") or UNKNOWN
    licensed = stated == UNKNOWN and processing_performance(chip) >= LICENSED_FROM
    return LICENCE if licensed else stated


def export_rule(chip: Record) -> str:
    """Return the source of the rule that bars a chip without a licence: the catalog's, else the threshold's."""
    return chip.words("export_rule") or (RULE if chip.words("export_cn") in ("", UNKNOWN) else "")


def unknown_status(path: str, system: str, site: str, chip: Record) -> Fact:
    """Note an offered system whose status is not known, and which no known rule bars."""
    message = Message.of(
        "export.unknown", system=system, site=site, performance=processing_performance(chip), least=LICENSED_FROM
    )
    return Fact(path, message, RULE)
