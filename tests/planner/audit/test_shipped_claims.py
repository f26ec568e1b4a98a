"""The claims that are shipped: each has a verdict, equal to those judged by hand, and a figure that its printed inputs give again."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from planner.audit import Verdict, audit
from planner.audit.quantities import parse, shown_unit, unit_of
from planner.cli.main import main
from planner.exit_codes import INFEASIBLE, LIMIT, OK

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HAND = {
    claim["id"]: claim for claim in json.loads((HERE / "judged_by_hand.json").read_text(encoding="utf-8"))["claims"]
}
SEVERE = ("cannot be", "mislabelled", "conflict")


@pytest.fixture(scope="module")
def rows():
    return audit().document


def test_every_claim_of_the_five_articles_has_a_verdict(rows):
    assert len(rows) == 86 and len({row["id"] for row in rows}) == 86
    assert len({row["source"]["title"] for row in rows}) == 5
    assert {row["verdict"] for row in rows} == {str(verdict) for verdict in Verdict}
    assert all(
        row["arithmetic"] or row["verdict"] in ("attribution only", "not a matter of arithmetic") for row in rows
    )


def test_verdicts_equal_those_judged_by_hand_beforehand(rows):
    assert len(HAND) == 25 and sum(claim["verdict"] in SEVERE for claim in HAND.values()) >= 10
    found = {row["id"]: row for row in rows}
    assert {id: found[id]["verdict"] for id in HAND} == {id: claim["verdict"] for id, claim in HAND.items()}


def in_si(number: float, unit: str) -> float:
    """Read a number with a unit of the list made by hand, whose words in prose count as no unit."""
    try:
        return number * unit_of(unit.replace(" per ", "/"))[0]
    except ValueError:
        return number


@pytest.mark.parametrize("id", sorted(HAND))
def test_figures_and_conditions_equal_the_arithmetic_by_hand(rows, id):
    (row,) = (row for row in rows if row["id"] == id)
    hand = HAND[id]
    if "condition" in hand:
        edge = row["condition"]["least"] if row["condition"]["least"] is not None else row["condition"]["most"]
        wanted, found = in_si(hand["condition"], hand["unit"]), in_si(edge, row["condition"]["unit"])
        assert found == pytest.approx(wanted, rel=hand["within"])
    if "figure" in hand:
        found = parse(row["claimed"]).value / unit_of(row["unit"])[0] if hand.get("of") == "claim" else row["ours"]
        assert in_si(found, row["unit"]) == pytest.approx(in_si(hand["figure"], hand["unit"]), rel=hand["within"])


def value(node: ast.AST, names: dict[str, float]) -> float:
    """Evaluate arithmetic of the printed inputs by a few lines that share nothing with the product."""
    match node:
        case ast.Expression(body=body):
            return value(body, names)
        case ast.Constant(value=number):
            return number
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            a, b = value(left, names), value(right, names)
            return {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b, ast.Div: a / b if b else math.nan}[type(op)]
        case ast.Call(func=ast.Name(id=name), args=args):
            return {"min": min, "max": max, "sqrt": lambda each: each**0.5}[name](
                *(value(each, names) for each in args)
            )
    raise AssertionError(ast.dump(node))


CLOSED = {
    "roofline": "chips * bandwidth / (parameters * width)",
    "ratio": "first / second",
    "ablation": "1 / (1 - share)",
    "roi": "chips * rent * gain",
}


def formula(row, claims) -> str:
    if row["judge"] == "ladder" and not claims[row["id"]].get("formula"):
        return " * ".join(each["name"] for each in row["quantities"])
    return CLOSED.get(row["judge"]) or claims[row["id"]]["formula"]


BY_PLANS = {
    "F01": "S5_national_demand", "F03": "S2_five_capabilities", "F04": "S2_five_capabilities", "F17": "S5_token_factory",
    "F18": "S5_token_factory", "C01": "S8_compute_network", "C02": "S8_compute_network",
}  # fmt: skip


def stored(name):
    return json.loads(gzip.decompress((ROOT / f"examples/systems/plans/{name}.json.gz").read_bytes()))


def chips_at_work(plan):
    """Chips of the replicas at work over time, over those held at once: layouts multiplied, times workers, from the rows of the schedule."""
    degrees = ("tp", "pp", "dp", "cp")
    chips = {
        point["id"]: sum(
            math.prod(pool["layout"].get(each, 1) for each in degrees) * pool["workers"]
            for pool in point["pools"]
            if pool["role"] != "api"
        )
        for workload in plan["workloads"]
        for point in workload["points"]
    }
    work = sum(
        active * chips[name] * slot["seconds"] for slot in plan["schedule"] for name, active in slot["active"].items()
    )
    seconds = {slot["slot"]: slot["seconds"] for slot in plan["schedule"]}
    return work / sum(seconds.values()) / plan["totals"]["chips"]


@pytest.mark.parametrize("id", BY_PLANS)
def test_claims_that_need_a_plan_read_the_stored_one(rows, id):
    (row,) = (row for row in rows if row["id"] == id)
    plan, file = stored(BY_PLANS[id]), f"examples/systems/plans/{BY_PLANS[id]}.json.gz"
    read = [each for each in row["quantities"] if file in each["source"]]
    assert read and f"flopwatt show {file} --format json" in row["further_commands"]
    known = {
        "ratios.busy": chips_at_work(plan), "totals.chips": plan["totals"]["chips"], "totals.tokens": plan["totals"]["tokens"],
        "spec.horizon.years": plan["spec"]["horizon"]["years"] * 365 * 86400, "workloads[0].utilisation": plan["workloads"][0]["utilisation"],
        "workloads[2].points[0].goodput": plan["workloads"][2]["points"][0].get("goodput"),
    }  # fmt: skip
    for each in read:
        assert each["value"] == pytest.approx(known[each["key"]], rel=1e-9)
        least = each["value"] * (1 - plan["gap"]) if each["name"] == "held" else each["value"]
        assert (each["low"], each["high"]) == pytest.approx((least, each["value"]), rel=1e-9)


def test_the_tokens_of_the_factories_follow_from_their_demand(rows):
    """The specs ask for 2.5 and 35 trillion output tokens a day, a quarter of all: 10 and 140 trillion, which just the chips held serve."""
    found = {row["id"]: row for row in rows}
    for id, wanted in (("F17", 10e12), ("F01", 140e12)):
        assert found[id]["ours"] == pytest.approx(wanted, rel=1e-6)
        assert found[id]["condition"]["least"] == pytest.approx(stored(BY_PLANS[id])["totals"]["chips"], rel=1e-6)


def test_a_chinese_reader_is_told_in_chinese(capsys, tmp_path):
    assert main(["audit", "--only", "S6", "--language", "zh"]) == 0
    out = capsys.readouterr().out
    assert "10 条断言" in out and "与已知数字矛盾" in out and "holds" not in out
    assert main(["audit", "--claim", "F18", "--language", "zh", "--format", "md"]) == 0
    out = capsys.readouterr().out
    assert "按通常的值还差" in out and "判断方式" in out and "verdict" not in out
    page = tmp_path / "a.html"
    assert main(["audit", "--language", "zh", "--format", "html", "--output", str(page)]) == 0
    assert 'lang="zh"' in page.read_text(encoding="utf-8")
    assert main(["audit", "--language", "zh", "--only", "S6", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == audit(only=["S6"]).document


@pytest.fixture(scope="module")
def claims():
    return {
        claim["id"]: claim
        for claim in json.loads((ROOT / "catalog/data/claims.json").read_text(encoding="utf-8"))["claims"]
    }


def test_each_numeric_verdict_follows_from_the_printed_inputs(rows, claims):
    checked = 0
    for row in rows:
        if row["ours"] is None or row["judge"] == "catalog":
            continue
        text = ast.parse(formula(row, claims), mode="eval")
        names = {each["name"]: each["value"] for each in row["quantities"]}
        factor = unit_of(row["unit"])[0] if row["claimed"] is not None else 1.0
        assert value(text, names) / factor == pytest.approx(row["ours"], rel=1e-9), row["id"]
        if row["claimed"] is not None:
            claimed, condition = parse(row["claimed"]), row["condition"]
            if condition is not None and row["judge"] != "ladder":
                for edge in (condition["least"], condition["most"]):
                    if edge is not None:
                        meets_at_the_edge(row, claimed, value, text, names, edge)
            elif row["verdict"] == "holds" and condition is None and "free" not in claims[row["id"]]:
                low, high = claimed.low * 0.95, claimed.high * 1.05
                ours = row["ours"] * factor
                assert {"about": low <= ours <= high, "at least": ours >= claimed.low, "at most": ours <= claimed.high}[
                    row["sense"]
                ], row["id"]
            elif row["verdict"] == "conflict":
                assert not claimed.low * 0.95 <= row["ours"] * factor <= claimed.high * 1.05, row["id"]
        checked += 1
    assert checked >= 55


def meets_at_the_edge(row, claimed, value, text, names, edge):
    """At the edge of a condition our figure equals an end of the claimed range, or that end widened by 5 % where the claim is about it."""
    at = value(text, {**names, row["condition"]["of"]: edge * unit_of(row["condition"]["unit"])[0]})
    ends = [claimed.low, claimed.high, claimed.low * 0.95, claimed.high * 1.05]
    assert any(at == pytest.approx(end, rel=1e-6) for end in ends), (row["id"], at, ends)


def test_impossible_claims_are_beyond_the_bound_over_the_whole_range(rows, claims):
    found = [row for row in rows if row["verdict"] == "cannot be"]
    assert {row["id"] for row in found} >= {"Y05", "N09"}
    for row in found:
        claim, text = claims[row["id"]], ast.parse(formula(row, claims), mode="eval")
        names = {each["name"]: each["value"] for each in row["quantities"]}
        claimed = parse(row["claimed"])
        ends = [parse(claim["free"][end]).value for end in ("from", "to")] if "free" in claim else [None]
        for end in ends:
            at = value(text, names if end is None else {**names, claim["free"]["name"]: end})
            assert at < claimed.low if claim["bound"] == "most" else at > claimed.high, row["id"]


def test_printed_closed_forms_run_as_printed_and_give_the_figure(rows):
    closed = [row for row in rows if row["closed_form"]]
    script = "\n".join(shlex.split(row["command"])[2] for row in closed)
    assert all(row["command"].startswith("python3 -c ") for row in closed)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [float(line) for line in ran.stdout.split()] == pytest.approx([row["ours"] for row in closed], rel=1e-9)


COMMANDS = sorted(
    {
        command
        for row in audit().document
        for command in [*row["further_commands"], row["command"]]
        if command.startswith("flopwatt")
    }
)
CHEAP = ("show", "catalog", "roi", "estimate", "kv-tiers", "edge", "codesign")


def run(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    return main(shlex.split(command)[1:])


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.split()[1] in CHEAP])
def test_printed_commands_run(command, monkeypatch, capsys):
    assert run(command, monkeypatch) == 0
    assert capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("command", [each for each in COMMANDS if each.split()[1] not in CHEAP])
def test_heavy_printed_commands_run(command, monkeypatch, capsys):
    nothing_stands = "available_from=47 weeks" in command  # the command shows that there is no plan in time
    assert run(command, monkeypatch) in ((INFEASIBLE,) if nothing_stands else (OK, LIMIT))
    assert capsys.readouterr().out


def test_stored_answers_are_what_their_commands_answer(rows, monkeypatch, capsys):
    from planner.audit.inputs import value_at

    of_commands = [
        each for row in rows for each in row["quantities"] if each["command"] and not each["key"].startswith("ratios.")
    ]
    assert len(of_commands) >= 6
    answers: dict[str, object] = {}
    for each in of_commands:
        if each["command"] not in answers:
            assert run(each["command"], monkeypatch) == 0
            answers[each["command"]] = json.loads(capsys.readouterr().out)
        found = value_at(answers[each["command"]], each["key"]) * unit_of(shown_unit(each["stated"]))[0]
        assert found == pytest.approx(each["value"], rel=2e-3), each


def test_no_claim_has_code_of_its_own(claims):
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("audit", "cli/claims", "spec/claims")
        for path in (ROOT / "planner" / folder).rglob("*.py")
    )
    assert not [id for id in claims if re.search(rf"\b{id}\b", code)]


def test_a_claim_is_restated_and_its_source_is_named_by_title_and_publisher(claims):
    assert all(claim["source"]["title"] and claim["source"]["publisher"] for claim in claims.values())
    text = (ROOT / "catalog/data/claims.json").read_text(encoding="utf-8").lower()
    assert "the brief" not in text and "mission" not in text


def test_every_format_holds_every_claim(capsys, tmp_path):
    for form in ("table", "md", "json", "csv", "html"):
        assert main(["audit", "--format", form, "--output", str(tmp_path / form)]) == 0
        text = (tmp_path / form).read_text(encoding="utf-8")
        assert all(re.search(rf"\b{id}\b", text) for id in HAND), form
    assert len(json.loads((tmp_path / "json").read_text(encoding="utf-8"))) == 86
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "csv").read_text(encoding="utf-8"))))) == 86


def test_the_workbook_holds_every_claim(tmp_path):
    pytest.importorskip("xlsxwriter")
    assert main(["audit", "--format", "xlsx", "--output", str(tmp_path / "a.xlsx")]) == 0
    assert (tmp_path / "a.xlsx").read_bytes()[:2] == b"PK"


def test_only_chooses_by_system_and_an_unknown_one_is_refused_with_the_known(capsys):
    assert main(["audit", "--only", "s10", "--format", "json"]) == 0
    chosen = json.loads(capsys.readouterr().out)
    assert 0 < len(chosen) < 86 and all("S10" in row["systems"] for row in chosen)
    assert main(["audit", "--only", "S99"]) == 3
    assert "S10" in capsys.readouterr().err


def test_one_claim_prints_its_whole_derivation(capsys):
    assert main(["audit", "--claim", "N02"]) == 0
    out = capsys.readouterr().out
    for part in ("643.4e9 tokens", "OrientDeck", "6 FLOP/token/parameter", "python3 -c", "3.384e24"):
        assert part in out
    assert main(["audit", "--claim", "N2"]) == 3
