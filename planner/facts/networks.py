"""Compare the shape of a network that a user states with its published size, and with the shapes of the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.records import Record
from catalog.units import show
from planner.facts import Fact
from planner.facts.ranges import Ratio, listed
from planner.messages import Message

TOTAL_WITHIN, ACTIVE_WITHIN = 0.03, 0.05  # share of published counts: biases, norms and positions are not counted
SAME = 0.1  # share of a published count, by which names, norms and projectors may differ
MAGNITUDE = 10.0
TEN_BILLION = 1e10  # from here on publishers state whole billions
BLOCK = 12.0  # parameters of a transformer layer over its width squared: 4 of attention, 8 of a block four times as wide (arXiv:2001.08361)

SHAPES: Mapping[str, Ratio] = {
    "network.ffn": ("1", lambda of: of["ffn"] / of["hidden"]),
    "network.queries": ("1", lambda of: of["heads"] * of["head_dim"] / of["hidden"]),
    "network.aspect": ("1", lambda of: of["hidden"] / of["layers"]),
}
"""Ratios of a shape that differ little between networks, by the code of their note; the range is that of the catalog."""


def unlike_its_count(path: str, network: Record, counted: float) -> Fact | None:
    """Name a network whose shape has other than the published parameters, by more than 10 %: |counted/published - 1| > 0.1."""
    published = network.get("total_parameters")
    if published is None or abs(counted / published.number - 1.0) <= SAME:
        return None
    told = Message.of(
        "network.unlike_its_count",
        network=network.name,
        counted=show(counted, "1"),
        published=show(published.number, "1"),
    )
    return Fact(path, told, f"architectures/{network.name}/total_parameters: {listed(published.source)}")


def encoder_of_another_size(path: str, parameters: float, layers: int, hidden: int) -> Fact | None:
    """Name an encoder whose parameters are another order of magnitude than its layers': 12 layers hidden^2.

    Source: Kaplan et al., arXiv:2001.08361, table 1: 4 hidden^2 of attention and 8 hidden^2 of a block four times as wide.
    """
    counted = BLOCK * layers * hidden**2
    if counted / MAGNITUDE <= parameters <= counted * MAGNITUDE:
        return None
    told = Message.of(
        "network.encoder", given=show(parameters, "1"), counted=show(counted, "1"), layers=layers, hidden=hidden
    )
    return Fact(path, told, "12 layers hidden^2 (Kaplan et al., arXiv:2001.08361)")


def total_agrees(counted: float, published: float) -> bool:
    """Tell whether a count of parameters is that of the publisher: within 3 %, or within half a unit of the last digit that is published.

    Source: the publisher's own count, as cited in the record.
    """
    return abs(counted - published) <= max(TOTAL_WITHIN * published, _half_digit(published))


def active_agrees(least: float, most: float, published: float) -> bool:
    """Tell whether the parameters that a token uses are as the publisher has them, who may count the vocabulary's matrices or not.

    `least` without embedding and head, `most` with both; 5 % beyond, or half a unit of the last digit that is published.
    Source: the publisher's own count, as cited in the record.
    """
    room = max(ACTIVE_WITHIN * published, _half_digit(published))
    return least - room <= published <= most + room


def _half_digit(published: float) -> float:
    """Return half a unit of the last digit that is not zero, with two digits at least where the first is a one: 3e9 -> 0.5e9, 17e9 -> 0.5e9."""
    digits = f"{published:.3e}".partition("e")
    stated = len(digits[0].rstrip("0").replace(".", ""))
    return 0.5 * 10.0 ** (int(digits[2]) - max(stated - 1, 1 if published >= TEN_BILLION else 0))
