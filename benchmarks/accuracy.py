"""Measure how far the models are from published runs; write benchmarks/accuracy.md and its scatter plots.

    python benchmarks/accuracy.py --measurements DIR [--chapter training|serving|edge|anchors|power] [--against FILE]

DIR holds training.csv and serving.csv, of which the chapter on the edge takes the rows of edge devices, and other/server_power.csv. With --chapter only that chapter is written anew. With
--against an earlier report, such as that of the last release, the chapter on changes is written, and the command fails where a median of rows left
out rose by more than a point. Constants are refitted only to leave groups
out; the catalog does not change.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from accuracy_against import change_table, changes

HEAD = """# Accuracy

Written by `python benchmarks/accuracy.py --measurements DIR`. Errors are |predicted / measured - 1|, bias is the median of
predicted / measured - 1. A figure "leave-one-... -out" is of rows predicted by constants fitted without their group; "held back" are
rows that are not in these files. A group is a source kind, architecture and chip; in the median of groups each has one vote.
"""
CHAPTERS = {
    "training": "training.csv",
    "serving": "serving.csv",
    "edge": "serving.csv",
    "anchors": "serving.csv",
    "power": "other/server_power.csv",
}  # chapter -> file of measurements


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    parser.add_argument("--chapter", choices=CHAPTERS, help="write only this chapter anew")
    parser.add_argument("--against", metavar="FILE", type=Path, help="an earlier report: fail where a tier got worse")
    arguments = parser.parse_args(argv)
    old = None if arguments.against is None else arguments.against.read_text(encoding="utf-8")
    report = HERE / "accuracy.md"
    chapters = written_chapters(report.read_text(encoding="utf-8")) if report.exists() else {}
    for name in CHAPTERS if arguments.chapter is None else (arguments.chapter,):
        chapters[name] = chapter(name, arguments.measurements)
        print(chapters[name])
    lost = 0
    if old is not None:
        found = changes(old, "\n".join(chapters[name] for name in CHAPTERS if name in chapters))
        chapters["changes"] = f"## Changes\n\nMedians against {arguments.against.name}.\n\n{change_table(found)}\n"
        print(chapters["changes"])
        lost = sum(each.lost for each in found)
    known = [chapters[name] for name in (*CHAPTERS, "changes") if name in chapters]
    report.write_text("\n".join([HEAD, *known]), encoding="utf-8")
    return 1 if lost else 0


def chapter(name: str, folder: Path) -> str:
    """Write the text of one chapter, and its plots beside it."""
    from importlib import import_module

    from catalog.lookup import Catalog

    text, plots = import_module(f"accuracy_{name}").chapter(folder / CHAPTERS[name], Catalog.load())
    for file, plot in plots.items():
        (HERE / file).write_text(plot, encoding="utf-8")
    return text


def written_chapters(text: str) -> dict[str, str]:
    """Read the chapters of an earlier report, by name."""
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {re.match(r"## (\w+)", part)[1].lower(): part.rstrip("\n") + "\n" for part in parts}


if __name__ == "__main__":
    sys.exit(main())
