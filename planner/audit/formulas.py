"""Evaluate a formula over named quantities: numbers, their ranges, its dimensions, and the same formula as a line that Python runs.

A formula is arithmetic alone: + - * / ** with whole powers, min, max, sqrt, parentheses, names and numbers. The least and largest values are
sought at the ends of every range, which finds them where the formula rises or falls in each quantity alone.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.audit.quantities import NONE, Dimensions, Quantity, product, unit_words
from planner.messages import Message

MOST_RANGES = 10  # quantities with a range in one formula: 2^10 corners
MOST_POWER = 12
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "sqrt": math.sqrt}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


class FormulaError(ValueError):
    """A formula that is no arithmetic over the given names, or whose units do not agree; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula over quantities, checked."""

    text: str
    tree: ast.expr
    quantities: Mapping[str, Quantity]
    dimensions: Dimensions

    def at(self, values: Mapping[str, float] | None = None) -> float:
        """Evaluate at the usual values, some of them replaced. Raises FormulaError where it divides by zero or takes no real value."""
        names = {name: quantity.value for name, quantity in self.quantities.items()} | dict(values or {})
        try:
            found = _value(self.tree, names)
        except (ZeroDivisionError, OverflowError, ValueError):
            raise FormulaError(Message.of("audit.formula_undefined", formula=self.text).text()) from None
        if not math.isfinite(found):
            raise FormulaError(Message.of("audit.formula_undefined", formula=self.text).text())
        return found

    def corners(self, fixed: Mapping[str, float] | None = None) -> list[dict[str, float]]:
        """List the ends of all ranges, each with each; `fixed` quantities stay as they are."""
        ranged = [name for name, each in self.quantities.items() if not each.is_exact and name not in (fixed or {})]
        ends = itertools.product(*((self.quantities[name].low, self.quantities[name].high) for name in ranged))
        return [{**dict(zip(ranged, each, strict=True)), **(fixed or {})} for each in ends]

    def interval(self, fixed: Mapping[str, float] | None = None) -> tuple[float, float, float]:
        """Return the value at the usual quantities, and the least and the largest over the ends of all ranges."""
        usual = self.at(fixed)
        found = [self.at(corner) for corner in self.corners(fixed)]
        return usual, min([usual, *found]), max([usual, *found])

    def closed(self, factor: float = 1.0, values: Mapping[str, float] | None = None) -> str:
        """Write the formula with its numbers in SI, divided by the `factor` of a unit: a Python expression."""
        names = {name: quantity.value for name, quantity in self.quantities.items()} | dict(values or {})
        text = _inserted(self.text, {name: f"{value:.12g}" for name, value in names.items()})
        return text if factor == 1.0 else f"({text}) / {factor:.12g}"

    def words(self) -> str:
        """Write the formula with its quantities as stated."""
        return _inserted(
            self.text,
            {name: f"({each.stated})" if " " in each.stated else each.stated for name, each in self.quantities.items()},
        )


def formula(text: str, quantities: Mapping[str, Quantity]) -> Formula:
    """Check a formula over quantities. Raises FormulaError."""
    try:
        tree = ast.parse(" ".join(text.split()), mode="eval").body
        dimensions = _dimensions(tree, quantities)
    except FormulaError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(Message.of("audit.formula_expected", given=text).text()) from None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_FUNCTIONS)
    chosen = {name: each for name, each in quantities.items() if name in used}
    if sum(not each.is_exact for each in chosen.values()) > MOST_RANGES:
        raise FormulaError(Message.of("audit.too_many_ranges", most=MOST_RANGES).text())
    return Formula(" ".join(text.split()), tree, chosen, dimensions)


def _inserted(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[a-z][a-z0-9_]*", lambda found: names.get(found[0], found[0]), text) if names else text


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.Call(func=ast.Name(id=name), args=args):
            return float(_FUNCTIONS[name](*(_value(each, names) for each in args)))
        case ast.BinOp(left=left, op=operator, right=right):
            first, second = _value(left, names), _value(right, names)
            match operator:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
                case ast.Div():
                    return first / second
            return float(first**second)
    raise FormulaError(Message.of("audit.formula_expected", given=ast.unparse(node)).text())


def _dimensions(node: ast.expr, quantities: Mapping[str, Quantity]) -> Dimensions:
    """Return the dimensions of a formula. Raises FormulaError for anything but arithmetic, and where units do not agree."""
    match node:
        case ast.Constant(value=value) if isinstance(value, (int, float)) and not isinstance(value, bool):
            return NONE
        case ast.Name(id=name) if name in quantities:
            return quantities[name].dimensions
        case ast.Name(id=name):
            raise FormulaError(Message.of("audit.unknown_name", name=name, known=", ".join(quantities)).text())
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _dimensions(operand, quantities)
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            inner = _dimensions(argument, quantities)
            if all(power % 2 == 0 for _, power in inner):
                return tuple((name, power // 2) for name, power in inner)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as args, keywords=[]):
            return _same([_dimensions(each, quantities) for each in args], node)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _same([_dimensions(left, quantities), _dimensions(right, quantities)], node)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operator, right=right):
            power = 1 if isinstance(operator, ast.Mult) else -1
            return product([(_dimensions(left, quantities), 1), (_dimensions(right, quantities), power)])
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(left, right, quantities)
    raise FormulaError(Message.of("audit.formula_expected", given=ast.unparse(node)).text())


def _power(left: ast.expr, right: ast.expr, quantities: Mapping[str, Quantity]) -> Dimensions:
    base = _dimensions(left, quantities)
    match right:
        case ast.Constant(value=int(power)) if abs(power) <= MOST_POWER:
            return product([(base, power)])
    if base == NONE and _dimensions(right, quantities) == NONE:
        return NONE
    raise FormulaError(Message.of("audit.formula_power", most=MOST_POWER).text())


def _same(found: list[Dimensions], node: ast.expr) -> Dimensions:
    if len(set(found)) > 1:
        units = ", ".join(unit_words(each) or "1" for each in found)
        raise FormulaError(Message.of("audit.units_differ", formula=ast.unparse(node), units=units).text())
    return found[0]
