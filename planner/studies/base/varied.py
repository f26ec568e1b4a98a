"""Find what a spec states that can vary: amounts of work, latency limits and prices, under whichever keys, and figures times a factor.

One list for all studies and the dashboard; limits of money, power, supply and carbon are listed in `planner.limits`. Not here: how far figures are
moved (`planner.studies.sensitivity_factors`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import SpecError
from planner.spec.changes import scaled
from planner.spec.document import Edits, at, edited
from planner.spec.model import parse_spec
from planner.spec.workloads import WORK

PRICES = ("price", "input", "output")
"""Keys of what an offer costs per system, and an API per token."""
PRICES_BY_PHASE = "price_by_phase"


def work_path(document: Mapping[str, Any], workload: int) -> str:
    """Return the place of the amount of work that a workload of a valid spec states."""
    keys = WORK[document["workloads"][workload]["kind"]]
    paths = (f"workloads[{workload}].{key}" for key in keys)
    return next(path for path in paths if at(document, path) is not None)


def latency_paths(document: Mapping[str, Any], workload: int) -> Iterator[str]:
    """Yield the place of each latency limit of a workload: its own, and its classes'."""
    stated, here = document["workloads"][workload], f"workloads[{workload}]"
    blocks = [(f"{here}.slo", stated.get("slo"))]
    blocks += [
        (f"{here}.classes[{i}]", {"ttft": each.get("ttft")}) for i, each in enumerate(stated.get("classes") or ())
    ]
    for path, limits in blocks:
        for metric, percentiles in (limits or {}).items():
            for name, value in (percentiles or {}).items():
                if value is not None:
                    yield f"{path}.{metric}.{name}"


def times(document: Mapping[str, Any], path: str, factor: float) -> Any:
    """Return a figure of the spec times a factor; None where it is no number.

    A whole number becomes a fraction where the spec takes one at that place, such as a rate, and is rounded up where it does not, such as a count.
    """
    written = at(document, path)
    return multiplied(written, factor, fractions=is_whole(written) and takes_fractions(document, path))


def multiplied(written: Any, factor: float, *, fractions: bool) -> Any:
    """Multiply a figure by a factor; `fractions`: whether a whole number may become one.

    >>> multiplied(3, 0.7, fractions=True), multiplied(3, 0.7, fractions=False), multiplied(3, 2.0, fractions=True), multiplied("3 MW", 0.7, fractions=False)
    (2.1, 3, 6, '2.1 MW')
    """
    if not (fractions and is_whole(written)):
        return scaled(written, factor)
    value: float = scaled(float(written), factor)
    return int(value) if value.is_integer() else value


def is_whole(written: Any) -> bool:
    """Tell whether a figure is written as a whole number."""
    return isinstance(written, int) and not isinstance(written, bool)


def takes_fractions(document: Mapping[str, Any], path: str) -> bool:
    """Tell whether a valid spec may hold a fraction in place of the whole number at a path."""
    try:
        parse_spec(edited(document, ((path, at(document, path) + 0.5),)))
    except SpecError as error:
        return all(problem.path != path for problem in error.problems)
    return True


def price_edits(document: Mapping[str, Any], path: str, factor: float) -> Edits:
    """Multiply all prices that an offer or an API states, in later phases too."""
    stated = at(document, path)
    edits = [(f"{path}.{key}", scaled(stated[key], factor)) for key in PRICES if stated.get(key) is not None]
    if later := stated.get(PRICES_BY_PHASE):
        edits.append((f"{path}.{PRICES_BY_PHASE}", {phase: scaled(price, factor) for phase, price in later.items()}))
    return tuple(edits)
