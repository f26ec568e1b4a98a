"""Check pools by prompt length: their moments integrated anew from the lengths as asked, and that the pools are together the whole.

Lognormal and log-linear prompts are summed over midpoints of equal shares of the requests, bands of a histogram one by one; nothing is
shared with the closed forms by which the pools were written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from planner.errors import SpecError
from planner.spec.load.lengths import Lengths
from planner.spec.model import parse_spec
from planner.verify.findings import Report

TABLE = "length_pools"
POINTS = 400_000  # midpoints of the distribution of prompts
MOMENT_TOL = (
    5e-3  # relative, for a mean or a variation against sums over midpoints; exact sums over bands are far closer
)
ROUNDED = 0.51  # tokens by which a mean in whole tokens may be off
SHARE_TOL = 2.0 / POINTS  # absolute, of a share of the requests
MISSED = {
    "p50": 0.5,
    "p90": 0.1,
    "p95": 0.05,
    "p99": 0.01,
}  # share of the requests that a limit on a percentile leaves out
OWN = {"name", "demand", "lengths", "pools"}  # keys in which a pool differs from the workload that was asked for


def check_length_pools(report: Report, document: Mapping[str, Any]) -> None:
    """Compare the section with the spec of the plan, whose workloads are the pools, and with the plan without them."""
    section = document.get(TABLE)
    if section is None:
        return
    blocks = {each["name"]: each for each in document["spec"]["workloads"]}
    for i, row in enumerate(section["workloads"]):
        _check_workload(report, f"{TABLE}.workloads[{i}]", row, blocks, document)
    value, undivided = document["objective"]["value"], section["undivided"]
    before, bound = undivided["value"], undivided["bound"]
    saving = 1.0 - value / before if value is not None and before else None
    report.equal(f"{TABLE}.saving", section["saving"], saving, 1e-9)
    proven = value is not None and bound is not None and bound - value > 1e-7 * abs(bound)
    report.equal(f"{TABLE}.proven", section["proven"], proven)


def _check_workload(
    report: Report, path: str, row: Mapping[str, Any], blocks: Mapping[str, Any], document: Mapping[str, Any]
) -> None:
    pools, boundaries = row["pools"], row["boundaries"]
    if not boundaries:
        if pools or row["workload"] not in blocks:
            report.say(path, "verify.pools_without_boundaries")
        return
    edges = [0, *boundaries, None]
    if [(pool["above"], pool["up_to"]) for pool in pools] != list(pairwise(edges)):
        report.say(f"{path}.pools", "verify.pools_leave_gaps")
        return
    asked = _asked(row, document)
    if asked is None or any(pool["name"] not in blocks for pool in pools):
        report.say(path, "verify.pools_not_in_spec")
        return
    rate = asked.mean_requests_per_s
    parts = [
        _part(asked.lengths, pool["above"], math.inf if pool["up_to"] is None else pool["up_to"]) for pool in pools
    ]
    prompts, answers = (sum(part[0] * part[k] for part in parts) for k in (1, 3))
    for k, (pool, part) in enumerate(zip(pools, parts, strict=True)):
        share, prompt, prompt_cv, answer, answer_cv = part
        stated = {key: pool[key] for key in ("share", "input", "input_share", "output_share", "requests_per_s")}
        computed = {
            "share": share, "input": prompt, "input_share": share * prompt / prompts,
            "output_share": share * answer / answers, "requests_per_s": rate * share,
        }  # fmt: skip
        report.equal(f"{path}.pools[{k}]", stated, computed, MOMENT_TOL)
        block = blocks[pool["name"]]
        _check_block(report, f"{path}.pools[{k}]", block, pool, row["asked"])
        lengths = block["lengths"]
        for key, computed_cv in (("input_cv", prompt_cv), ("output_cv", answer_cv)):
            report.equal(f"{path}.pools[{k}].{key}", lengths[key], computed_cv, 4 * MOMENT_TOL)
    if any("ttft" in pool for pool in pools):
        _check_first_token(report, path, row, document, asked, [part[0] for part in parts])
    for key in ("share", "input_share", "output_share"):
        report.equal(f"{path}.pools.{key}", sum(pool[key] for pool in pools), 1.0, 1e-9)
    report.equal(f"{path}.pools.requests_per_s", sum(pool["requests_per_s"] for pool in pools), rate, 1e-9)


def _check_block(
    report: Report, path: str, block: Mapping[str, Any], pool: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    """Compare the workload of a pool with the pool, and all else in it with the workload as asked."""
    report.equal(f"{path}.requests_per_s", pool["requests_per_s"], block["demand"].get("requests_per_s"))
    for key in ("input", "output"):
        if not abs(block["lengths"][key] - pool[key]) <= ROUNDED:
            report.equal(f"{path}.{key}", pool[key], block["lengths"][key])
    rest = [{key: value for key, value in each.items() if key not in OWN} for each in (block, asked)]
    if "ttft" in pool:  # checked with that of the other pools
        rest = [
            {**each, "slo": {name: limits for name, limits in each["slo"].items() if name != "ttft"}} for each in rest
        ]
    if rest[0] != rest[1]:
        report.say(path, "verify.pool_differs_from_asked")


def _check_first_token(
    report: Report, path: str, row: Mapping[str, Any], document: Mapping[str, Any], asked: Any, shares: list[float]
) -> None:
    """Check that the pools together miss each limit on the time to first token no more often than it allows: a mixture of their misses."""
    blocks = {each["name"]: each for each in document["spec"]["workloads"]}
    kept: list[dict[str, float]] = []
    for k, pool in enumerate(row["pools"]):
        workload = _asked({"workload": pool["name"], "asked": blocks[pool["name"]]}, document)
        limits = {} if workload is None or workload.slo.ttft is None else dict(workload.slo.ttft.limits())
        report.equal(f"{path}.pools[{k}].ttft", pool.get("ttft"), limits)
        kept.append(limits)
    for percentile, seconds in asked.slo.ttft.limits() if asked.slo.ttft is not None else ():
        most = seconds * (1.0 + 1e-9)
        if percentile not in MISSED:
            missed = 0.0 if all(limits.get(percentile, math.inf) <= most for limits in kept) else 1.0
        else:
            missed = sum(
                share
                * min((MISSED[name] for name, limit in limits.items() if name in MISSED and limit <= most), default=1.0)
                for share, limits in zip(shares, kept, strict=True)
            )
        if missed > MISSED.get(percentile, 0.0) + SHARE_TOL:
            report.say(f"{path}.pools", "verify.pools_miss_limit", percentile=percentile, missed=f"{missed:.2%}")


def _asked(row: Mapping[str, Any], document: Mapping[str, Any]) -> Any:
    """Parse the workload as asked; None where it is no serving workload."""
    spec = {key: value for key, value in document["spec"].items() if key not in ("apis", "assumptions", "objective")}
    try:
        workload: Any = parse_spec({**spec, "workloads": [row["asked"]]}).workloads[0]
    except SpecError:
        return None
    return workload if workload.kind == "serving" and workload.name == row["workload"] else None


def _part(lengths: Lengths, above: float, most: float) -> tuple[float, float, float, float, float]:
    """Sum share, mean and variation of prompts and answers of the requests with prompts above one length and up to another."""
    if lengths.histogram is not None:
        bands = [band for band in lengths.histogram if above < band.up_to <= most]
        share = sum(band.share for band in bands)
        prompts = _summed([(band.share, float(band.input), band.input_cv) for band in bands])
        return share, *prompts, *_summed([(band.share, float(band.output), band.output_cv) for band in bands])
    tokens = _prompts(lengths)
    inside = tokens[(tokens > above) & (tokens <= most)]
    if not len(inside):
        return 0.0, 0.0, 0.0, 0.0, 0.0
    mean = float(inside.mean())
    return len(inside) / len(tokens), mean, float(inside.std()) / mean, float(lengths.output), lengths.output_cv


def _summed(parts: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Sum mean and coefficient of variation of parts by their law of total variance."""
    share = sum(weight for weight, _, _ in parts)
    mean = sum(weight * each for weight, each, _ in parts) / share
    variance = sum(weight * ((each * cv) ** 2 + (each - mean) ** 2) for weight, each, cv in parts) / share
    return mean, math.sqrt(variance) / mean


def _prompts(lengths: Lengths) -> Any:
    """List prompt lengths at the midpoints of equal shares of the requests [token]."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    if lengths.input_quantiles is not None:
        shares = [each.share for each in lengths.input_quantiles]
        logs = [math.log(each.tokens) for each in lengths.input_quantiles]
        if shares[0] > 0.0:
            first, second = (each.tokens for each in lengths.input_quantiles[:2])
            shares, logs = [0.0, *shares], [math.log(max(first * first / second, min(1.0, first / 2))), *logs]
        return np.exp(np.interp(levels, shares, logs))
    spread = math.sqrt(math.log(1.0 + lengths.input_cv**2))
    return lengths.input * np.exp(spread * ndtri(levels) - spread**2 / 2)
