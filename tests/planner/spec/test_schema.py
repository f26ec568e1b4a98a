"""`flopwatt schema`: the JSON Schema of a spec is whole, shipped, and never stricter than the parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from catalog import units
from planner.cli import main as cli
from planner.spec.base import Block
from planner.spec.document import read_document
from planner.spec.model import parse_spec
from planner.spec.schema import schema_text, spec_schema

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "docs" / "spec.schema.json"
EXAMPLES = sorted((ROOT / "examples").glob("*.json"))
SCHEMA = spec_schema()


def nodes(node: Any = SCHEMA, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object inside the schema, with its path."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from nodes(value, f"{path}/{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from nodes(value, f"{path}/{i}")


def quantities() -> list[tuple[str, dict[str, Any]]]:
    return [(path, node) for path, node in nodes() if "x-unit" in node]


def leaves(block: type[Block] = Block) -> list[type[Block]]:
    """Blocks of a spec that no other one is made from."""
    return [
        leaf
        for part in block.__subclasses__()
        if part.__module__
        not in (
            "planner.spec.claims.claim",
            "planner.spec.stack.case",
            "planner.spec.stack.codesign",
            "planner.spec.stack.edge",
            "planner.spec.stack.kv_tiers_case",
            "planner.spec.stack.priced",
        )
        for leaf in (leaves(part) or [part])
    ]


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """A schema that can stand alone: references point into the definitions."""
    return {**node, "$defs": SCHEMA["$defs"]}


def test_it_is_a_json_schema():
    Draft202012Validator.check_schema(SCHEMA)


def test_the_shipped_copy_is_what_the_command_prints(capsys):
    assert cli.main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert printed == schema_text()
    assert SHIPPED.read_text(encoding="utf-8") == printed, (
        "write it anew: flopwatt schema --output docs/spec.schema.json"
    )


def test_the_page_of_keys_is_what_the_command_prints_and_has_every_key(capsys):
    assert cli.main(["schema", "--format", "md"]) == 0
    printed = capsys.readouterr().out
    assert (ROOT / "docs" / "spec.md").read_text(encoding="utf-8") == printed, (
        "write it anew: flopwatt schema --format md --output docs/spec.md"
    )
    blocks = [SCHEMA, *SCHEMA["$defs"].values()]
    for key in {key for block in blocks for key in block.get("properties", {})} - {"$schema"}:
        assert f"| `{key}`" in printed, key
    for name in SCHEMA["$defs"]:
        assert f"\n## {name}\n" in printed and f"(#{name.lower()})" in printed, name


def test_there_are_examples():
    assert "mixed_fleet.json" in {path.name for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid(path):
    errors = [
        f"{error.json_path}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(read_document(path.read_bytes()))
    ]
    assert not errors


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("sitse",), []),
        (("name",), ""),
        (("workloads",), []),
        (("sites", 0, "power"), 20),
        (("sites", 0, "topologies"), ["token ring"]),
        (("workloads", 0, "kind"), "cooking"),
        (("workloads", 0, "lengths", "input"), "500"),
        (("workloads", 0, "slo"), {"ttft": {"p96": "1 s"}}),
        (("horizon",), {"years": 1.5}),
        (("currency",), "dollars"),
        (("catalog",), {"chip": []}),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_it_refuses_what_an_editor_can_see_to_be_wrong(path, value):
    document = read_document((ROOT / "examples" / "mixed_fleet.json").read_bytes())
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert list(Draft202012Validator(SCHEMA).iter_errors(document))


def test_every_block_and_every_field_has_a_title_and_every_block_a_description():
    assert SCHEMA["title"] == "flopwatt spec"
    blocks = {"PlanSpec": SCHEMA, **SCHEMA["$defs"]}
    assert set(blocks) == {block.__name__ for block in leaves()}
    for name, block in blocks.items():
        assert block["description"], name
        for field, node in block["properties"].items():
            assert node["title"].lower().replace(" ", "_") == field.lower(), f"{name}.{field}"


def test_every_field_that_its_name_does_not_explain_is_described():
    plain = {
        "name", "note", "kind", "how", "demand", "lengths", "slo", "limits", "objective", "horizon", "solver", "workloads", "sites",
        "schema_version", "architecture", "backend", "seed", "mean", "p50", "p90", "p95", "p99",
    }  # fmt: skip
    for name, block in {"PlanSpec": SCHEMA, **SCHEMA["$defs"]}.items():
        silent = {
            field
            for field, node in block["properties"].items()
            if not any("description" in part for _, part in nodes(node))
        }
        assert silent <= plain, name


def test_quantities_state_unit_range_and_an_example_that_the_parser_reads():
    found = quantities()
    assert {node["x-unit"] for _, node in found} >= {
        "s",
        "W",
        "token",
        "token/s",
        "request/s",
        "kg",
        "currency",
        "currency/s",
        "currency/J",
    }
    for path, node in found:
        assert node["examples"], path
        if not node["x-unit"].startswith("currency"):
            assert node["x-range"].startswith("from "), path
            assert units.parse(node["examples"][0], node["x-unit"]) > 0, path


def test_every_default_is_valid_and_means_what_the_parser_takes():
    checked = 0
    for name, block in SCHEMA["$defs"].items():
        for field, node in block["properties"].items():
            if "default" not in node:
                continue
            Draft202012Validator(resolved(node)).validate(node["default"])
            taken = {cls.__name__: cls for cls in leaves()}[name].model_fields[field].default
            unit = node.get("x-unit")
            read = units.parse_money if unit and unit.startswith("currency") else units.parse
            assert (read(node["default"], unit.removeprefix("currency/")) if unit else node["default"]) == (
                str(taken) if field == "start" and name == "Horizon" else taken
            ), f"{name}.{field}"
            checked += 1
    assert checked >= 15


def test_what_the_parser_takes_in_odd_forms_the_schema_takes_too():
    """Whole numbers as 3.0, numbers as texts where a unit may follow, null for what is left out."""
    document = read_document((ROOT / "examples" / "mixed_fleet.json").read_bytes())
    document["horizon"] = {"years": 1.0, "discount_rate": "7 %"}
    document["workloads"][0]["demand"] = {"requests_per_s": "40 requests/s", "output_tokens": None}
    document["workloads"][2]["batch_tokens"] = 4e6
    document["offers"][0] |= {"supply": 6e1, "regions": None}
    document |= {"$schema": "spec.schema.json", "id": 7, "limits": {"budget": "1B EUR", "capital": None}}
    parse_spec(document)
    Draft202012Validator(SCHEMA).validate(document)
