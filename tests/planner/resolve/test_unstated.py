"""Horizon and formats of weights that a spec leaves out are assumptions of the plan; those that it states are none."""

import pytest

from catalog.units import YEAR_S
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

HORIZON = {"horizon.start": "2027-01-01", "horizon.years": YEAR_S}


def booked(document):
    return {row.path: row.value for row in resolve(parse_spec(document)).assumptions}


def without(document, *keys):
    return {key: value for key, value in document.items() if key not in keys}


def test_start_and_length_of_the_horizon(tiny):
    assert HORIZON.items() <= booked(without(tiny(), "horizon")).items()
    found = booked({**tiny(), "horizon": {"years": 1}})
    assert "horizon.years" not in found and found["horizon.start"] == "2027-01-01"
    assert not HORIZON.keys() & booked({**tiny(), "horizon": {"years": 1, "start": "2027-01-01"}}).keys()


@pytest.mark.parametrize("stated", [["bf16"], ["fp8", "bf16"]])
def test_formats_of_weights(tiny, stated):
    document = tiny()
    workload = without(document["workloads"][0], "precision")
    left_out, given = (
        booked({**document, "workloads": [each]}) for each in (workload, {**workload, "precision": stated})
    )
    assert left_out["workloads[0].precision"] == "fp8, bf16" and "workloads[0].precision" not in given
