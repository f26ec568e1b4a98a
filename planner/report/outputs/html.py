"""Write a plan as one HTML page that needs nothing else: no script, no font, no file and no host beside it.

Charts come from `planner.report.charts`, drawn as SVG by vl-convert. Not here: the tables and sentences (`planner.report.report`).
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from planner.escape import terminal
from planner.messages import DEFAULT, listed, say, stopped, translated
from planner.plan import Plan
from planner.report import report
from planner.report.story import story

REQUIREMENTS = ("altair>=5.5", "vl-convert-python>=1.7")
MISSING = say("html.charts_missing", names=" ".join(f'"{name}"' for name in REQUIREMENTS))
CHART_PX = 640
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
"""


def can_draw() -> bool:
    """Test whether the packages that draw the charts are installed."""
    return all(find_spec(name) is not None for name in ("altair", "vl_convert"))


def html_page(plan: Plan, language: str = DEFAULT) -> str:
    """Write a plan as an HTML page in a language. Raises ImportError where altair or vl-convert is missing (`can_draw`)."""
    _, verdict, totals, *_ = report.opening(plan, language)
    charts = "\n".join(_figure(words, svg) for words, svg in chart_pictures(plan, language))
    opening = [
        f"<h1>{_text(plan.document['name'])}</h1>",
        *(f"<p>{_text(line)}</p>" for line in plan.document["spec"].get("note", "").splitlines()),
        f'<p class="verdict">{_text(verdict)}</p>',
        f"<p>{_text(totals)}</p>" if totals else "",
        *(f"<p>{_answer(question, clauses, language)}</p>" for question, clauses in story(plan, whole=True)),
    ]
    chapters = [
        f"<h2>{_text(heading)}</h2><ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"
        for heading, lines in report.chapters_of(plan, language)
    ]
    tables = [
        f"<h2>{_text(table.heading)}</h2>{f'<p>{_text(table.remark)}</p>' if table.remark else ''}{_table(table.rows)}"
        for table in report.sections_of(plan, language)
    ]
    versions = ", ".join(f"{name} {version}" for name, version in plan.document["versions"].items())
    made_by = translated(say("html.versions", versions=versions, digest=plan.document["catalog_digest"][:12]), language)
    feet = [text for text in (report.ending(plan, language), report.closing(plan, language), made_by) if text]
    body = "\n".join([*opening, charts, *chapters, *tables])
    footer = "".join(f"<p>{_text(text)}</p>" for text in feet)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n<title>{_text(plan.document["name"])}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n{body}\n<footer>{footer}</footer>\n</body>\n</html>\n"
    )


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
    from planner.report.charts import costs, fleet, flows, hours
    from planner.report.locale import Words

    if not plan.has_answer or not plan.document["fleet"]:
        return
    t = Words(language)
    charts: list[Any] = [fleet.fleet_chart(plan, t), costs.cost_chart(plan, t)]
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
    body = "".join(f"<tr>{''.join(_cell(row, name) for name in names)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    is_number = isinstance(value, (int, float)) or (isinstance(value, str) and value[:1].isdigit())
    text = "" if value is None else str(value)
    return f'<td class="number">{_text(text)}</td>' if is_number else f"<td>{_text(text)}</td>"


def _text(value: Any) -> str:
    """Show a text as text: controls as escapes, and nothing of it as markup."""
    return html.escape(terminal(str(value)))
