"""Slice the errors of rows left out by what was run, rows and groups side by side, and list the groups that are furthest off."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from accuracy_scores import Scored, errors, group_of, percent

from planner.tables import as_markdown

WORST = 20
CLIENTS, TOKENS, CHIPS = (1, 16, 256), (512, 2048, 16384), (1, 8, 64)  # last of each range but the open one


def ranged(value: float | None, ends: Sequence[int]) -> str:
    """Name the range that holds a value.

    >>> [ranged(v, (1, 16)) for v in (1, 2, 17, None)]
    ['1', '2-16', 'above 16', 'not stated']
    """
    if not value:
        return "not stated"
    low = 1
    for end in ends:
        if value <= end:
            return f"{low}-{end}" if low < end else str(end)
        low = end + 1
    return f"above {ends[-1]}"


def layer_kind(m) -> str:
    """Name the kind of the layers of a network."""
    arch = m.case.arch
    attention = "recurrent" if arch.state_layers or arch.linear_layers else "latent" if arch.mla else "full or windowed"
    return f"{attention}, {'experts' if arch.experts else 'dense'}"


SERVING: Mapping[str, Callable] = {
    "engine": lambda m: m.software,
    "format of weights": lambda m: m.case.weight_precision,
    "kind of layers": layer_kind,
    "clients": lambda m: ranged(m.row.number("concurrency"), CLIENTS),
    "prompt tokens": lambda m: ranged(m.case.input_tokens, TOKENS),
    "chips": lambda m: ranged(m.chips, CHIPS),
}
TRAINING: Mapping[str, Callable] = {
    "framework": lambda m: m.software,
    "recipe": lambda m: m.precision,
    "kind of layers": layer_kind,
    "sequence": lambda m: ranged(m.case.sequence_tokens, TOKENS),
    "chips": lambda m: ranged(m.chips, CHIPS),
}


def slices(scored: Scored, by: Mapping[str, Callable], labels: Sequence[str]) -> str:
    """Tabulate errors with groups left out by each of the names, label by label."""
    rows = []
    for title, name in by.items():
        for label in labels:
            found: dict[str, list[int]] = defaultdict(list)
            for i in np.flatnonzero(scored.use & (scored.labels == label)):
                found[name(scored.rows[i])].append(int(i))
            for value, members in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
                signed = np.expm1(scored.left["group"][members] - scored.measured[members])
                groups = [group_of(scored.rows[i]) for i in members]
                rows.append({"slice": title, "value": value.replace("|", "/"), "of": label, **errors(signed, groups)})
    return as_markdown(rows)


def worst_groups(scored: Scored, suspicion: Callable, count: int = WORST) -> str:
    """Tabulate the groups (source kind, architecture, chip, metric) furthest off with groups left out, and the cause most often suspected."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i in np.flatnonzero(scored.use):
        found[group_of(scored.rows[i]), scored.observations[i].metric].append(int(i))
    missed = scored.left["group"] - scored.measured

    def far(item: tuple[tuple[str, str], list[int]]) -> float:
        return -abs(float(np.median(missed[item[1]]))) / scored.target.outlier_scale[item[0][1]]

    rows = []
    for (group, metric), members in sorted(found.items(), key=far)[:count]:
        causes = Counter(suspicion(scored.rows[i], metric, missed[i]) for i in members)
        rows.append({
            "group": group.replace("|", " / "), "metric": metric, "rows": len(members),
            "median of predicted / measured": f"{math.exp(float(np.median(missed[members]))):.2f}", "suspected cause": causes.most_common(1)[0][0],
            "share of rows": percent(causes.most_common(1)[0][1] / len(members)),
        })  # fmt: skip
    return as_markdown(rows)
