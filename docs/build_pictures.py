"""Draw what a terminal shows of the printed page of some examples, as SVG files under docs/pictures. Run by `make pictures`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

import planner
from planner.report.page import one_page
from planner.report.paper import WIDTH

HOME = Path(__file__).resolve().parents[1]
PICTURES = HOME / "docs" / "pictures"
EXAMPLES = ("mixed_fleet", "inference_cluster", "compute_network")
FOREIGN = re.compile(
    r"@font-face \{\{.*?\}\}|<!--.*?-->", re.DOTALL
)  # a picture names and loads nothing from elsewhere


def picture(page: str, title: str) -> str:
    """Draw a page with its headings in bold."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(page), soft_wrap=True)
    return console.export_svg(title=title, code_format=FOREIGN.sub("", CONSOLE_SVG_FORMAT), unique_id="page")


def main(names: list[str]) -> None:
    """Plan each example and draw its page."""
    PICTURES.mkdir(exist_ok=True)
    for name in names or EXAMPLES:
        plan = planner.solve(HOME / "examples" / f"{name}.json")
        file = PICTURES / f"{name}.svg"
        file.write_text(picture(one_page(plan, styled=True), f"flopwatt plan examples/{name}.json"), encoding="utf-8")
        print(f"{file.relative_to(HOME)}: {plan.status}")


if __name__ == "__main__":
    main(sys.argv[1:])
