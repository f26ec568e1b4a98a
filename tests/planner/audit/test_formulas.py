"""Formulas: values, ranges and dimensions against arithmetic of their own, and what is no arithmetic."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.audit.formulas import FormulaError, formula
from planner.audit.quantities import Quantity, digits, parse, unit_of, unit_words

NUMBERS = st.floats(0.01, 1e6)


def exact(value: float, dimensions=()) -> Quantity:
    return Quantity(value, value, value, dimensions, f"{value:g}")


@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_formula_is_what_python_makes_of_it(a, b, c):
    found = formula("(a + b) * c / (1 + b) - min(a, c) + sqrt(b) ** 2", {"a": exact(a), "b": exact(b), "c": exact(c)})
    assert found.at() == pytest.approx((a + b) * c / (1 + b) - min(a, c) + math.sqrt(b) ** 2, rel=1e-12, abs=1e-9)
    assert eval(found.closed(), {"min": min, "sqrt": math.sqrt}) == pytest.approx(found.at(), rel=1e-9, abs=1e-6)


@given(st.lists(st.tuples(NUMBERS, st.floats(1.0, 10.0)), min_size=3, max_size=3), st.data())
def test_the_range_holds_every_value_within_the_ranges_of_the_inputs(ends, data):
    names = {name: Quantity(low, low, low * more, (), "") for name, (low, more) in zip("abc", ends, strict=True)}
    found = formula("a * b / c + b", names)
    _, low, high = found.interval()
    inside = {name: data.draw(st.floats(each.low, each.high)) for name, each in names.items()}
    assert low * (1 - 1e-12) <= found.at(inside) <= high * (1 + 1e-12)
    corners = [a * b / c + b for a, b, c in itertools.product(*((each.low, each.high) for each in names.values()))]
    assert (low, high) == pytest.approx((min(corners), max(corners)))


def test_units_multiply_and_divide():
    names = {"chips": parse("8 chips"), "rate": parse("2 TB/s/chip"), "size": parse("16 GB/token")}
    found = formula("chips * rate / size", names)
    assert unit_words(found.dimensions) == "token/s" and found.at() == 1000.0  # 16 TB/s / 16 GB
    assert unit_of("CNY/GPU-month")[0] == pytest.approx(1 / (365 * 86400 / 12))
    assert parse("0.01 CNY/1e11 tokens").value == pytest.approx(1e-13)
    assert unit_words(parse("5.6 kW/node").dimensions) == "W/node"
    assert formula("sqrt(a)", {"a": parse("4 s")} | {"a": Quantity(4.0, 4.0, 4.0, (("s", 2),), "")}).dimensions == (
        ("s", 1),
    )


@pytest.mark.parametrize("text", ["a + size", "max(a, size)", "a ** size", "sqrt(size)", "a ** 0.5 + size"])
def test_units_that_do_not_agree_are_refused(text):
    with pytest.raises(FormulaError):
        formula(text, {"a": exact(2.0), "size": parse("3 GB")})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a.real",
        "a[0]",
        "lambda: a",
        "open('x')",
        "min(a)",
        "a if a else a",
        "'a'",
        "True",
        "a @ a",
        "min(a, key=a)",
        "(" * 500,
    ],
)
def test_only_arithmetic_is_a_formula(text):
    with pytest.raises(FormulaError):
        formula(text, {"a": exact(2.0)})


@pytest.mark.parametrize("text", ["a / (b - b)", "sqrt(b - a)", "a ** 12 ** 9"])
def test_a_formula_without_a_value_says_so(text):
    with pytest.raises(FormulaError):
        formula(text, {"a": exact(2.0), "b": exact(1.0)}).interval()


@given(st.floats(1e-12, 1e18))
def test_digits_keep_four_of_them(value):
    assert float(digits(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


@given(
    st.floats(1e-3, 1e9),
    st.floats(1.0, 100.0),
    st.sampled_from(["GB/s", "tokens/day", "%", "USD/chip/h", "FLOP/token/parameter"]),
)
def test_a_range_is_read_as_its_ends_and_its_middle(low, more, unit):
    found = parse(f"{low!r}..{low * more!r} {unit}")
    factor, dimensions = unit_of(unit)
    assert (found.low, found.high) == pytest.approx((low * factor, low * more * factor))
    assert found.value == pytest.approx((found.low + found.high) / 2) and found.dimensions == dimensions


@pytest.mark.parametrize("text", ["", "GB", "1..", "2..1 x", "1e999 x", "3 flurbs", "1 GB/flurb", "nan x"])
def test_what_is_no_quantity_is_refused_with_a_sentence(text):
    with pytest.raises(ValueError, match=r"expected a number|unknown unit"):
        parse(text)
