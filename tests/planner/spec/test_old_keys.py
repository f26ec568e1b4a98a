"""Keys under older names: they mean the same, a note says so, and paths of either name reach them."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.document import assign, at, edited
from planner.spec.model import parse_spec
from planner.spec.old_keys import with_new_keys
from planner.verify.plan import verify_plan

OWNED = {"system": "DGX H100", "region": "us-virginia", "count": 1, "age": "1 year", "price": "300000 USD"}


def today(tiny) -> dict:
    site = {"region": "us-virginia", "systems": ["DGX H100"], "fabric": "RoCE v2 400G", "topologies": ["rail-only"]}
    return tiny(sites=[site], owned=[{**OWNED, "topology": "rail-only"}], robust={"scenarios": 60})


def earlier(tiny) -> dict:
    site = {"region": "us-virginia", "systems": ["DGX H100"], "network": "RoCE v2 400G", "fabrics": ["rail-only"]}
    return tiny(sites=[site], owned=[{**OWNED, "network": "rail-only"}], robust={"worlds": 60})


OLD_PATHS = ["owned[0].network", "robust.worlds", "sites[0].fabrics", "sites[0].network"]


def test_they_mean_what_they_meant_and_each_is_noted(tiny) -> None:
    old, new = resolve_document(earlier(tiny)), resolve_document(today(tiny))
    assert old.spec.model_dump() == new.spec.model_dump() and repr(old.sites) == repr(new.sites)
    assert repr(old.offers) == repr(new.offers)
    assert {fact.path: fact.message.code for fact in old.notes} == dict.fromkeys(OLD_PATHS, "spec.old_key") | {
        fact.path: fact.message.code for fact in new.notes
    }
    said = {fact.path: fact.message.text() for fact in old.notes}
    assert '"network"' in said["sites[0].network"] and '"fabric"' in said["sites[0].network"]


def test_documents_in_the_keys_of_today_are_not_copied(tiny) -> None:
    document = today(tiny)
    assert with_new_keys(document) == (document, ()) and not resolve_document(document).spec.renamed


def test_the_document_of_the_user_stays_as_it_is(tiny) -> None:
    document = earlier(tiny)
    before = copy.deepcopy(document)
    resolve_document(document)
    assert document == before


@pytest.mark.parametrize("key", ["fabrics", "topologies"])
def test_paths_of_either_name_reach_the_key_that_is_there(tiny, key: str) -> None:
    path = f"sites[0].{key}"
    for document in (earlier(tiny), today(tiny)):
        assert at(document, path) == ["rail-only"]
        other = edited(document, ((path, ["torus"]),))
        assert parse_spec(other).sites[0].topologies == ["torus"]
        assign(document, f'{path}=["torus"]')
        assert document == other


@pytest.mark.parametrize(
    "change, place",
    [
        ({"network": "no such fabric"}, "sites[0].network"),
        ({"fabrics": ["token ring"]}, "sites[0].fabrics[0]"),
        ({"fabrics": ["rail-only"], "topologies": ["torus"]}, "sites[0].fabrics"),
    ],
)
def test_errors_name_the_key_that_was_written(tiny, change: dict, place: str) -> None:
    document = tiny()
    document["sites"] = [{"region": "us-virginia", "systems": ["DGX H100"], **change}]
    with pytest.raises(SpecError) as error:
        resolve_document(document)
    assert place in [problem.path for problem in error.value.problems]
    document["workloads"][0]["demand"] = "much"  # and beside an error of form
    with pytest.raises(SpecError) as error:
        resolve_document(document)
    assert place in [problem.path for problem in error.value.problems]


def paths(plan: planner.Plan) -> list[str]:
    return [note["path"] for note in plan["notes"] if note["code"] == "spec.old_key"]


def test_a_plan_of_them_holds_and_says_so(tiny) -> None:
    document = tiny()
    document["sites"] = [{**document["sites"][0], "fabrics": ["rail-only"]}]
    plan = planner.solve(document, threads=1)
    assert paths(plan) == ["sites[0].fabrics"] and verify_plan(plan) == []
    document["sites"][0]["topologies"] = document["sites"][0].pop("fabrics")
    same = planner.solve(document, threads=1)
    assert same["fleet"] == plan["fleet"] and same["costs"] == plan["costs"] and paths(same) == []
