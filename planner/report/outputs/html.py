"""Write a plan as one HTML page that needs nothing else: no code, no font, no file and no host beside it.

The page carries its plan and spec as data, so that `flopwatt verify` proves it from the file alone (`planner.report.outputs.proof`).
Charts come from `planner.report.charts`, drawn as SVG by vl-convert. Not here: the sentences (`planner.report.report`) and the tables
(`planner.report.outputs.sections`).
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from planner.escape import terminal
from planner.messages import DEFAULT, listed, say, stopped, translated
from planner.plan import Plan
from planner.plan.embedded import as_data
from planner.report import report
from planner.report.heads import Section
from planner.report.outputs.chapters import chapters_of
from planner.report.outputs.sections import SECTIONS, tables_of
from planner.report.story import story
from planner.version import __version__

REQUIREMENTS = ("altair>=5.5", "vl-convert-python>=1.7")
MISSING = say("html.charts_missing", names=" ".join(f'"{name}"' for name in REQUIREMENTS))
GENERATOR = f"flopwatt {__version__}"
CHART_PX = 640
FOLDED_ROWS = 40  # rows of a table from which on it opens when it is asked for
PADDING = {
    "left": 24,
    "right": 32,
    "top": 6,
    "bottom": 6,
}  # fonts of readers are wider than the one that texts are measured in
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem }
.verdict { font-weight: 600 }
table { border-collapse: collapse; font-size: 13px } .wide { overflow-x: auto }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top }
th { background: var(--soft) } tr > .number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0; overflow-x: auto; background: #fff; width: fit-content; max-width: 100% }
figcaption { color: #444; font-size: 12px; padding: 0 .5rem .5rem }
footer { margin-top: 2rem; font-size: 12px; opacity: .8 }
nav { font-size: 13px } nav a { margin-right: .8rem } body { overflow-wrap: anywhere } table { overflow-wrap: normal } a { color: inherit }
.odds { border-left: 4px solid; padding-left: .8rem } summary { cursor: pointer } pre { font-size: 12px; overflow-x: auto }
@media print {
  body { max-width: none; margin: 0; font-size: 11px } nav, details.spec { display: none }
  h2, h3 { break-after: avoid } tr, figure { break-inside: avoid } thead { display: table-header-group }
  .wide { overflow: visible } details > * { display: revert } details::details-content { content-visibility: visible }
}
"""


def can_draw() -> bool:
    """Test whether the packages that draw the charts are installed."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def html_page(plan: Plan, language: str = DEFAULT, with_charts: bool = True) -> str:
    """Write a plan as an HTML page in a language: the verdict, how sure it is, why it is so, charts, all tables, the spec, and the plan as data.

    Raises ImportError where altair or vl-convert is missing (`can_draw`), unless the page is written without charts.
    """
    charts = [_figure(words, svg) for words, svg in chart_pictures(plan, language)] if with_charts else []
    tables = [(one.key, list(tables_of(one, plan, language))) for one in SECTIONS]
    parts = [
        *_opening(plan, language),
        _contents([(key, found[0].heading) for key, found in tables if found]),
        *charts,
        *(
            f"<h2>{_text(heading)}</h2>\n<ul>\n{''.join(f'<li>{_text(line)}</li>{chr(10)}' for line in lines)}</ul>"
            for heading, lines in chapters_of(plan, language)
        ),
        *(_section(key, found) for key, found in tables if found),
        _spec(plan, language),
        f"<footer>{_footer(plan, language)}</footer>",
        as_data(json.dumps(plan.document, allow_nan=False)),
    ]
    body = "\n<body>\n" + "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"
    digest = hashlib.sha256(body.encode("utf-8", errors="surrogatepass")).hexdigest()
    drawn = drawing_versions() if with_charts else ""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n<title>{_text(plan.document["name"])}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{GENERATOR}">\n<meta name="charts" content="{drawn}">\n<meta name="digest" content="{digest}">\n'
        f"<style>{STYLE}</style>\n</head>{body}"
    )


def _opening(plan: Plan, language: str) -> list[str]:
    """Write name, verdict, odds, totals, the user's note, and the answers to why."""
    opened = report.opening(plan, language)
    odds = [text for text in (opened.odds, opened.promise) if text]
    return [
        f"<h1>{_text(opened.name)}</h1>",
        f'<p class="verdict">{_text(opened.verdict)}</p>',
        *(f'<p class="odds">{_text(text)}</p>' for text in odds),
        f"<p>{_text(opened.coverage)}</p>" if opened.coverage else "",
        f"<p>{_text(opened.totals)}</p>" if opened.totals else "",
        *(f"<p>{_text(line)}</p>" for line in plan.document["spec"].get("note", "").splitlines()),
        *(f"<p>{_answer(question, clauses, language)}</p>" for question, clauses in story(plan, whole=True)),
    ]


def _contents(places: Sequence[tuple[str, str]]) -> str:
    """Link the sections of tables from the top of the page."""
    return "<nav>" + "\n".join(f'<a href="#{key}">{_text(heading)}</a>' for key, heading in places) + "</nav>"


def _section(key: str, tables: Sequence[Section]) -> str:
    """Write the tables of one section; long ones are folded."""
    written = []
    for table in tables:
        remark = f"<p>{_text(table.remark)}</p>\n" if table.remark else ""
        rows = _table(table.rows)
        if len(table.rows) > FOLDED_ROWS:
            rows = f"<details>\n<summary>{len(table.rows)}</summary>\n{rows}\n</details>"
        written.append(f"<h2>{_text(table.heading)}</h2>\n{remark}{rows}")
    return f'<section id="{key}">\n' + "\n".join(written) + "\n</section>"


def _spec(plan: Plan, language: str) -> str:
    """Write the spec as the user would write it to a file."""
    heading = translated(say("heading.spec"), language)
    text = json.dumps(plan.document["spec"], indent=1, ensure_ascii=False)
    return f'<details class="spec" id="spec">\n<summary>{_text(heading)}</summary>\n<pre>{html.escape(_lines(text))}</pre>\n</details>'


def _lines(text: str) -> str:
    """Show controls as escapes, and keep the ends of lines."""
    return "\n".join(terminal(line) for line in text.split("\n"))


def _footer(plan: Plan, language: str) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in plan.document["versions"].items())
    made_by = translated(say("html.versions", versions=versions, digest=plan.document["catalog_digest"][:12]), language)
    proves = translated(say("html.proves_itself"), language)
    feet = (report.ending(plan, language), report.closing(plan, language), made_by, proves)
    return "\n".join(f"<p>{_text(text)}</p>" for text in feet if text)


def drawing_versions() -> str:
    """Name the versions of the packages that draw the charts; empty where one is missing."""
    names = ("altair", "vl-convert-python")
    return ", ".join(f"{name} {metadata.version(name)}" for name in names) if can_draw() else ""


def generator_of(page: str) -> str:
    """Return the program and version that wrote a page, as it states them."""
    return _meta(page, "generator")


def drawn_by(page: str) -> str:
    """Return the versions of the packages that drew the charts of a page, as it states them."""
    return _meta(page, "charts")


def stated_digest(page: str) -> str:
    """Return the digest that a page states of its body."""
    return _meta(page, "digest")


def _meta(page: str, name: str) -> str:
    found = re.search(rf'<meta name="{name}" content="([^"]*)">', page)
    return found[1] if found else ""


def _answer(question: str, clauses: Sequence[str], language: str) -> str:
    """Set a question in bold before the clauses that answer it."""
    bold = say(
        "list.bold_colon",
        question=f"<b>{_text(translated(question, language))}",
        clauses=_text(translated(stopped(listed(clauses)), language)),
    )
    return translated(bold, language)


def chart_pictures(plan: Plan, language: str = DEFAULT) -> Iterator[tuple[str, str]]:
    """Yield (description, SVG) of each chart of a plan."""
    from planner.report.charts import costs, fleet, flows, hours, needs
    from planner.report.locale import Words

    if not plan.has_answer or not plan.document["fleet"]:
        return
    t = Words(language)
    charts: list[Any] = [fleet.fleet_chart(plan, t), costs.cost_chart(plan, t)]
    if (needed := needs.fan_chart(plan, t)) is not None:
        charts.append(needed)
    if (served := flows.flow_chart(plan, t)) is not None:
        charts.append(served)
    phase = hours.first_loaded_phase(plan)
    for site in () if phase is None else hours.sites_with_load(plan, phase):
        assert phase is not None
        charts += [hours.load_chart(plan, site, phase, t), hours.price_chart(plan, site, phase, t)]
    for chart in charts:
        spec = chart.properties(width=CHART_PX, padding=PADDING).to_dict()
        yield spec["description"], _svg(spec)


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    found: str = vl_convert.vegalite_to_svg(spec, vl_version=vl_convert.get_vegalite_versions()[-1])
    return found


def _figure(words: str, svg: str) -> str:
    return f'<figure role="img" aria-label="{_text(words)}">{svg}<figcaption>{_text(words)}</figcaption></figure>'


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    body = "\n".join(f"<tr>{''.join(_cell(row, name) for name in names)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    is_number = isinstance(value, (int, float)) or (isinstance(value, str) and value[:1].isdigit())
    text = "" if value is None else str(value)
    return f'<td class="number">{_text(text)}</td>' if is_number else f"<td>{_text(text)}</td>"


def _text(value: Any) -> str:
    """Show a text as text: controls as escapes, and nothing of it as markup."""
    return html.escape(terminal(str(value)))
