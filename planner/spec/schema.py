"""The JSON Schemas of a spec and of a case, made from their types: what an editor needs to help with writing one."""

from __future__ import annotations

import json
from typing import Any

from catalog import units
from planner.spec.model import PlanSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema() -> dict[str, Any]:
    """JSON Schema of a spec. Quantities are texts whose SI unit stands under `x-unit`.

    It accepts every spec that the parser accepts. Rules across fields (shares that add up, a deadline after the start)
    and names of the catalog are beyond it; `flopwatt check` knows them.
    """
    schema = _as_written(PlanSpec.model_json_schema(by_alias=True))
    return {"$schema": DIALECT, **schema, "title": "flopwatt spec"}


def case_schema() -> dict[str, Any]:
    """JSON Schema of a case, which `flopwatt estimate` and `flopwatt layouts` answer."""
    from planner.spec.case import WORDS, Case

    schema = _as_written(Case.model_json_schema(by_alias=True))
    for name, words in WORDS.items():
        schema["properties"][name]["anyOf"] += [{"const": word} for word in words]
    return {"$schema": DIALECT, **schema, "title": "flopwatt case"}


def schema_text(of: str = "spec", form: str = "json") -> str:
    """The schema of a "spec" or of a "case" as it is printed; "md": its keys as a page."""
    schema = {"spec": spec_schema, "case": case_schema}[of]()
    if form == "md":
        from planner.spec.schema_page import schema_page

        return schema_page(schema, of)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _as_written(node: Any) -> Any:
    """Titles from the names of fields; defaults as a user would write them, and none for a block, whose fields have their own."""
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _as_written(value) for key, value in node.items()}
    default, unit = node.get("default"), node.get("x-unit")
    if "$ref" in node or default is None:
        node.pop("default", None)
    elif unit and node["type"] == "string":
        node["default"] = (
            units.show(default, unit)
            if isinstance(default, int | float)
            else f"{default[0]:g} {default[1]}/{unit.partition('/')[2]}"
        )
    for name, field in node.get("properties", {}).items():
        field["title"] = name[0].upper() + name[1:].replace("_", " ")
    return node
