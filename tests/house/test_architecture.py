"""Check the tables of docs/architecture.md against the tree: folders, features by stage, order of imports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARKS = ("<!-- features by stage: checked by tests/house/test_architecture.py -->\n", "<!-- end -->")

STAGES = (
    "planner/spec", "planner/problem", "planner/resolve", "planner/evaluate", "planner/candidates", "planner/formulate", "solvers/model",
    "planner/interpret", "planner/limits", "planner/verify", "planner/solving", "planner/report",
)  # fmt: skip
FEATURES = {  # feature -> how the names of its files begin: the feature, or a part of it
    "lines": ("line",),
    "electricity": ("electricity",),
    "phases": ("phase",),
    "quality": ("quality", "choice"),
    "preemption": ("preemption",),
    "priority of jobs": ("priority",),
    "reinforcement": ("reinforcement",),
    "sessions": ("sessions",),
    "storage": ("storage",),
    "facility": ("facility",),
    "spread": ("spread", "failover", "zone_failure"),
    "fabrics": ("fabric", "joint_network"),
    "classes of requests": ("classes",),
    "pools by prompt length": ("length_pools",),
    "media": ("media",),
    "tiers of KV cache": ("kv_tier",),
    "routing of prefixes": ("prefix_routing",),
    "start of replicas": ("scale_up", "residency"),
    "packing": ("packing",),
    "power caps": ("power_cap",),
    "porting": ("porting",),
    "robust": ("robust", "scenario"),
    "apis": ("api",),
    "hourly": ("hourly",),
    "prices": ("prices", "price_"),
    "economics": ("economics",),
}


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_folder_of_the_packages_has_a_row():
    section = text("docs/architecture.md").partition("## Folders")[2].partition("\n## ")[0]
    named = {
        path
        for row in re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
        for path in re.findall(r"`(.*?)/`", row)
    }
    inits = [file for top in ("solvers", "planner") for file in (ROOT / top).glob("*/__init__.py")]
    folders = {str(file.parent.relative_to(ROOT)) for file in inits}
    assert named == folders | {"catalog", "models", "solvers"}


def features_by_stage() -> str:
    """Build the table of docs/architecture.md from the files that exist."""
    rows = [["feature", *(stage.removeprefix("planner/") for stage in STAGES)], ["---"] * (len(STAGES) + 1)]
    for feature, starts in FEATURES.items():
        row = [feature]
        for stage in STAGES:
            folders = {file.parent for file in (ROOT / stage).glob("*/__init__.py")}
            files = [f"{folder.name}/" for folder in folders if folder.name.startswith(starts)]
            files += [
                str(file.relative_to(ROOT / stage))
                for folder in ({ROOT / stage} | folders)
                for file in folder.glob("*.py")
                if file.name.startswith(starts) and f"{folder.name}/" not in files
            ]
            row.append(", ".join(f"`{name}`" for name in sorted(files)))
        rows.append(row)
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def test_the_table_of_features_is_that_of_the_files():
    table = text("docs/architecture.md").partition(MARKS[0])[2].partition(MARKS[1])[0].strip() + "\n"
    assert table == features_by_stage(), f"write it anew:\n{features_by_stage()}"


def test_the_order_of_imports_is_that_of_the_contract():
    section = text("docs/architecture.md").partition("## Imports run one way")[2]
    listed = section.partition("```\n")[2].partition("```")[0].splitlines()
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["planner"])
    assert [set(line.replace(".py", "").split()) for line in listed] == [
        set(layer.replace("|", " ").split()) for layer in reversed(layers)
    ]
