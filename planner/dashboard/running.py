"""Gather what can be profiled: points of the plan, workloads of the spec and example cases; and change a case by the visitor's choices. No Streamlit here."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog.errors import MissingFigure, UnknownName
from catalog.lookup import Catalog, shipped_catalog
from catalog.units import parse
from models.formats import WEIGHT_FORMATS
from planner.dashboard.file_names import file_name
from planner.errors import Issue, SpecError
from planner.estimate.profile.cases import KINDS, points_at_work, workloads_of
from planner.messages import Message
from planner.packed import EXAMPLES
from planner.plan import Plan
from planner.resolve.ledger import Ledger
from planner.resolve.names import catalog_of
from planner.resolve.systems import system_facts
from planner.spec.document import read_document
from planner.spec.load.lengths import Lengths
from planner.spec.model import parse_spec
from planner.spec.old_keys import OF_CASES, with_new_keys

MOST_CHIPS = 131_072
MOST_SYSTEMS = 64  # on which a workload is tried, of one kind
POINT, WORKLOAD, CASE, OWN = "point", "workload", "case", "own"
MAX, RATE, CLIENTS = "max", "requests_per_s", "concurrency"
LOADS = (MAX, RATE, CLIENTS)
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """A case on offer: where it comes from, its name, and the round trip to its users [s]."""

    origin: str
    name: str
    case: Document
    away_s: float = 0.0

    @property
    def key(self) -> str:
        """Return a name that differs between choices."""
        return f"{self.origin}/{self.name}"


def catalog_for(document: Mapping[str, Any]) -> Catalog:
    """Load the catalog with the records and overrides of a spec. Raises SpecError."""
    if not (document.get("catalog") or document.get("overrides")):
        return shipped_catalog()
    return catalog_of(parse_spec(document), (), {})


def choices(document: Mapping[str, Any], plan: Plan | None, catalog: Catalog) -> list[Choice]:
    """List the cases on offer, the points of the plan first."""
    found = []
    if plan is not None and plan.has_answer:
        for at in points_at_work(plan, catalog):
            systems = f"{at.workload} · {at.site} · {at.case['system']} · {at.id.rpartition('/')[2]}"
            found.append(Choice(POINT, systems, at.case, at.away_s))
    found += [Choice(WORKLOAD, name, case) for name, case in workloads_of(document, catalog)]
    return found + [Choice(CASE, name, case) for name, case in example_cases().items()]


def larger(case: Mapping[str, Any], document: Mapping[str, Any], catalog: Catalog) -> Iterator[Document]:
    """Yield the case of a workload on more and more systems of each kind that its spec names, up to `MOST_SYSTEMS` of a kind."""
    offers = [offer for offer in document.get("offers") or () if isinstance(offer, Mapping)]
    named = [str(case["system"]), *(str(offer.get("system")) for offer in offers)]
    for name in dict.fromkeys(each for each in named if catalog.has("systems", each)):
        chips = int(catalog.get("systems", name).figure("chips").number)
        count = 1
        while count <= MOST_SYSTEMS and count * chips <= MOST_CHIPS:
            yield {**case, "system": name, "chips": count * chips}
            count *= 2


@cache
def example_cases() -> dict[str, Document]:
    """Read the example cases of serving and training that lie in a checkout; none beside an installed package."""
    found = {}
    if EXAMPLES.is_dir():
        for path in sorted((EXAMPLES / "cases").glob("*.json")):
            case = read_document(path.read_bytes())
            if case["workload"]["kind"] in KINDS:
                found[path.stem] = case
    return found


def read_case(name: str, content: bytes) -> Choice:
    """Read a case of the visitor's. Raises SpecError for a document that is none."""
    document = read_document(content)
    workload = document.get("workload")
    if not isinstance(workload, dict) or workload.get("kind") not in KINDS:
        raise SpecError([Issue("workload.kind", Message.of("dashboard.case_expected").text())])
    return Choice(OWN, file_name(name), document)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a visitor may change of a case."""

    system: str
    chips: int
    precision: str
    lengths: tuple[int, int]
    """Tokens of prompt and answer; of a sequence and of a step, of a training case."""
    load: str = MAX
    amount: float = 0.0

    @classmethod
    def of(cls, case: Mapping[str, Any]) -> Settings:
        """Read the settings of a case, with the defaults of a spec."""
        workload = case["workload"]
        precision = workload.get("precision") or (["bf16"] if is_training(case) else ["fp8"])
        if is_training(case):
            lengths = (
                int(workload.get("sequence_tokens", 4096)),
                int(parse(workload.get("batch_tokens", 4_194_304), "token")),
            )
        else:
            stated = Lengths.model_validate(workload["lengths"])
            lengths = stated.input, stated.output
        load = case.get("load")
        kind = next((name for name in (RATE, CLIENTS) if isinstance(load, Mapping) and name in load), MAX)
        amount = float(load[kind]) if isinstance(load, Mapping) and kind != MAX else 0.0
        return cls(str(case["system"]), int(case["chips"]), str(precision[0]), lengths, kind, amount)


def is_training(case: Mapping[str, Any]) -> bool:
    """Tell whether a case is of training."""
    return bool(case["workload"]["kind"] == "training")


def changed(case: Mapping[str, Any], now: Settings) -> Document:
    """Change a case; on another system, number of chips or precision it keeps no layout, since another is best there."""
    before, result = Settings.of(case), copy.deepcopy(dict(with_new_keys(case, OF_CASES)[0]))
    if now == before:
        return result
    workload = result["workload"]
    if (now.system, now.chips, now.precision) != (before.system, before.chips, before.precision):
        for name in ("layout", "pools"):
            result.pop(name, None)
        workload.pop("kv_precision", None)
        result["system"], result["chips"] = now.system, now.chips
        if now.system != before.system:
            result["topology"] = "provider"
    workload["precision"] = [now.precision]
    if is_training(case):
        workload["sequence_tokens"], workload["batch_tokens"] = now.lengths[0], str(now.lengths[1])
        return result
    if now.lengths != before.lengths:  # other means are stated without quantiles, which give the old ones
        spread = {key: value for key, value in workload["lengths"].items() if key in ("input_cv", "output_cv")}
        workload["lengths"] = {"input": now.lengths[0], "output": now.lengths[1], **spread}
    amount: Any = int(now.amount) if now.load == CLIENTS else now.amount
    result["load"] = MAX if now.load == MAX else {now.load: amount}
    return result


def precisions(catalog: Catalog, system: str, trains: bool = False) -> list[str]:
    """List the formats of weights that a system serves, or in which it `trains`; none for one that the catalog does not hold in full."""
    try:
        found = system_facts(catalog.get("systems", system), Ledger(catalog))
        if trains:
            return list(found.recipes)
        return [name for name in WEIGHT_FORMATS if found.serves(name)]
    except (UnknownName, MissingFigure, ValueError):
        return []


def digest_of(case: Mapping[str, Any], away_s: float) -> str:
    """Write a case as a key."""
    return json.dumps([case, away_s], sort_keys=True)
