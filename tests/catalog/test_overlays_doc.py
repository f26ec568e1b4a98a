"""The examples of docs/overlays.md work as they are printed: a chip, a price, a slice, a tariff and two architectures of a user's own."""

import copy
import json
import re
from pathlib import Path

import pytest

import planner
from catalog import Catalog, CatalogError
from catalog.units import GIGA, KWH_J
from planner.cli.main import main
from planner.resolve.resolver import resolve

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "overlays.md").read_text(encoding="utf-8")
FILES = {
    name: json.loads(text)
    for name, text in re.findall(r"`([\w./-]+\.json)`:\n\n```json\n(.*?)```", DOCUMENT, re.DOTALL)
}
SPEC = FILES["spec.json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("overlay")
    for name, content in FILES.items():
        place, _, file = name.rpartition("/")
        if place == "my-catalog":
            (home / file).write_text(json.dumps(content))
    return home


@pytest.fixture(scope="module")
def plan(folder):
    return planner.solve(SPEC, overlays=[folder])


def facts(spec, folder):
    return resolve(planner.load_spec(spec), [folder])


def changed(**keys):
    return {**copy.deepcopy(SPEC), **keys}


def test_every_block_of_the_document_is_tried():
    assert DOCUMENT.count("```json") == len(FILES) == 5


def test_the_examples_are_planned_and_the_plan_holds(plan, folder):
    assert plan.status in ("optimal", "within_gap")
    assert [(option["site"], option["system"], option["how"]) for option in plan["fleet"]] == [
        ("cn-guizhou", "Example A1 node", "buy")
    ]
    assert planner.verify_plan(plan, overlays=[folder]) == []


def test_the_users_chip_system_and_price_are_what_is_planned_with(folder):
    problem = facts(SPEC, folder)
    system = problem.systems["Example A1 node"]
    assert (system.chips, system.hbm_bytes, system.flop_per_s["fp8"], system.family) == (8, 96 * GIGA, 800e12, "ascend")
    assert system.power_w == 5400  # the spec's word counts before the folder's 6 kW
    assert [offer.prices["cn-guizhou"] for offer in problem.offers] == [1.1e6]


def test_a_slice_has_half_the_memory_of_its_chip(folder):
    offers = [{"system": "H100 3g.40gb", "how": "reserved", "price": "21 CNY/h"}]
    system = facts(changed(offers=offers), folder).systems["H100 3g.40gb"]
    whole = Catalog.load().get("chips", "H100 SXM5 80GB")
    assert system.hbm_bytes == whole.value("driver_bytes") / 2 and system.chips == 1
    assert system.flop_per_s["fp8"] == pytest.approx(whole.value("fp8_flop_per_s") * 0.4286)


def test_the_tariff_is_paid_by_the_hour(folder):
    # Guizhou is eight hours ahead of UTC: 0-8 local is 16-24 UTC, 18-22 local is 10-14 UTC
    prices = facts(SPEC, folder).sites[0].price_per_j * KWH_J
    expected = [0.42] * 10 + [0.68] * 4 + [0.42] * 2 + [0.25] * 8
    assert prices.tolist() == pytest.approx(expected)


def test_the_tariff_counts_in_the_cost(plan, folder):
    dear = copy.deepcopy(FILES["my-catalog/tariffs.json"])
    dear["tariffs"][0]["figures"] = {
        name: text.replace("0.", "1.") for name, text in dear["tariffs"][0]["figures"].items()
    }
    spec = changed()
    spec["catalog"]["tariffs"] = [
        {
            **dear["tariffs"][0],
            "figures": {
                name: {"value": text, "note": "new contract"} for name, text in dear["tariffs"][0]["figures"].items()
            },
        }
    ]
    assert planner.solve(spec, overlays=[folder])["costs"]["energy"] > 2 * plan["costs"]["energy"]


def test_both_ways_of_giving_a_config_are_read(folder):
    dense, experts = (workload.architecture for workload in facts(SPEC, folder).serving)
    assert (dense.layers, dense.kv_heads, dense.head_dim, dense.tied) == (36, 8, 128, False)
    assert (experts.experts, experts.topk, experts.expert_ffn, experts.dense_layers) == (64, 8, 768, 0)


def test_what_the_user_states_is_listed_with_the_plan(plan):
    listed = {item["path"]: item["reason"] for item in plan["assumptions"]}
    assert listed["chips/Example A1/fp8_flop_per_s"] == "data sheet"
    assert listed["systems/Example A1 node/power_w"] == "capped for this site"
    assert "num_hidden_layers" in listed["architectures/house-9b/layers"]
    assert "hidden size / attention heads" in listed["architectures/house-9b/head_dim"]
    assert "num_experts" in listed["architectures/house-moe/experts"]
    assert any(path.startswith("tariffs/our contract/price_peak") for path in listed)
    sources = {item["path"]: item["source"] for item in plan["provenance"]}
    assert "hardware.json" in json.dumps(sources["chips/Example A1/hbm_bytes"]) or "quotation" in json.dumps(sources)


def test_the_folder_alone_is_a_catalog(folder):
    catalog = Catalog.load([folder])
    assert (
        catalog.source(catalog.get("offers", "Example A1 node, quoted").figure("price").source[0]).title
        == "quotation of our reseller"
    )
    assert catalog.get("architectures", "house-9b").words("attention") == "gqa"


def test_the_command_takes_the_folder(folder, tmp_path, capsys):
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    assert main(["check", str(tmp_path / "spec.json"), "--catalog", str(folder)]) == 0
    assert main(["catalog", "show", "house-9b", "--catalog", str(folder)]) == 0
    assert "num_key_value_heads" in capsys.readouterr().out


def refused(spec, folder):
    with pytest.raises(planner.SpecError) as error:
        planner.check_spec(spec, overlays=[folder])
    return {problem.path: problem.message for problem in error.value.problems}


def test_without_the_folder_its_names_are_unknown(tmp_path):
    architectures = {"architectures": SPEC["catalog"]["architectures"]}
    found = refused(changed(catalog=architectures), tmp_path)
    assert set(found) == {"workloads[0].architecture", "sites[0].tariff", "sites[0].systems[0]"}


def test_a_path_in_place_of_a_config_is_refused(folder):
    spec = changed(catalog={"architectures": [{"name": "house-moe", "config": str(folder / "house-9b.config.json")}]})
    assert "as an object, got str" in refused(spec, folder)["catalog.architectures[0].config"]


def test_an_impossible_shape_is_a_problem_of_the_workload(folder):
    for figure, value in (("topk", "300"), ("heads", "0"), ("window_layers", "99")):
        spec = changed(overrides={f"architectures/house-moe/{figure}": {"value": value, "note": "try"}})
        assert any(path.startswith(("workloads[1].architecture", "overrides")) for path in refused(spec, folder)), (
            figure
        )


def test_a_tariff_with_a_gap_or_a_wrong_row_is_refused(folder):
    tariff = copy.deepcopy(FILES["my-catalog/tariffs.json"]["tariffs"][0])
    tariff["figures"] = {name: {"value": text, "note": "contract"} for name, text in tariff["figures"].items()}
    tariff["text"]["bands"].pop()
    found = refused(changed(catalog={**SPEC["catalog"], "tariffs": [tariff]}), folder)
    assert "has no price for every hour of the year" in found["sites[0].tariff"]
    tariff["text"]["bands"][0][3] = 25
    tariff["text"]["bands"][1][5] = "price_flatt"
    found = refused(changed(catalog={**SPEC["catalog"], "tariffs": [tariff]}), folder)
    assert "expected hours from 0 to 24" in found["catalog.tariffs[0].text.bands[0]"]
    assert 'close names: "price_flat"' in found["catalog.tariffs[0].text.bands[1]"]
    tariff["text"].pop("bands")
    assert refused(
        changed(
            catalog={**SPEC["catalog"], "tariffs": [{**tariff, "name": "other"}]},
            sites=[{**SPEC["sites"][0], "tariff": "other"}],
        ),
        folder,
    )


def test_bands_in_two_currencies_and_a_region_without_a_clock_are_refused():
    rows = [[list(range(1, 13)), "all", 0, 12, "a", "price_a"], [list(range(1, 13)), "all", 12, 24, "b", "price_b"]]
    prices = {"price_a": {"value": "0.5 CNY/kWh", "note": "x"}, "price_b": {"value": "0.1 USD/kWh", "note": "x"}}
    blocks = {
        "tariffs": [{"name": "two", "text": {"bands": rows}, "figures": prices}],
        "regions": [{"name": "r"}, {"name": "s", "text": {"timezone": "Mars"}}],
    }
    with pytest.raises(CatalogError) as error:
        Catalog.load(blocks=[blocks])
    found = dict(error.value.problems)
    assert "one unit and currency" in found["catalog.tariffs[0].text.bands"]
    assert (
        found["catalog.regions[0].text.timezone"] == "expected IANA time zone"
        and "Mars" in found["catalog.regions[1].text.timezone"]
    )
