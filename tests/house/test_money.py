"""A coefficient of money stands in `formulate`, `money` or `verify`: elsewhere nothing multiplies by a price."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "planner"
HOMES = ("formulate", "money", "verify")
FIGURES = ("resolve", "problem", "spec")  # make the prices themselves
PRICES = {
    "price", "price_per_j", "price_per_byte", "unit_price_per_s", "fixed_cost_per_s", "hall_per_s", "hall_per_w_s", "rent_per_s", "renting_per_s",
    "fabric_capital", "facility_capital", "staff_per_year", "software_per_year", "charges", "owed_s", "owed_worth_s", "worth",
    "worth_per_j", "worth_per_w", "capital_per_j", "capital_per_w", "demand_charge", "edge_cost", "input_price", "output_price",
    "cost_per_w", "carbon_per_w", "idle_cost_per_w", "embodied_kg", "carbon_kg_per_j",
}  # fmt: skip
EXEMPT = {
    "candidates/fleet_options.py": "figures of one option: the rent of its hall, and its share of a network and a building",
    "candidates/reinforcement.py": "weighs the price of the systems of a point by their number, to rank points before there is a program",
    "design/characterise/value.py": "one case without a plan",
    "interpret/load/kv_tiers.py": "how much of a system's price its tiers of KV cache are",
    "interpret/owned.py": "proceeds of what is sold, which is no cost of the plan",
    "studies/replan/held.py": "writes prices of a plan in the units of a spec",
    "studies/replan/rebased.py": "what was paid for systems, to take from a ceiling on capital",
    "studies/sensitivity_factors.py": "makes the prices of a variant",
}


def products(tree: ast.AST) -> set[str]:
    """Return the prices that a file multiplies by."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Mult, ast.MatMult)):
            found |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)} & PRICES
    return found


def found_outside() -> dict[str, set[str]]:
    result = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.split("/")[0] not in HOMES + FIGURES and (prices := products(ast.parse(path.read_text("utf-8")))):
            result[name] = prices
    return result


def test_no_coefficient_of_money_stands_outside_its_home():
    found = found_outside()
    assert {name: prices for name, prices in found.items() if name not in EXEMPT} == {}
    assert set(EXEMPT) <= set(found), "remove exemptions that are no longer needed"


def test_a_coefficient_is_seen():
    assert products(ast.parse("amount = count * option.staff_per_year")) == {"staff_per_year"}
    assert products(ast.parse("rate @ (site.price_per_j[hour] * seconds)")) == {"price_per_j"}
    assert products(ast.parse("amount += site.price_per_j")) == set()


def test_verify_adds_up_by_its_own_code():
    for path in sorted((ROOT / "verify").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        named = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not [name for name in named if name.startswith("planner.money")], path
