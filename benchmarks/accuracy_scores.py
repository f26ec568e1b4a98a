"""Predict a file of measurements by the shipped constants and by refits; tables and plots for both chapters of the accuracy report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from noise import repeated

from catalog.lookup import Catalog
from models.statistics.intervals import COVERAGE, inside_left_out
from models.statistics.levels import row_weights, share_with_error
from planner.calibration.anchors import with_anchors
from planner.calibration.fit import (
    LEAVE_OUT_OF_TIER,
    enters_fit,
    fit_problem,
    leave_out_by_group,
    log_measured,
    read_measurements,
    shipped_strengths,
    with_slopes,
)  # fmt: skip
from planner.calibration.levels import level_of, missed_by_tier, single_generations, spreads_by_label
from planner.calibration.load_sensitivity import without_load_by_tier
from planner.tables import as_markdown

LEAVE_OUTS = ("group", "source", "kind", "chip", "generation")
COLOURS = (
    "#1b6ca8",
    "#d1495b",
    "#2e8b57",
    "#c77d00",
    "#7b4fa3",
    "#4d908e",
    "#8c564b",
    "#5c677d",
    "#b5179e",
    "#6a994e",
    "#e07a5f",
    "#3d405b",
)


class Scored:
    """The observations of a file: measured, predicted by the shipped constants, and predicted with each group left out."""

    def __init__(self, path: Path, catalog: Catalog, leave_outs: Sequence[str] = LEAVE_OUTS) -> None:
        self.path, self.catalog = path, catalog
        self.measurements = with_anchors(read_measurements(path, catalog), catalog)
        self.target, self.cases = self.measurements.target, self.measurements.cases
        self.start = catalog.constants(self.target.name)
        self.observations = self.target.observations(self.cases)
        self.rows = [self.cases[o.case] for o in self.observations]
        self.use, self.measured = enters_fit(self.cases), log_measured(self.cases)
        self.labels = np.array([o.label for o in self.observations])
        self.shipped = self.target.predict(self.cases, self.observations)(self.start)
        whole = with_slopes(fit_problem(self.cases, self.start, shipped_strengths(catalog, self.target)))
        self.left: dict[str, np.ndarray] = {}
        self.refits: dict[str, dict[str, dict[str, float]]] = {}
        for by in leave_outs:
            self.left[by], self.refits[by] = leave_out_by_group(self.cases, by, whole)

    def signed(self, log_value: np.ndarray, label: str | None = None) -> np.ndarray:
        """Compute predicted / measured - 1 of the observations in the score, of one label or of all."""
        which = self.use if label is None else self.use & (self.labels == label)
        return np.expm1(log_value - self.measured)[which]

    def median(self, by: str, label: str | None = None) -> str:
        """Compute the median error with groups left out."""
        return percent(np.median(np.abs(self.signed(self.left[by], label))))

    def coverage(self) -> list[dict[str, object]]:
        """Tabulate the shares of runs inside the 80 % interval, by tier and label, with their standard errors.

        The interval of each row is built without its group, as the prediction is: from the errors of all other groups. Shares are over
        rows, and over groups, each of which then counts alike; the error is that of the groups, since rows of one group go together.
        """
        found, single = [], single_generations(self.cases)
        inside, groups, votes = {}, {}, {}
        left = without_load_by_tier(self.cases, self.left, self.start)
        for key, missed in missed_by_tier(self.cases, left).items():
            inside[key], votes[key] = inside_left_out(missed), np.array(missed.votes, dtype=str)
            groups[key] = np.array(missed.groups, dtype=str)
        for label in self.target.interval_labels:  # a chip alone in its generation has the interval of a new one
            chip, generation, both = (
                ("new_chip", label),
                ("new_generation", label),
                ("new chip, each by its own", label),
            )
            alone = np.isin(groups[generation], sorted(single))
            inside[both] = np.concatenate([inside[chip], inside[generation][alone]])
            votes[both] = np.concatenate([votes[chip], votes[generation][alone]])
        for (tier, label), held in inside.items():
            names = votes[tier, label].tolist()
            by_rows, by_groups = (share_with_error(held, names, weights) for weights in (None, row_weights(names, 1.0)))
            band = binomial_band(len(set(names)))
            found.append({
                "interval": tier.replace("_", " "), "of": label, "left out": f"one {LEAVE_OUT_OF_TIER.get(tier, 'chip')}", "groups": len(set(names)),
                "rows": len(held), "of groups": "{:.0f} ± {:.0f} %".format(*(100 * v for v in by_groups)),
                "of rows": "{:.0f} ± {:.0f} %".format(*(100 * v for v in by_rows)),
                "90 % band of so many votes": "{:.0f} to {:.0f} %".format(*(100 * v for v in band)),
                "80 % holds": "yes" if band[0] <= by_groups[0] <= band[1] else "no",
            })  # fmt: skip
        return found

    def levels(self) -> list[dict[str, object]]:
        """Tabulate the standard deviations of the levels of the errors, with the source left out."""
        spreads = spreads_by_label(self.cases, self.left["source"])
        return [
            {"of": label, **{name: percent(spread) for name, spread in each.items()}} for label, each in spreads.items()
        ]

    def uncertainty(self, title: str) -> list[str]:
        """Write the sections on intervals, levels of the errors and noise floor."""
        return [
            f"### {title}: coverage of the 80 % interval (goal 76-84 %)", as_markdown(self.coverage()),
            f"### {title}: levels of the errors, source left out",
            "Standard deviations of ln(measured / predicted) between sources, chips and engines, and of single runs within them.",
            as_markdown(self.levels()),
            f"### {title}: noise floor",
            "Runs of one configuration that was measured more than once: they differ in date, submitter or day only.",
            as_markdown(self.noise()),
        ]  # fmt: skip

    def noise(self) -> list[dict[str, object]]:
        """Tabulate the noise floor, within sources and across them, beside the error with groups left out."""
        rows = []
        for across in (False, True):
            found = repeated(self.cases, self.observations, self.use, across)
            for label, repeats in found.items():
                rows.append({
                    "of": label, "repeated": "in any source" if across else "within a source", "configurations": repeats.configurations,
                    "runs": repeats.runs, "median difference": percent(np.median(repeats.errors)), "80 % within": percent(np.quantile(repeats.errors, 0.8)),
                    "median error, group left out": self.median("group", label),
                })  # fmt: skip
        return rows

    def table(self, name: Callable, log_value: np.ndarray, label: str | None = None) -> list[dict[str, object]]:
        """Tabulate errors by a name of each row, the largest group first."""
        groups: dict[str, list[int]] = defaultdict(list)
        for i in np.flatnonzero(self.use if label is None else self.use & (self.labels == label)):
            groups[name(self.rows[i])].append(int(i))
        signed = np.expm1(log_value - self.measured)
        return [
            {"": group.replace("|", "/"), **errors(signed[members], [group_of(self.rows[i]) for i in members])}
            for group, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
        ]

    def points(self, label: str | None = None) -> list[tuple[str, float, float]]:
        """List (chip, measured, predicted by the shipped constants)."""
        which = self.use if label is None else self.use & (self.labels == label)
        return [
            (self.rows[i].chip, self.observations[i].value, math.exp(self.shipped[i])) for i in np.flatnonzero(which)
        ]

    def worst(self, suspicion: Callable, count: int = 20) -> list[dict[str, str]]:
        """Find the observations furthest off, each measured in the scale of its metric."""
        scale = np.array([self.target.outlier_scale.get(o.metric, 1.0) for o in self.observations])
        order = np.argsort(-np.where(self.use, np.abs(self.shipped - self.measured) / scale, -1.0), kind="stable")[
            :count
        ]
        return [
            {"id": (m := self.rows[i]).row.id, "network": m.architecture[:24], "chip": m.chip, "metric": self.observations[i].metric,
             "measured": f"{self.observations[i].value:.3g}", "predicted": f"{math.exp(self.shipped[i]):.3g}",
             "suspected cause": suspicion(m, self.observations[i].metric, self.shipped[i] - self.measured[i])} for i in order
        ]  # fmt: skip

    def counted(self) -> str:
        """Count the rows, and the reasons why some cannot be predicted."""
        reasons = "; ".join(f"{why}: {n}" for why, n in self.measurements.reasons.items()) or "none"
        return f"{self.measurements.rows} rows; not predictable: {reasons}."


def group_of(m) -> str:
    """Name the group of a row, which has one vote: source kind, architecture and chip."""
    return level_of(m, "group")


def errors(signed: Sequence[float], groups: Sequence[str] | None = None) -> dict[str, object]:
    """Summarise signed errors over rows, and over `groups`, each of which then counts alike."""
    signed = np.asarray(signed)
    error = np.abs(signed)
    found = {"n": len(error), "median": percent(np.median(error)), "mean": percent(error.mean()),
             "within 20 %": percent(np.mean(error <= 0.2)), "bias": percent(np.median(signed))}  # fmt: skip
    if groups is not None:
        votes = row_weights(groups, 1.0)
        found |= {
            "groups": len(set(groups)),
            "median of groups": percent(weighted_median(list(zip(error.tolist(), votes.tolist(), strict=True)))),
        }
    return found


def binomial_band(count: int, share: float = COVERAGE) -> tuple[float, float]:
    """Bound the share of `count` votes that holds with 90 % where each holds with probability `share`.

    >>> [round(bound, 2) for bound in binomial_band(20)]
    [0.65, 0.95]
    """
    from scipy.stats import binom

    return tuple(float(binom.ppf(level, count, share)) / count for level in (0.05, 0.95))


def percent(share: float) -> str:
    return f"{100 * float(share):.1f} %"


def checks(rows: Sequence[tuple[str, str, str]]) -> list[dict[str, str]]:
    """Put each goal beside its result."""
    return [{"check": check, "goal": goal, "result": result} for check, goal, result in rows]


def weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    values, weights = (np.array(column) for column in zip(*sorted(pairs), strict=True))
    return float(values[np.searchsorted(np.cumsum(weights), 0.5 * weights.sum())])


def regrets(groups: Mapping[object, Mapping[object, tuple[float, float]]], fewest: int) -> list[float]:
    """Compute the loss of picking by prediction in each group of (measured, predicted) costs: cost of the pick over the least, minus 1."""
    found = []
    for choices in groups.values():
        if len(choices) >= fewest:
            pick = min(choices.values(), key=lambda both: both[1])
            found.append(pick[0] / min(cost for cost, _ in choices.values()) - 1.0)
    return found


def scatter(points: Sequence[tuple[str, float, float]], quantity: str, size: int = 640, margin: int = 56) -> str:
    """Draw predicted over measured on logarithmic axes, a colour per chip, with the lines of equality and of 20 %."""
    low = math.floor(math.log10(min(min(p[1:]) for p in points)))
    high = math.ceil(math.log10(max(max(p[1:]) for p in points)))
    scale = (size - 2 * margin) / (high - low)
    x = lambda value: margin + scale * (math.log10(value) - low)
    y = lambda value: size - x(value)
    chips = sorted({chip for chip, _, _ in points})
    colour = {chip: COLOURS[i % len(COLOURS)] for i, chip in enumerate(chips)}
    lines = [f'<line x1="{x(10**low):.1f}" y1="{y(10**low * f):.1f}" x2="{x(10**high / max(f, 1)):.1f}" y2="{y(10**high * min(f, 1)):.1f}" stroke="#999" stroke-dasharray="{dash}"/>'
             for f, dash in ((1.0, "0"), (1.2, "4"))]  # fmt: skip
    lines.append(
        f'<line x1="{x(10**low * 1.2):.1f}" y1="{y(10**low):.1f}" x2="{x(10**high):.1f}" y2="{y(10**high / 1.2):.1f}" stroke="#999" stroke-dasharray="4"/>'
    )
    ticks = [
        f'<text x="{x(10**e):.1f}" y="{size - margin + 18}" text-anchor="middle">{10.0**e:g}</text><text x="{margin - 8}" y="{y(10**e) + 4:.1f}" text-anchor="end">{10.0**e:g}</text>'
        for e in range(low, high + 1)
    ]
    dots = [
        f'<circle cx="{x(m):.1f}" cy="{y(p):.1f}" r="2.5" fill="{colour[c]}" fill-opacity="0.6"/>' for c, m, p in points
    ]
    legend = [
        f'<circle cx="{size + 10}" cy="{margin + 18 * i}" r="4" fill="{colour[c]}"/><text x="{size + 20}" y="{margin + 18 * i + 4}">{c}</text>'
        for i, c in enumerate(chips)
    ]
    titles = [f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">measured {quantity}</text>',
              f'<text transform="translate(14 {size / 2}) rotate(-90)" text-anchor="middle">predicted {quantity}</text>']  # fmt: skip
    height = max(size, margin + 18 * len(chips))
    body = "\n".join([*lines, *ticks, *dots, *legend, *titles])
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{size + 220}" height="{height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
