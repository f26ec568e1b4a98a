"""Write the gallery of announced systems: docs/systems/S*.md, its README.md and pictures, from examples/systems. Run by `make gallery`.

`python docs/build_gallery.py [S1 ...]`: the pages from the stored plans in examples/systems/plans, which have the format of examples/plans.
`python docs/build_gallery.py --solve [S1 ...]`: solve the specs anew first. A plan that fails its verification, or gives no answer in the time
that its spec allows, is not stored; a value further from the stored one than both gaps allow is stored and said.

A page is data, examples/systems/pages/S1.json: the question, the plans and studies that answer it, figures of plans that stand beside claims, and
what a reader should know of a gap or a contradiction. All figures come from the stored plans, from the commands and from `flopwatt audit`.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from build_gallery_plans import (
    HOME, SYSTEMS, Data, currency_of, figure, judged, plan_of, solve_again, solved, spec_file, study_again, study_of, systems,
)  # fmt: skip
from catalog.units import MEGA, show
from planner.audit import Judged, Verdict
from planner.audit.quantities import digits
from planner.escape import markdown
from planner.messages import DEFAULT
from planner.plan import Plan, binds
from planner.report import marginal_values, report, robust
from planner.report.limits import limit_row, runner_up_row
from planner.report.load.relays import load_lines
from planner.report.locale import Words
from planner.report.why import losses, looser
from planner.report.why.ratios import Ratio, ratios, shown
from planner.report.workloads import latency_words
from planner.tables import as_markdown

PAGES = HOME / "docs" / "systems"
BEST_MFU = "N22"  # claim beside which the best published MFU of large runs is stated
NAMED = 5  # sentences of a list; further ones stand in the plan


# -- the parts of a page -------------------------------------------------------------------------------------------------


def _said(text: str) -> str:
    return markdown(str(text))


def _bullets(lines: Sequence[str]) -> str:
    shown_lines = [f"- {_said(line)}\n" for line in lines[:NAMED]]
    more = len(lines) - NAMED
    return "".join(shown_lines) + (f"- {more} more in the plan\n" if more > 0 else "")


def _runs_on(workload: Mapping[str, Any]) -> str:
    places: dict[str, list[str]] = {}
    for point in workload["points"]:
        systems_of = " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"]))
        found = places.setdefault(systems_of, [])
        found += [] if point["site"] in found else [point["site"]]
    return "; ".join(f"{system} in {', '.join(sites)}" for system, sites in places.items())


def plan_rows(plan: Plan) -> list[dict[str, str]]:
    """Write a row for each workload: what it runs on, its price, how busy its chips are, and its latencies or time."""
    rows = []
    for row in plan.document["workloads"]:
        price = row["cost_per_million_tokens"]
        times = [latency_words(each) for each in row["slo"] if each["predicted_s"] is not None]
        times += [f"run {show(point['time_s']['run'], 's')}" for point in row["points"] if point["time_s"]][:1]
        times += [
            f"{point['iteration']['iterations_per_hour']:,.3g} iterations/h, bound by {point['iteration']['binds']}"
            for point in row["points"]
            if point.get("iteration")
        ][:1]
        rows.append(
            {
                "workload": row["name"],
                "runs on": _runs_on(row),
                f"{currency_of(plan)} per 1M tokens": "" if price is None else digits(price),
                "chips at work": "" if row["utilisation"] is None else f"{row['utilisation']:.0%}",
                "MFU": "" if row["mfu"] is None else f"{row['mfu']:.1%}",
                "time": "; ".join(times),
            }
        )
    return rows


def fleet_words(plan: Plan) -> str:
    """Say how many systems stand at each site, on which network."""
    held: dict[str, list[str]] = {}
    for row in plan.document["fleet"]:
        name = f"{row['count']:,} {row['system']}" + (f" ({row['topology']})" if row.get("topology") else "")
        held.setdefault(row["site"], []).append(f"{row['count']:,} tokens/s from {row['system']}" if row.get("unit") else name)
    return "; ".join(f"{site}: {', '.join(kinds)}" for site, kinds in held.items())


def unused_words(plan: Plan) -> str:
    """Say how many of the sites of a spec hold systems, and which hold none; empty where all do."""
    sites = [site.get("name", site["region"]) for site in plan.document["spec"]["sites"]]
    held = {row["site"] for row in plan.document["fleet"]}
    idle = [site for site in sites if site not in held]
    return f"In use are {len(sites) - len(idle)} of the {len(sites)} sites on offer: nothing stands in {', '.join(idle)}." if idle else ""


def networks_words(plan: Plan) -> str:
    """Say what the networks are a share of."""
    share = plan.document["costs"].get("fabric", 0.0) / plan.totals["cost"] if plan.totals["cost"] else 0.0
    links = sum(row["links"] for row in plan.document["fabrics"])
    switches = sum(row["switches"] for row in plan.document["fabrics"])
    return f"Networks: {switches:,} switches and {links:,} links, {share:.1%} of the cost."


def plan_part(part: Data) -> str:
    """Write the answer of one plan: its verdict and totals, the picture, where everything stands, and the table of its workloads."""
    name, words = part["plan"], part.get("words", "")
    plan = plan_of(name)
    place = spec_file(name).relative_to(HOME).as_posix()
    cpu = f" It took {solved()[name]:.0f} s of processor time." if name in solved() else ""
    cpu += f" Serving replicas are {plan.document['replicas']}." if plan.document.get("replicas") else ""
    alt = _said(chart_of(plan, part.get("picture", "fleet"))[0])
    parts = [
        f"### {_said(plan.document['name'])}\n",
        f"{_said(words)}\n" if words else "",
        f"```sh\nflopwatt plan {place}\n```\n",
        f"**{_said(report.headline(plan))}**{cpu}\n",
        f"{_said(part['gap'])}\n" if part.get("gap") else "",
        f"{_said(report.totals_line(plan))}\n",
        f"![{alt}](pictures/{name}.svg)\n",
        f"{_said(fleet_words(plan))}.\n",
        f"{_said(unused)}\n" if (unused := unused_words(plan)) else "",
        as_markdown(plan_rows(plan)),
    ]
    return "\n".join(part for part in parts if part)


def command_lines(part: Data) -> list[str]:
    """Return the arguments of the command of a study."""
    return [part["study"], (SYSTEMS / part["case"]).resolve().relative_to(HOME).as_posix(), *part.get("options", ())]


@cache
def _study(arguments: tuple[str, ...]) -> str:
    """Run a command of this program, and return what it prints in Markdown."""
    from planner.cli.main import main

    stream = io.StringIO()
    with redirect_stdout(stream):
        main([arguments[0], str(HOME / arguments[1]), *arguments[2:], "--quiet", "--format", "md"])
    return stream.getvalue()


def study_tables(part: Data) -> tuple[str, dict[str, str]]:
    """Return the first line of a study, and its tables by heading."""
    text = _study(tuple(command_lines(part)))
    first, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    return first.strip(), {heading: table.strip() for heading, _, table in (each.partition("\n") for each in rest)}


def table_columns(table: str, *names: str) -> list[tuple[str, ...]]:
    """Read columns of a table in Markdown by their heads."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]
    places = [lines[0].index(name) for name in names]
    return [tuple(line[place] for place in places) for line in lines[2:]]


def study_part(part: Data) -> str:
    """Write the answer of a study: what it says first, the picture where it has one, and its tables that the data name."""
    first, tables = study_tables(part)
    line = " ".join(["flopwatt", *command_lines(part)])
    parts = [f"### {_said(part['heading'])}\n", f"{_said(part['words'])}\n" if part.get("words") else "", f"```sh\n{line}\n```\n", f"**{first}**\n"]
    if "picture" in part:
        parts.append(f"![{_said(study_chart(part)[0])}](pictures/{Path(part['case']).stem}.svg)\n")
    for heading in part["tables"]:
        parts.append(f"{heading}\n\n{tables[heading]}\n")
    return "\n".join(each for each in parts if each)


def split_part(part: Data) -> str:
    """Write the stored split of what the points of a frontier save of carbon."""
    stored = study_of(part["stored"])
    split = stored["document"]["split"]
    currency = stored["document"]["currency"]
    heads = {"neither": "systems alone", "time": "time", "space": "space", "both": "both"}
    rows = []
    for point in split["points"]:
        found = {each["way"]: each for each in point["ways"]}
        open_ = [1 - each["bound_kg"] / each["carbon_kg"] for each in found.values() if each["saving"] is not None and each["bound_kg"] is not None]
        rows.append(
            {
                "point": point["asked"],
                "cost": show(point["cost"], currency),
                **{head: _percent(found[way]["saving"]) if way in found else "" for way, head in heads.items()},
                "largest gap": f"{max(open_):.1%}" if open_ else "",
            }
        )
    line = " ".join(["flopwatt", *stored["command"]])
    words = f"The plan of least cost emits {digits(split['base_carbon_kg'] / 1000)} t. Of this, each way saves at the cost of each point:"
    parts = [f"### {_said(part['heading'])}\n", f"{_said(part['words'])}\n", f"```sh\n{line}\n```\n", f"{words}\n", as_markdown(rows)]
    return "\n".join(parts)


def _percent(share: float | None) -> str:
    return "not found in time" if share is None else f"{share:.1%}"


# -- pictures ------------------------------------------------------------------------------------------------------------


def chart_of(plan: Plan, picture: str) -> tuple[str, Any]:
    """Return (words, chart) of a plan: its "fleet", "cost", "flows" or the "hours" of its first site with load."""
    from planner.report.charts import costs, fleet, flows, hours

    t = Words(DEFAULT)
    if picture == "hours":
        phase = hours.first_loaded_phase(plan)
        assert phase is not None
        chart: Any = hours.load_chart(plan, hours.sites_with_load(plan, phase)[0], phase, t)
    else:
        chart = {"fleet": fleet.fleet_chart, "cost": costs.cost_chart, "flows": flows.flow_chart}[picture](plan, t)
    return chart.to_dict()["description"], chart


def study_chart(part: Data) -> tuple[str, Any]:
    """Return (words, chart) of a column of a study's table."""
    from planner.report.charts.bars import AMOUNT, bar_chart

    asked = part["picture"]
    rows = table_columns(study_tables(part)[1][asked["table"]], asked["name"], asked["value"])
    values = {name: float(value.replace(",", "").rstrip("%")) for name, value in rows if value}
    chart = bar_chart(values, asked["value"], asked["name"], AMOUNT, Words(DEFAULT))
    return chart.to_dict()["description"], chart


def pictures(data: Data) -> Iterator[tuple[str, str]]:
    """Yield (name of the file, SVG) of each picture of a page."""
    import vl_convert

    from planner.report.outputs.html import CHART_PX, PADDING, drawing_versions

    version = vl_convert.get_vegalite_versions()[-1]

    for part in data["parts"]:
        if "plan" in part:
            name, chart = part["plan"], chart_of(plan_of(part["plan"]), part.get("picture", "fleet"))[1]
        elif "picture" in part:
            name, chart = Path(part["case"]).stem, study_chart(part)[1]
        else:
            continue
        spec = chart.properties(width=CHART_PX, padding=PADDING).to_dict()
        yield f"{name}.svg", f"{vl_convert.vegalite_to_svg(spec, vl_version=version)}\n<!-- {drawing_versions()} -->\n"


# -- sections ------------------------------------------------------------------------------------------------------------


def binding(plan: Plan) -> list[str]:
    """Say what binds: limits of which more is worth something, else limits without slack; and what the runs lose."""
    worth = [line for _, lines in marginal_values.chapters(plan) for line in lines]
    if not worth:
        rows = [limit_row(row) for row in plan.document["limits"] if binds(row)]
        worth = [f"{row['limit']}: all in use, {row['allowed']}" for row in rows]
    pools = [
        f"{row['name']}: the {point['iteration']['binds']} binds its iteration ({point['iteration']['way']})"
        for row in plan.document["workloads"]
        for point in row["points"]
        if point.get("iteration")
    ]
    return [*worth[: NAMED - 2], *dict.fromkeys(pools), *losses.clauses(plan)] or ["no limit binds: the cheapest systems serve all"]


def changes(plan: Plan) -> list[str]:
    """Say what would change the plan: the next best systems, limits a little looser, and how sure it is."""
    nearest = []
    for row in sorted(plan.document["runner_up"], key=lambda row: row.get("difference") or 0.0):
        words = runner_up_row(row)
        nearest.append(": ".join(each for each in (words["site"] or "", words["not_in_use_there"], words["margin"]) if each))
    sure = robust.sure_words(plan)
    return [*nearest[:2], *looser.sentences(plan)[:1], *([sure] if sure else [])]


def claim_rows(system: str, data: Data) -> list[dict[str, str]]:
    """Write a row for each claim about a system: our figure from the audit, the figure of the plan beside it, and the verdict."""
    beside: dict[str, list[str]] = {}
    for row in data.get("beside", ()):
        value, unit = figure(row)
        words = f" ({row['words']})" if row.get("words") else ""
        beside.setdefault(row["claim"], []).append(f"{digits(value)} {unit}{words}")
    rows = []
    for each in claims_of(system):
        short = each.short()
        rows.append(
            {
                "claim": each.claim.id,
                "it says": each.claim.says,
                "claimed": each.claimed,
                "ours": f"{each.figure} ({each.interval})" if each.interval else each.figure,
                "in the plan": "; ".join(beside.get(each.claim.id, ())),
                "verdict": str(list(short.values())[-1]),
            }
        )
    return rows


def claims_of(system: str) -> list[Judged]:
    """List the judged claims about a system."""
    return [each for each in judged().judged if system in each.claim.systems]


def factor(row: Ratio) -> float:
    """Return how many times a ratio lies beyond the nearer end of its published range; 1 within it.

    >>> factor({"value": 3.0, "least": 1.0, "most": 2.0}), factor({"value": 1.5, "least": 1.0, "most": 2.0})
    (1.5, 1.0)
    """
    value, least, most = row["value"], row["least"], row["most"]
    if least is None or most is None:
        return 1.0
    return max(1.0, value / most, least / value if value > 0 else inf)


def key_of(row: Ratio) -> str:
    """Name a ratio in the data of a page, such as "rate assistant"."""
    return f"{row['code']} {row['of']}".strip()


def plausibility(name: str, data: Data) -> list[dict[str, str]]:
    """Write a row for each of the six ratios of a plan: the published range, the factor beyond it, and why."""
    told = data.get("contradictions", {}).get(name, {})
    rows = []
    for row in ratios(plan_of(name)):
        value, span = shown(row)
        rows.append(
            {
                "ratio": row["ratio"],
                "of": row["of"],
                "this plan": value,
                "published": span,
                "factor": f"{factor(row):.3g}" if row["least"] is not None and isfinite(factor(row)) else "",
                "verdict": row["verdict"],
                "because": told.get(key_of(row), row["reason"]),
            }
        )
    return [*rows, *efficiencies(name, told), *prices(plan_of(name))]


def efficiencies(name: str, told: Mapping[str, str]) -> list[dict[str, str]]:
    """Write a row for each training run: its MFU beside the best that large runs have published, which claim N22 is judged by."""
    known = judged().one(BEST_MFU).finding
    rows = []
    for row in plan_of(name).document["workloads"]:
        if row["kind"] == "training" and row["mfu"] is not None:
            value = 100.0 * row["mfu"]
            rows.append(
                {
                    "ratio": "MFU of a run",
                    "of": row["name"],
                    "this plan": f"{value:.3g}%",
                    "published": f"best runs {digits(known.low or 0.0)} … {digits(known.high or 0.0)} %",
                    "factor": f"{max(1.0, value / (known.high or value)):.3g}",
                    "verdict": "within" if value <= (known.high or value) else "contradiction",
                    "because": told.get(f"mfu {row['name']}", ""),
                }
            )
    return rows


def prices(plan: Plan) -> list[dict[str, str]]:
    """Write a row for each workload with a list price: what its tokens would sell for, over their cost."""
    rows = []
    for row in plan.document["workloads"]:
        if row.get("revenue"):
            times = row["cost"] / row["revenue"]
            rows.append(
                {
                    "ratio": "cost over the list price of these tokens",
                    "of": row["name"],
                    "this plan": f"{times:.3g}",
                    "published": "below 1",
                    "factor": f"{max(1.0, times):.3g}",
                    "verdict": "within" if times <= 1 else "dearer than bought",
                    "because": "",
                }
            )
    return rows


def page(system: str, data: Data) -> str:
    """Write the page of a system."""
    plans = [part["plan"] for part in data["parts"] if "plan" in part]
    answers = [
        plan_part(part) if "plan" in part else split_part(part) if "stored" in part else study_part(part) for part in data["parts"]
    ]
    parts = [
        f"# {system}: {data['title']}\n",
        f"Generated by `make gallery` from `examples/systems/pages/{system}.json`; edit that, not this page. [All twelve](README.md).\n",
        f"**Question.** {data['question']}\n",
        "## Answer\n",
        *answers,
        *(f"{_said(line)}\n" for line in data.get("answer", ())),
        "## What binds\n",
        *(_named(name, _bullets(binding(plan_of(name))), plans) for name in plans),
        _bullets_of_all(data.get("binds", ())),
        "## Claims beside our figures\n",
        *(f"{_said(line)}\n" for line in data.get("beside_words", ())),
        as_markdown(claim_rows(system, data)),
        f"`flopwatt audit --only {system}` prints the arithmetic of each, `--claim ID` its derivation.\n",
        "## What would change it\n",
        *(_named(name, _bullets(changes(plan_of(name))), plans) for name in plans),
        _bullets_of_all([f"{each.claim.id} {each.verdict}" for each in claims_of(system) if each.finding.verdict is Verdict.HOLDS_WHEN]),
        "## How plausible it is\n",
        "A factor says how far a figure lies beyond the nearer end of its published range; 1 is within it.\n" if plans else "",
        *(_named(name, as_markdown(plausibility(name, data)) + "\n" + _bullets([networks_words(plan_of(name)), *load_lines(plan_of(name))]), plans) for name in plans),
        _bullets_of_all(data.get("plausible", ())),
    ]
    if data.get("left_out"):
        parts += ["## What it leaves out\n", "".join(f"- {_said(line)}\n" for line in data["left_out"])]
    return "\n".join(part for part in parts if part)


def _named(name: str, text: str, plans: Sequence[str]) -> str:
    """Set the name of a plan before a text where the page has several."""
    return text if len(plans) < 2 else f"{_said(plan_of(name).document['name'])}:\n\n{text}"


def _bullets_of_all(lines: Sequence[str]) -> str:
    return "".join(f"- {_said(line)}\n" for line in lines)


def contents(data: Mapping[str, Data]) -> str:
    """Write the table of all systems."""
    rows = []
    for system, each in data.items():
        names = [part["plan"] for part in each["parts"] if "plan" in part]
        plans = [plan_of(name) for name in names]
        claims = claims_of(system)
        bad = sum(one.finding.verdict in (Verdict.CANNOT_BE, Verdict.MISLABELLED, Verdict.CONFLICT) for one in claims)
        rows.append(
            {
                "system": f"[{system}]({system}.md)",
                "what": each["title"],
                "chips": "; ".join(f"{plan.totals['chips']:,}" for plan in plans),
                "MW": "; ".join(digits(plan.totals["peak_power_w"] / MEGA) for plan in plans),
                "cost": "; ".join(show(plan.totals["cost"], currency_of(plan)) for plan in plans),
                "gap": "; ".join(f"{plan.gap or 0.0:.2%}" for plan in plans),
                "CPU s": "; ".join(f"{solved()[name]:.0f}" for name in names if name in solved()),
                "claims": str(len(claims)),
                "hold": str(sum(one.finding.verdict is Verdict.HOLDS for one in claims)),
                "on a condition": str(sum(one.finding.verdict is Verdict.HOLDS_WHEN for one in claims)),
                "impossible, mislabelled or in conflict": str(bad),
            }
        )
    return (
        "# The systems people announce, as worked plans\n\n"
        "Generated by `make gallery` from `examples/systems`; edit the data there, not these pages. Each system is a question at the size that was\n"
        "announced, answered by the planner, beside the claims that were made for it ([audit.md](../audit.md)).\n\n"
        + as_markdown(rows, lambda text: text)
        + "\nThe plans lie in `examples/systems/plans`; `flopwatt dashboard --readonly examples/systems/plans` shows them as a gallery.\n"
        "`make gallery PLANS=new` solves them again.\n"
    )


def main(arguments: Sequence[str]) -> None:
    """Solve where asked, and write the pages."""
    data = systems()
    names = [each for each in arguments if not each.startswith("--")] or list(data)
    if "--solve" in arguments:
        for system in names:
            for part in data[system]["parts"]:
                if "plan" in part and spec_file(part["plan"]).parent == SYSTEMS:
                    print(solve_again(part["plan"]), flush=True)
                if "stored" in part:
                    print(study_again(part["stored"], study_of(part["stored"])["command"]), flush=True)
    (PAGES / "pictures").mkdir(parents=True, exist_ok=True)
    for system in names:
        (PAGES / f"{system}.md").write_text(page(system, data[system]), encoding="utf-8")
        for name, svg in pictures(data[system]):
            (PAGES / "pictures" / name).write_text(svg, encoding="utf-8")
    (PAGES / "README.md").write_text(contents(data), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
