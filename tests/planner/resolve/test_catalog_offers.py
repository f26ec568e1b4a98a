"""A spec without offers takes the catalog's: what cannot be planned is left out and counted, what the spec names is an error."""

from __future__ import annotations

import pytest

import planner
from catalog.lookup import Catalog, shipped_catalog
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.facts.left_out import counted
from planner.resolve.resolver import resolve_document

LACKING = "TPU v5e pod"  # sold, and its chip has no published power
UNPRICED = "Inspur NF5688M7"


def chat(**changes):
    """Write the README's spec of a chat without offers."""
    workload = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 20},
        "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "50 ms"}}, "precision": ["fp8"],
    }  # fmt: skip
    return {"name": "chat", "workloads": [workload], "sites": [{"region": "us-virginia"}], **changes}


@pytest.fixture
def selling(monkeypatch):
    """`selling(names)`: let the catalog have offers of these systems only."""
    records = Catalog.records

    def only(*names):
        sold = lambda self, kind: tuple(
            record for record in records(self, kind) if kind != "offers" or record.words("system") in names
        )
        monkeypatch.setattr(Catalog, "records", sold)

    return only


def problems_of(document):
    with pytest.raises(SpecError) as refused:
        resolve_document(document)
    return {problem.path: problem.message for problem in refused.value.problems}


def test_systems_without_a_figure_or_a_price_are_noted_and_counted():
    problem = resolve_document(chat())
    offered = {offer.system for offer in problem.offers}
    noted = {note.message.arguments["system"] for note in problem.notes if note.message.code == "offers.no_figure"}
    assert LACKING in noted and not noted & offered
    (unpriced,) = (note for note in problem.notes if note.message.code == "offers.no_price")
    assert unpriced.message.arguments["count"] == len(shipped_catalog().names("systems")) - len(offered | noted)
    assert sum(counted(problem.notes).values()) == len(noted) + unpriced.message.arguments["count"]


def test_nothing_of_what_is_left_out_is_booked():
    problem = resolve_document(chat())
    booked = [row.path for row in (*problem.citations, *problem.assumptions)]
    assert not [path for path in booked if LACKING in path or "TPU v5e" in path]
    assert [path for path in booked if "DGX H100" in path]


def test_a_system_with_its_figure_stated_is_offered():
    stated = {"chips/TPU v5e/tdp_w": {"value": "200 W", "note": "ours"}}
    assert LACKING in {offer.system for offer in resolve_document(chat(overrides=stated)).offers}


@pytest.mark.parametrize("stated", [{"sites": [{"region": "us-virginia", "systems": [LACKING, "DGX H100"]}]},
                                    {"overrides": {"chips/TPU v5e/hbm_bytes": {"value": "17 GB", "note": "ours"}}}])  # fmt: skip
def test_a_system_that_the_spec_names_stays_an_error(stated):
    assert "tdp_w" in problems_of(chat(**stated))[f"offers/{LACKING}/on_demand.system"]


def test_a_named_system_without_a_price_is_an_error_at_its_place():
    sites = [{"region": "us-virginia", "systems": ["DGX H100", UNPRICED]}]
    found = problems_of(chat(sites=sites))
    assert list(found) == ["sites[0].systems[1]"]
    assert UNPRICED in found["sites[0].systems[1]"] and "offers" in found["sites[0].systems[1]"]
    offers = [{"system": name, "how": "buy", "price": "400000 USD"} for name in ("DGX H100", UNPRICED)]
    assert len(resolve_document(chat(sites=sites, offers=offers)).offers) == 2


def test_an_owned_system_needs_no_price():
    sites = [{"region": "us-virginia", "systems": ["DGX H100", UNPRICED]}]
    owned = [{"system": UNPRICED, "region": "us-virginia", "count": 1, "age": "1 year", "price": "500000 USD"}]
    assert UNPRICED in {offer.system for offer in resolve_document(chat(sites=sites, owned=owned)).offers}


def test_where_all_is_left_out_the_error_lists_the_reasons(selling):
    selling(LACKING)
    (message,) = problems_of(chat()).values()
    assert "chips/TPU v5e/tdp_w" in message and "no price" in message


def test_a_hall_leaves_out_what_has_no_known_racks():
    """A system that is larger than a rack needs its number of racks where the hall counts them."""
    hall = [{"region": "us-virginia", "rack_positions": 40}]
    free, limited = (resolve_document(chat(sites=sites)) for sites in ([{"region": "us-virginia"}], hall))
    gone = {offer.path for offer in free.offers} - {offer.path for offer in limited.offers}
    noted = {note.path for note in limited.notes} - {note.path for note in free.notes}
    assert gone == noted
    assert all(limited.systems[offer.system].rack for offer in limited.offers if offer.how == "buy")


def test_the_candidates_count_what_is_left_out(selling):
    selling(LACKING, "DGX H100")
    problem = resolve_document(chat())
    dropped = find_candidates(problem).dropped["(systems)"]
    assert dropped == build_fleet_options(problem)[1] + counted(problem.notes)
    assert len(counted(problem.notes)) == 2


def test_the_spec_of_the_readme_is_planned_without_offers():
    plan = planner.solve(chat())
    assert plan.status == "optimal" and plan["notes"]
    assert not planner.verify_plan(plan)
