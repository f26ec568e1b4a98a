"""A missing figure's remedy names that of the record most like the one which lacks it, in a form that can be pasted."""

from __future__ import annotations

import pytest

from catalog.errors import MissingFigure
from catalog.lookup import shipped_catalog
from catalog.records import Record
from catalog.schemas import SCHEMAS
from catalog.similar import most_similar, unlikeness
from planner.resolve.ledger import Ledger

CATALOG = shipped_catalog()


def missing(kind, name, figure) -> MissingFigure:
    with pytest.raises(MissingFigure) as error:
        Ledger(CATALOG).figure(kind, name, figure)
    return error.value


@pytest.mark.parametrize(
    ("chip", "figure", "of"),
    [
        ("GB200 (per GPU)", "price", "B200 SXM"),  # same generation
        ("H20-3e-143GB", "tdp_w", "H20 96GB"),
        ("GH200-144GB", "tdp_w", "GH200 96/144GB"),
        ("MI325X", "price", "MI300X"),
        ("Ascend 910B2", "tdp_w", "Ascend 910B (generic)"),
        ("TPU v5p", "tdp_w", "TPU v4"),
        ("Apple-M1-7core", "tdp_w", "Rockchip RK3588"),  # same class, as its vendor has none
    ],
)
def test_the_example_is_that_of_a_chip_of_its_class(chip, figure, of):
    error = missing("chips", chip, figure)
    stated = CATALOG.get("chips", of).figure(figure)
    assert (error.of, error.example) == (of, stated.printed)
    assert f'"value": "{stated.printed}"' in str(error) and str(error).endswith(
        f"({stated.printed} is the figure of {of})"
    )


@pytest.mark.parametrize("kind", ["chips", "systems"])
def test_every_example_can_be_stated(kind):
    """For each figure that a record lacks and another has; powers span a factor of a thousand, examples of one chip stay within its class."""
    tried = 0
    for record in CATALOG.records(kind):
        for figure in SCHEMAS[kind].figures:
            if record.get(figure) is None and most_similar(record, CATALOG.records(kind), figure) is not None:
                error = missing(kind, record.name, figure)
                changed = CATALOG.with_overrides({error.path: {"value": error.example, "note": f"as {error.of}"}})
                assert changed.get(kind, record.name).value(figure) == pytest.approx(
                    CATALOG.get(kind, error.of).value(figure)
                )
                tried += 1
                break  # one of each record, since each builds a catalog
    assert tried > 20


def test_a_small_chip_is_not_like_a_large_one():
    orin, h100, h200 = (
        CATALOG.get("chips", name) for name in ("Jetson Orin Nano 8GB Super", "H100 SXM5 80GB", "H200 SXM 141GB")
    )
    assert unlikeness(h100, h200) < unlikeness(h100, orin)
    assert unlikeness(h100, h200) == pytest.approx(unlikeness(h200, h100))


def test_where_no_record_has_the_figure_the_example_is_of_the_unit():
    assert most_similar(Record("chips", "a"), [Record("chips", "b")], "tdp_w") is None
