"""Print six ratios of the plans of all examples beside the ranges that are published, as a table of Markdown.

    python -m benchmarks.ratios --stored
    python -m benchmarks.ratios --time-limit 60s --plans DIR
    python -m benchmarks.ratios PLAN.json …

With `--stored` the plans that are stored of the examples are read, and nothing is planned. Else each example is planned within the time limit;
with `--plans` plans are kept in a folder, and those that stand there already are read.
Ratios and ranges: `planner.report.why.ratios`, `planner.facts.ratios`.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import planner
from planner.dashboard import sources
from planner.plan import Plan, load_plan, parse_plan
from planner.report.why.ratios import Ratio, ratios, shown

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ORDER = ("rate", "power", "cost", "busy", "loads", "lead")
HEADS = ("tokens/s per chip", "kW per chip", "cost per 1M", "busy", "loads/day", "lead time")
MARKS = {"within": "", "explained": " *", "contradiction": " **!**", "unknown": " ?"}


def plans(paths: Sequence[str], folder: Path | None, time_limit: str) -> Iterator[tuple[str, Plan]]:
    """Yield the name and the plan of each stored plan, or else of each example, those without an answer too."""
    for path in map(Path, paths):
        yield path.stem, load_plan(path)
    for example in () if paths else sorted(EXAMPLES.glob("*.json")):
        kept = None if folder is None else folder / example.name
        if kept is not None and kept.exists():
            yield example.stem, load_plan(kept)
            continue
        document = json.loads(example.read_text(encoding="utf-8"))
        document["solver"] = {**(document.get("solver") or {}), "time_limit": time_limit}
        plan = planner.solve(document)
        if kept is not None:
            plan.save(kept)
        yield example.stem, plan


def stored() -> Iterator[tuple[str, Plan]]:
    """Yield the name and the stored plan of each example that has one."""
    for name in sorted(sources.examples()):
        file = sources.PLANS / f"{name}.json.gz"
        if name == sources.MAIN:
            yield name, sources.stored_plan()
        elif file.exists():
            yield name, parse_plan(gzip.decompress(file.read_bytes()))


def reasons_of(plans_with_names: Sequence[tuple[str, Plan]]) -> list[str]:
    """List the reasons of ratios outside their ranges, by ratio, each with the examples that it is true of."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, plan in plans_with_names:
        for row in ratios(plan):
            if row["reason"]:
                of = found.setdefault(row["ratio"], {}).setdefault(row["reason"], [])
                if name not in of:
                    of.append(name)
    return [
        f"- **{ratio}**: " + "; ".join(f"{reason} ({', '.join(names)})" for reason, names in by_reason.items())
        for ratio, by_reason in found.items()
    ]


def table(plans_with_names: Sequence[tuple[str, Plan]]) -> str:
    """Write the table of Markdown, one line an example, and below it why ratios lie outside their ranges."""
    lines = [f"| example | {' | '.join(HEADS)} |", f"|---|{'---:|' * len(HEADS)}"]
    for name, plan in plans_with_names:
        found = cells(plan)
        told = [cell(found[code]) for code in ORDER] if plan.has_answer else ["no plan", *[""] * 5]
        lines.append(f"| {name} | {' | '.join(told)} |")
    return "\n".join([*lines, "", "Why a ratio lies outside:", "", *reasons_of(plans_with_names)])


def cells(plan: Plan) -> dict[str, list[Ratio]]:
    """Group the ratios of a plan by their code."""
    found: dict[str, list[Ratio]] = {code: [] for code in ORDER}
    for row in ratios(plan):
        found[row["code"]].append(row)
    return found


def cell(rows: Sequence[Ratio]) -> str:
    """Write the ratios of all workloads in one cell: each value, and a mark where it lies outside its range.

    >>> cell([{"value": 1500.0, "unit": "W/chip", "least": 810.0, "most": 2650.0, "verdict": "within"}])
    '1.5'
    """
    return ", ".join(f"{shown(row)[0].split()[0].removesuffix('/day')}{MARKS[row['verdict']]}" for row in rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="*", help="plans as JSON; the examples are planned without any")
    parser.add_argument("--stored", action="store_true", help="read the stored plans of the examples")
    parser.add_argument("--plans", dest="folder", type=Path, help="folder of plans to keep and to read")
    parser.add_argument("--time-limit", default="60s", help="of each example")
    asked = parser.parse_args()
    print(table(list(stored() if asked.stored else plans(asked.plans, asked.folder, asked.time_limit))))


if __name__ == "__main__":
    main()
