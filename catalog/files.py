"""Reading the files of the catalog: its own data, and the overlays of a user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import Wrong
from catalog.figures import Origin
from catalog.reader import Place
from catalog.schemas import SCHEMAS

DATA = Path(__file__).parent / "data"
CONFIG = ".config.json"  # ending of a Hugging Face config.json that names an architecture
OTHER_DOCUMENTS = {"workloads", "workload", "sites"}
"""Keys of a spec, a plan or a case, which may lie beside the overlays in a folder."""

Problems = list[tuple[str, str]]  # (path, message)
Blocks = list[tuple[Place, Mapping[str, Any]]]


def data_path(kind: str) -> Path:
    """Give the path of the shipped data of one kind."""
    return DATA / f"{kind}.json"


def read_data(kind: str) -> Mapping[str, Any]:
    """Read the shipped data of one kind."""
    content: Mapping[str, Any] = json.loads(data_path(kind).read_text(encoding="utf-8"))
    return content


def read_overlays(overlays: Sequence[Path], problems: Problems) -> Blocks:
    """Read overlay files and folders; a file `<name>.config.json` becomes the architecture of that name. Specs, plans, cases and results of benchmarks in a folder are left out."""
    placed: list[tuple[Place, Mapping[str, Any]]] = []
    named = set(map(Path, overlays))
    for path in _overlay_files(overlays, problems):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            problems.append((str(path), Wrong("catalog.not_json", error=str(error))))
            continue
        origin = Origin((f"overlay:{path.name}",), "C", "override")
        if path.name.endswith(CONFIG):
            entry = {"name": path.name.removesuffix(CONFIG), "config": content}
            placed.append((Place(f"{path}: ", origin, whole=True), {"architectures": [entry]}))
        elif _is_other(content) and (path not in named or OTHER_DOCUMENTS & content.keys()):
            if path in named:  # in a folder it lies beside the overlays
                problems.append((str(path), Wrong("catalog.no_overlay")))
        elif isinstance(content, Mapping) and "model_type" in content:
            problems.append((str(path), Wrong("catalog.config_as_overlay", end=CONFIG)))
        else:
            placed.append((Place(f"{path}: ", origin), content))
    return placed


def _is_other(content: object) -> bool:
    """Tell a spec, plan, case, or result of a benchmark from an overlay: by its keys, or as none of its values could hold records."""
    if not isinstance(content, Mapping) or "model_type" in content:
        return False
    if OTHER_DOCUMENTS & content.keys():
        return True
    holds = (
        (isinstance(value, list) and (not value or isinstance(value[0], Mapping))) or isinstance(value, Mapping)
        for value in content.values()
    )
    return not any(holds) and not {*SCHEMAS, "sources"} & content.keys()


def _overlay_files(overlays: Iterable[Path], problems: Problems) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, overlays):
        if path.is_dir():
            files += sorted(path.glob("*.json"))
        elif path.is_file():
            files.append(path)
        else:
            problems.append((str(path), Wrong("catalog.no_such_file")))
    return files
