"""Limits on the parts of a plan: sites, kinds of systems at a site, and the least systems of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.limits.limit import Limit
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import LEAST_SYSTEMS, MOST_KINDS, MOST_SITES
from planner.spec.document import at


def part_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the limits on parts that the spec states; each is relaxed by one more part, or by fewer systems."""
    asked = problem.spec.simplicity
    sites, kinds = len(problem.sites), len({offer.system for offer in problem.offers})
    for (path, name), limit, most, words in (
        (MOST_SITES, asked.most_sites, sites, "limit.most_sites_words"),
        (MOST_KINDS, asked.most_kinds, kinds, "limit.most_kinds_words"),
    ):
        if limit is not None:
            more = tuple(((path, count),) for count in range(limit + 1, most + 1))
            yield Limit(
                path,
                name,
                Message.of(words, count=limit).text(),
                at(document, path),
                loose=((path, None),),
                choices=more,
            )
    if asked.least_systems is not None:
        path, name = LEAST_SYSTEMS
        words = Message.of("limit.least_systems_words", count=asked.least_systems).text()
        counts = sorted(
            {asked.least_systems * part // 4 for part in (1, 2, 3)} - {0, asked.least_systems}, reverse=True
        )
        fewer = tuple(((path, count),) for count in [*counts, 1])
        yield Limit(path, name, words, at(document, path), loose=((path, None),), choices=fewer)
