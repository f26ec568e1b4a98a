"""Price of a chip and of a system from its parts: dies, memory stacks, package, board, server, with the yields of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChipParts:
    """Parts of one chip; prices in one currency, yields as shares of good ones [1]."""

    dies: float  # processed dies of one chip, before they are tested
    die_yield: float
    memory: float  # good memory stacks of one chip
    package: float  # interposer, substrate and assembly
    package_yield: float  # assembled packages, with all that is in them
    board: float  # card or module, tested, without the package

    @property
    def price(self) -> float:
        """Compute the price of one good chip on its board:  ((dies / y_die + memory + package) / y_package) + board.

        Reference: Feng and Ma, Chiplet Actuary, DAC 2022, section 3 (known good dies, yield of packaging).

        >>> round(ChipParts(600.0, 0.5, 1000.0, 300.0, 0.9, 200.0).price, 2)
        2977.78
        """
        return (self.dies / self.die_yield + self.memory + self.package) / self.package_yield + self.board


def price_at_yield(price: float, of_yield: float, other_yield: float) -> float:
    """Move the price of a good part to another yield, at equal cost of making one, good or not:  p y / y'.

    Shapes: scalars. Units: price in any currency, yields [1] above 0.
    Reference: Feng and Ma, Chiplet Actuary, DAC 2022, section 3.

    >>> round(price_at_yield(1160.0, 0.89, 0.68), 1)
    1518.2
    """
    return price * of_yield / other_yield
