"""The page of a plan: it fits, its numbers are those of the document, and what it leaves out it counts."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import planner
from catalog.units import show
from planner.plan import Plan, load_plan
from planner.report.page import _rests_on, most_at_once, one_page
from planner.report.words import whole
from tests.conftest import few_of

STORED = ("planner/dashboard/data/mixed_fleet_plan.json", "tests/golden/plan_of_release_0_1.json")


def fits(text: str, width: int = 100) -> None:
    lines = text.split("\n")
    assert lines.pop() == "" and len(lines) <= 58
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def one_line(text: str) -> str:
    """The page with its lines joined, so that a wrapped sentence can be found."""
    return re.sub(r"\s+", " ", text)


def rows_under(page: str, heading: str) -> list[list[str]]:
    """The cells of a table of the page; what is left out is one cell, wrapped or not."""
    lines = page.split("\n")
    start = next(at for at, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        if rows and rows[-1][0].startswith("…"):
            rows[-1][0] += f" {line}"
        else:
            rows.append(re.split(r" {2,}", line))
    return rows


@pytest.fixture(scope="module", params=STORED)
def stored(request, root):
    return load_plan(root / request.param)


@pytest.fixture(scope="module")
def mixed(root):
    return load_plan(root / STORED[0])


@pytest.fixture(scope="module")
def solved(tiny, small_plan):
    """Small plans of each kind: with a job, for throughput, in phases, of least carbon, of an API, over years, and without an answer."""
    phased = {"name": "first", "start": "0 d"}, {"name": "second", "start": "180 d"}
    api = {
        "name": "gateway", "architecture": "Llama-3.2-1B", "input": "0.01 USD/1M tokens", "output": "0.05 USD/1M tokens",
        "latency": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "20 ms"}}, "region": "us-virginia",
    }  # fmt: skip
    specs = {
        "throughput": tiny(objective={"maximise": "throughput"}, limits={"budget": "1M USD"}),
        "years": tiny(horizon={"years": 3}),
        "carbon": tiny(objective={"minimise": "carbon"}),
        "infeasible": tiny(limits={"budget": "10 USD"}),
        "unbounded": tiny(objective={"maximise": "throughput"}),
        "phases": tiny(phases=list(phased)),
        "api": tiny(apis=[api]),
    }
    found = {name: planner.solve(spec) for name, spec in specs.items()}
    assert found["infeasible"].status == "infeasible" and found["unbounded"].status == "unbounded"
    return {"small": small_plan, **found}


KINDS = ("small", "throughput", "years", "carbon", "infeasible", "unbounded", "phases", "api")


# -- it fits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 90, 100, 200])
def test_a_stored_plan_fits_on_a_page(stored, width):
    fits(one_page(stored, width), min(width, 100))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("width", [80, 100])
def test_a_solved_plan_fits_on_a_page(solved, name, width):
    page = one_page(solved[name], width)
    fits(page, width)
    assert page.startswith(f"{solved[name]['name']}\n")


names = st.text(min_size=1, max_size=120) | st.sampled_from(["\x1b[2J\nx", "規模" * 40, "[bold]x[/bold]", "a" * 300])


@settings(max_examples=few_of(25))
@given(name=names, site=names, workload=names, copies=st.integers(1, 12), width=st.integers(80, 100))
def test_any_names_and_any_number_of_rows_fit(mixed, name, site, workload, copies, width):
    text = json.dumps(mixed.document)
    for old, new in (("us-virginia", site), ("assistant", workload), (mixed["name"], name)):
        text = text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])
    document = json.loads(text)
    for table in ("fleet", "workloads", "limits", "runner_up", "assumptions"):
        document[table] *= copies
    page = one_page(Plan(document), width)
    fits(page, width)
    assert "\x1b" not in page


def test_headings_are_bold_on_a_terminal_alone(mixed):
    plain, styled = one_page(mixed), one_page(mixed, styled=True)
    assert "\x1b" not in plain and "\x1b[1m" in styled
    assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", styled).split("\n")] == plain.split("\n")


def test_markup_in_a_name_is_text(mixed):
    document = {**mixed.document, "name": "[red]a[/red] :smile: \x1b[31m"}
    assert one_page(Plan(document)).startswith("[red]a[/red] :smile: \\x1b[31m\n")


# -- its numbers are those of the document -----------------------------------------------------------------------------


def test_what_to_obtain(stored):
    total = stored["totals"]["cost"]
    counts, costs = defaultdict(int), defaultdict(float)
    for row in stored["fleet"]:
        counts[row["system"], row["how"]] += row["count"]
    for row in stored["cost_lines"]:
        costs[row["system"], row["how"]] += row["amount"]
    shown = {
        (system, how): (int(count.replace(",", "")), share)
        for system, how, count, share, *_ in (
            row for row in rows_under(one_page(stored), "What to buy") if len(row) > 4
        )
    }
    assert shown
    for kind, (count, share) in shown.items():
        assert count == counts[kind] and share == f"{costs[kind] / total:.1%}"
    if len(counts) <= 4:
        assert set(shown) == set(counts)


def test_the_sites_of_each_kind(mixed):
    page = one_line(one_page(mixed))
    sites = defaultdict(list)
    for row in sorted(mixed["fleet"], key=lambda row: -row["count"]):
        sites[row["system"], row["how"]].append(f"{row['site']} {row['count']:,}")
    shown = [
        (system, how)
        for (system, how), parts in sites.items()
        if re.search(rf"{system} {how} [0-9,]+ [0-9.]+% {', '.join(parts)} ", page)
    ]
    hidden = len(sites) - len(shown)
    assert len(shown) >= 3 and (not hidden or f"… {hidden} more" in page)


def test_many_sites_have_a_line_each(mixed):
    """Five more sites, copies of the fleet, hours and costs of one, each larger than the one before; nothing of the kind at few sites."""
    document = copy.deepcopy(mixed.document)
    names = [f"site {i}" for i in range(5)]
    for key, number in (("fleet", "count"), ("schedule", "power_w"), ("cost_lines", "amount")):
        rows = [row for row in document[key] if row["site"] == "us-texas"]
        document[key] += [
            {**row, "site": name, number: int(row[number] * 5) * (5 + i)}
            for i, name in enumerate(names)
            for row in rows
        ]
    document["totals"]["cost"] = sum(row["amount"] for row in document["cost_lines"])
    document["totals"]["peak_power_w"] = 2e8
    page = one_page(Plan(document))
    rows = rows_under(page, "Where  ")
    shown = {row[0]: row[1:] for row in rows if not row[0].startswith("…")}
    assert list(shown)[:5] == names[::-1][: len(shown)] and (
        len(shown) == 8 or rows[-1] == [f"… {8 - len(shown)} more"]
    )
    for name, told in list(shown.items())[:5]:
        power = max(row["power_w"] for row in document["schedule"] if row["site"] == name)
        part = sum(row["amount"] for row in document["cost_lines"] if row["site"] == name) / document["totals"]["cost"]
        count = sum(row["count"] for row in document["fleet"] if row["site"] == name)
        assert told == [f"{count:,}", show(power, "W"), f"{part:.1%}"]
    assert "200 MW at the peak" in one_line(page)
    assert "Where  " not in one_page(mixed)


def test_prices_totals_and_what_is_kept(stored):
    page = one_page(stored)
    flat, currency = one_line(page), stored["spec"].get("currency", "USD")
    rows = {row[0]: row for row in rows_under(page, "Levelised cost per 1M tokens")}
    for workload in stored["workloads"]:
        row = rows[workload["name"]]
        assert float(row[1]) == pytest.approx(workload["cost_per_million_tokens"], abs=5e-5)
        assert row[3] == whole(workload["cost"])
        if workload["slo"]:
            least = min(workload["slo"], key=lambda slo: slo["slack_s"] / slo["limit_s"])
            assert f"{least['metric']} {least['percentile']}" in row[5]
    assert f"Total: {whole(stored['totals']['cost'])} {currency}" in flat
    large = sorted((cost for cost in stored["costs"].values() if cost >= 0.01 * stored["totals"]["cost"]), reverse=True)
    named = large if len(large) <= 5 else large[:4]
    for cost in named:
        assert f" {cost / stored['totals']['cost']:.1%}" in flat
    if len(large) > 5:
        assert f"others {1 - sum(named) / stored['totals']['cost']:.1%}" in flat


def test_the_cost_of_a_year(solved):
    plan = solved["years"]
    assert f"over 3 years, {whole(plan['totals']['cost'] / 3)} USD a year" in one_line(one_page(plan))
    assert "USD a year" not in one_line(one_page(solved["small"])).partition("Binding limits")[0].partition("Total")[2]


def test_deployments_are_ordered_and_their_work_is_that_of_the_schedule(mixed):
    work = defaultdict(float)
    for row in mixed["schedule"]:
        for point, replicas in row["active"].items():
            work[point] += replicas * row["seconds"]
    shares = defaultdict(float)
    for workload in mixed["workloads"]:
        total = sum(work[point["id"]] * point["capacity"] for point in workload["points"])
        for point in workload["points"]:
            systems = " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"]))
            shares[workload["name"], point["site"], systems] += work[point["id"]] * point["capacity"] / total
    rows = [row for row in rows_under(one_page(mixed), "How it runs") if not row[0].startswith("…")]
    assert len(rows) >= 2
    shown = defaultdict(int)  # several layouts of a workload may run on one kind at a site
    for row in rows:
        shown[row[0], row[1], row[2]] += int(row[5].rstrip("%"))
    for key, percent in shown.items():
        assert 0 < percent <= 100 * shares[key] + 1, key
    first = [row[0] for row in rows[: len(mixed["workloads"])]]
    assert len(set(first)) == len(first), "the largest of each workload comes before further ones"


def test_whole_deployments_are_shown_where_the_plan_has_them(small_plan):
    document = copy.deepcopy(dict(small_plan.document))
    point = document["workloads"][0]["points"][0]
    document["deployments"] = [
        {
            "point": point["id"], "workload": "chat", "site": point["site"], "replicas": 7, "load_s": 60.0, "loads": 1.0,
            "pools": [{"role": "serve", "system": "DGX H100", "workers_per_replica": 1, "systems_per_worker": 0.125, "workers": 7,
                       "least_workers": 7, "systems": 0.875}],
        }
    ]  # fmt: skip
    for row in document["schedule"]:
        row["resident"] = {point["id"]: [7 if row["hour_utc"] == 3 else 4]}
    rows = {row[0]: row for row in rows_under(one_page(Plan(document)), "How it runs")}
    assert rows["chat"][3:5] == ["7", "0.875"]
    document.pop("deployments")
    rows = {row[0]: row for row in rows_under(one_page(Plan(document)), "How it runs")}
    assert rows["chat"][3] == f"{point['peak_replicas']:,.4g}"


def test_deployments_occupy_no_more_systems_than_their_site_holds(mixed):
    held = defaultdict(float)
    for row in mixed["fleet"]:
        held[row["site"], row["system"]] += row["count"]
    rows = [row for row in rows_under(one_page(mixed), "How it runs") if not row[0].startswith("…")]
    for _, site, system, _, systems, *_ in rows:
        assert float(systems.replace(",", "")) <= sum(held[site, name] for name in system.split(" + ")) * (1 + 1e-3)


def test_what_binds_and_what_one_more_is_worth(mixed):
    rows = rows_under(one_page(mixed), "Binding limits")
    supply = next(row for row in mixed["limits"] if row["name"] == "supply of GB200 NVL72 (buy)")
    power = next(row for row in mixed["limits"] if row["name"] == "power in us-texas")
    shown = {row[0]: row[1:] for row in rows}
    assert shown["One more GB200 NVL72 (buy)"] == [whole(-supply["marginal_value_divisible"]), "0"]
    worth = [power["marginal_value_divisible"], power["marginal_value"]]
    if "The next MW of power in us-texas" in shown:  # there may be no room for it
        assert shown["The next MW of power in us-texas"] == [whole(-1e6 * each) for each in worth if each is not None]
    else:
        assert any(row[0].startswith("…") for row in rows)


def test_what_comes_next_starts_with_the_smallest_margin(mixed):
    nearest = min(mixed["runner_up"], key=lambda row: row["margin"])
    first = rows_under(one_page(mixed), "What comes next")[0]
    assert nearest["site"] in first[0].split(", ") and nearest["system"] in first[1]
    assert (show(nearest["margin"], "USD") if nearest["margin"] > 0.5 else "would do as well") in first[1]


def test_the_assumptions_with_the_largest_shares(mixed):
    reasons = {row["reason"] for row in mixed["assumptions"]}
    shares = [float(row[2].rstrip("%")) for row in _rests_on(mixed).entries if row[3] in reasons]
    assert shares == sorted(shares, reverse=True) and len(shares) > 5
    assert shares[0] == round(100 * max(row["share"] or 0.0 for row in mixed["assumptions"]), 1)


def test_the_years_of_a_curve_share_a_row(solved):
    plan = solved["years"]
    residual = [row["value"] for row in plan["assumptions"] if row["path"].startswith("economics.residual.")]
    years = [value.removesuffix(" 1") for value in residual]
    rows = [row for row in rows_under(one_page(plan), "What it rests on") if row[0].startswith("economics.residual")]
    assert [row[:2] for row in rows] == [["economics.residual", f"{years[0]} … {years[-1]}"]]


def test_what_is_left_out_is_counted(mixed):
    page = one_page(mixed)
    merged = {
        (
            w["name"],
            p["site"],
            *((pool["role"], pool["system"], pool["batch"], *pool["layout"].items()) for pool in p["pools"]),
        )
        for w in mixed["workloads"]
        for p in w["points"]
    }
    assert len(merged) == mixed.document["simplicity"]["deployments"]
    rows = rows_under(page, "How it runs")
    assert rows[-1][0].startswith(f"… {len(merged) - len(rows) + 1} more: ")
    unnamed = {names[0] for names in merged} - {row[0] for row in rows[:-1]}
    assert all(f"{name} at " in rows[-1][0] for name in unnamed)


# -- the three sentences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("infeasible", "unbounded")])
def test_three_sentences_open_the_page(solved, name):
    lines = one_page(solved[name]).split("\n")
    assert lines[2] == "" or lines[3] == ""
    told = [line for line in lines if line.startswith(("Why here: ", "Why this: ", "Why then: "))]
    assert [line[:8] for line in told] == ["Why here", "Why this", "Why then"]


def test_the_sentences_state_figures_of_the_document(mixed):
    page = one_line(one_page(mixed))
    total = mixed["totals"]["cost"]
    for kind, key in (("us-texas", "site"), ("bought GB200 NVL72", "system")):
        cost = sum(row["amount"] for row in mixed["cost_lines"] if kind.endswith(row[key]) and row[key])
        assert f"{kind} ({cost / total:.0%})" in page
    rates, seconds = defaultdict(float), {row["slot"]: row["seconds"] for row in mixed["schedule"]}
    for row in mixed["routes"]:
        rates[row["slot"]] += row["tokens_per_s"]
    mean = sum(rate * seconds[slot] for slot, rate in rates.items()) / sum(seconds.values())
    assert f"serves {max(rates.values()) / mean:.2f} times the mean" in page


def test_a_cost_that_belongs_to_no_kind_of_system_is_none(mixed):
    document = copy.deepcopy(dict(mixed.document))
    document["cost_lines"].append(
        {"component": "porting", "site": "", "system": "Qwen3-32B on gaudi", "how": "", "amount": 9e7}
    )
    assert "Qwen3-32B on gaudi" not in one_page(Plan(document))


def test_windows_that_follow_each_other_are_one(mixed):
    document = copy.deepcopy(dict(mixed.document))
    first = {**document["fleet"][0], "how": "spot", "system": "Node", "site": "here"}
    document["fleet"] = [
        {**first, "window": 0, "count": 2}, {**first, "window": 1, "count": 2}, {**first, "window": 3, "count": 5}
    ]  # fmt: skip
    document["schedule"] = [
        {**row, "window": window, "seconds": row["seconds"] / 4} for window in range(4) for row in document["schedule"]
    ]  # 365 days each
    assert "here 5 (from 2029-12-31), here 2 (until 2028-12-31)" in one_line(one_page(Plan(document)))


def test_the_page_follows_the_document(mixed):
    document = copy.deepcopy(dict(mixed.document))
    for row in document["fleet"]:
        row["count"] *= 3
    for workload in document["workloads"]:
        workload["cost_per_million_tokens"] *= 3
    document["totals"]["cost"] *= 3
    page = one_line(one_page(Plan(document)))
    assert f"Total: {whole(3 * mixed['totals']['cost'])} USD" in page
    assert f"{3 * mixed['workloads'][0]['cost_per_million_tokens']:.4f}" in page
    system = next(row["system"] for row in document["fleet"] if row["how"] == "reserved")
    rented = sum(row["count"] for row in document["fleet"] if (row["system"], row["how"]) == (system, "reserved"))
    assert f"{system} reserved {rented:,}" in page


def test_no_answer_is_explained(solved):
    page = one_page(solved["infeasible"])
    found = solved["infeasible"]["diagnosis"]
    assert all(row["words"] in one_line(page) for row in (*found["conflict"], *found["repair"]))
    assert "budget" in one_page(solved["unbounded"])


@given(
    spans=st.lists(
        st.tuples(st.integers(1, 9), st.none() | st.tuples(st.integers(0, 4), st.integers(0, 3))), min_size=1
    )
)
def test_the_most_at_once_is_that_of_the_fullest_window(spans):
    rows = [
        {"count": count, "window": None, **({} if span is None else {"windows": [span[0], span[0] + span[1]]})}
        for count, span in spans
    ]
    held = [
        sum(row["count"] for row in rows if "windows" not in row or row["windows"][0] <= at <= row["windows"][1])
        for at in range(9)
    ]
    assert most_at_once(rows) == max(held)


# -- the documents that show a page ------------------------------------------------------------------------------------


def test_documents_show_the_page_of_the_stored_plan(root):
    spec = importlib.util.spec_from_file_location("build_page", root / "docs/build_page.py")
    build_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build_page)
    for name in build_page.DOCUMENTS:
        text = (root / name).read_text(encoding="utf-8")
        assert build_page.with_page(name, text) == text, f"{name} is old: python docs/build_page.py"
