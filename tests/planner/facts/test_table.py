"""What cannot be right is refused, what is hardly right is noted: one row a fault, with its place, its figure and a source.

The figures are derived beside each row. What is plausible stays without a note: `test_plausible`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner.messages
from planner.messages import texts
from tests.planner.facts.base import CHAT, LEARNER, RUN, noted, own, spec

CONTEXT = 40_960  # context of Qwen3-32B and Qwen3-8B (config.json)
H100 = {"system": "DGX H100", "how": "on_demand"}
MARKET = "1.99 USD/chip/h to 6.88 USD/chip/h"  # price of a DGX H100 on demand: 15.92 to 55.04 USD/h over 8 chips
BOUGHT = "37.5k USD/chip to 43.75k USD/chip"  # 300,000 to 350,000 USD over 8 chips
TENANTS = [{"name": "gold", "share": 0.5}, {"name": "g\u043eld", "share": 0.5}]  # the second with a Cyrillic o
ENCODER = {"parameters": 6e8, "layers": 32, "hidden": 1280, "input_tokens": 1024, "output_tokens": 256}
OWNED = {"system": "DGX A100 80GB", "region": "us-virginia", "count": 4, "age": "3 years"}
OWN_SYSTEM = [{"system": "own system", "how": "buy", "price": "300000 USD"}]
PPA = {"name": "sun", "capacity": "5 MW", "price": "0.05 USD/kWh", "profile": "solar"}
BATTERY = {"energy": "4 MWh", "power": "1 MW", "energy_price": "200 USD/kWh"}
PARTS = {"dies": "3000 USD", "hbm_price": "11 USD/GB", "server": "40000 USD"}


def priced(price: str, how: str = "on_demand", **other: Any) -> dict[str, Any]:
    return spec(offers=[{"system": "DGX H100", "how": how, "price": price, **other}])


def chat(**keys: Any) -> dict[str, Any]:
    return spec(CHAT | keys)


def at_site(**keys: Any) -> dict[str, Any]:
    return spec(sites=[{"region": "us-virginia", **keys}])


def bought(**keys: Any) -> dict[str, Any]:
    return at_site(electricity=keys)


def owned(**keys: Any) -> dict[str, Any]:
    return spec(owned=[OWNED | keys])


def made(**parts: Any) -> dict[str, Any]:
    return spec(catalog=own(**parts), offers=OWN_SYSTEM)


def with_session(**keys: Any) -> dict[str, Any]:
    return chat(session={"calls": 10, "growth": 1000, **keys})


NOTED: dict[str, tuple[dict[str, Any], str, str, tuple[str, ...]]] = {
    # prices: a tenth and ten times, per system and per chip
    "rent / 10": (priced("2.4 USD/h"), "offers[0].price", "price.of_a_chip", ("0.3 USD/chip/h", MARKET, "write 2.4 USD/chip/h")),
    "rent * 10": (priced("600 USD/h"), "offers[0].price", "price.beyond", ("75 USD/chip/h", MARKET)),
    "rent per chip / 10": (priced("0.3 USD/gpu/h"), "offers[0].price", "price.of_a_chip", ("0.3 USD/chip/h", MARKET)),
    "rent per chip * 10": (priced("$30/gpu/hour"), "offers[0].price", "price.beyond", ("30 USD/chip/h", MARKET)),
    "price of a chip for a system": (priced("2.10 USD/h"), "offers[0].price", "price.of_a_chip", ("write 2.1 USD/chip/h",)),
    "purchase / 10": (priced("31000 USD", "buy"), "offers[0].price", "price.of_a_chip", ("3875 USD/chip", BOUGHT)),
    "purchase * 10": (priced("3.1M USD", "buy"), "offers[0].price", "price.beyond", ("387.5k USD/chip", BOUGHT)),
    "purchase per chip / 10": (priced("3900 USD/chip", "buy"), "offers[0].price", "price.of_a_chip", ("3900 USD/chip", BOUGHT)),
    "purchase per chip * 10": (priced("390000 USD/chip", "buy"), "offers[0].price", "price.beyond", ("390k USD/chip", BOUGHT)),
    "rent by phase": (
        spec(phases=[{"name": "first", "start": "0 d"}, {"name": "later", "start": "180 d"}], offers=[H100 | {"price": "24 USD/h", "price_by_phase": {"later": "0.24 USD/h"}}]),
        "offers[0].price_by_phase.later", "price.beyond", ("0.03 USD/chip/h", MARKET),
    ),
    "rent in another currency": (  # 24 CNY/h is 3.59 USD/h at 6.6921
        priced("24 CNY/h"), "offers[0].price", "price.of_a_chip", ("3 CNY/chip/h",),
    ),
    "price of an owned system when new": (owned(price="19900 USD"), "owned[0].price", "price.of_a_chip", ("2487.5 USD/chip", "24.88k USD/chip")),
    "resale above the price when new": (owned(price="199000 USD", resale="250000 USD"), "owned[0].resale", "price.worth_more_than_new", ("250k USD", "199k USD")),
    "dear tokens": (chat(selling_price={"output": "5000 USD/1M tokens"}), "workloads[0].selling_price.output", "money.tokens", ("5000 USD/1M tokens", "600 USD/1M tokens")),
    # lengths of training may be longer than the context that they make
    "sequences beyond the context": (spec(RUN | {"sequence_tokens": 262_144}), "workloads[0].sequence_tokens", "lengths.sequence", ("262,144", "131,072")),
    # names
    "letters that look alike": (spec(CHAT, CHAT | {"name": "ch\u0430t"}), "workloads[1].name", "names.alike", ("workloads[0].name",)),
    "classes that look alike": (chat(classes=TENANTS), "workloads[0].classes[1].name", "names.alike", ("workloads[0].classes[0].name",)),
    "zones that look alike": (
        spec(sites=[{"region": "us-virginia", "zone": "zone 0"}, {"region": "us-ohio", "zone": "zone O"}]), "sites[1].zone", "names.alike", ("sites[0].zone",),
    ),
    # holdings
    "two equal offers": (spec(offers=[H100 | {"price": "24 USD/h"}] * 2), "offers[1]", "offer.twice", ("offers[0]",)),
    "two equal offers, written in two ways": (
        spec(offers=[H100 | {"price": "24 USD/h", "regions": ["us-virginia"]}, {"system": "dgx-h100", "how": "on_demand", "price": "3 USD/gpu/hour", "regions": ["us-virginia"], "note": "n"}]),
        "offers[1]", "offer.twice", ("offers[0]",),
    ),
    "two equal lots": (spec(owned=[OWNED, OWNED]), "owned[1]", "owned.twice", ("owned[0]",)),
    "owned for 12 years": (owned(age="12 years"), "owned[0].age", "owned.older_than_its_kind", ("12 years", "2020")),
    "owned for 90 years": (owned(age="90 years"), "owned[0].age", "owned.older_than_its_kind", ("90 years", "2020")),
    "owned for 12 years, of a kind without a year": (
        spec(catalog=own(), offers=OWN_SYSTEM, owned=[OWNED | {"system": "own system", "age": "12 years", "price": "300000 USD"}]), "owned[0].age", "owned.beyond_its_life", ("12 years", "lives of 5 years"),
    ),
    "more chips than are made": (priced("24 USD/h", supply=9_000_000), "offers[0].supply", "offer.supply", ("72M chips", "20M chips")),
    "a term of 30 years": (spec(offers=[{"system": "DGX H100", "how": "reserved", "price": "16 USD/h", "term": "30 years"}]), "offers[0].term", "offer.term", ("30 years", "6 years")),
    "an offer before its release": (spec(horizon={"start": "2015-01-01"}), "offers[0]", "offer.before_release", ("2022", "2016-01-01")),
    "yield of 1e-30": (spec(offers=[{"system": "HGX H20 8-GPU server", "how": "buy", "components": PARTS | {"die_yield": 1e-30}}]), "offers[0].components.die_yield", "component.yield", ("1e-30", "0.2")),
    "a yield in per mille": (spec(offers=[{"system": "HGX H20 8-GPU server", "how": "buy", "components": PARTS | {"package_yield": 0.0098}}]), "offers[0].components.package_yield", "component.yield", ("0.0098",)),
    # sites
    "electricity at 99,999 USD/kWh": (at_site(electricity_price="99999 USD/kWh"), "sites[0].electricity_price", "site.electricity_price", ("100k USD/kWh", "0.277 USD/kWh")),
    "electricity at a thousandth": (at_site(electricity_price="0.08 USD/MWh"), "sites[0].electricity_price", "site.electricity_price", ("8e-05 USD/kWh",)),
    "electricity under contract": (bought(ppa=[PPA | {"price": "50 USD/kWh"}]), "sites[0].electricity.ppa[0].price", "site.electricity_price", ("50 USD/kWh",)),
    "demand charge per watt": (bought(demand_charge="15000 USD/kW-month"), "sites[0].electricity.demand_charge", "site.demand_charge", ("15k USD/kW-month",)),
    "battery per MWh": (bought(battery=BATTERY | {"energy_price": "200 USD/MWh"}), "sites[0].electricity.battery.energy_price", "site.battery", ("0.2 USD/kWh", "73 USD/kWh")),
    "carbon of a contract": (bought(ppa=[PPA | {"carbon": "5000 g/kWh"}]), "sites[0].electricity.ppa[0].carbon", "site.carbon", ("5000 g/kWh",)),
    "PUE of 4": (at_site(pue=4.0), "sites[0].pue", "site.pue", ("4",)),
    "hall per rack": (at_site(colocation="2500 USD/kW-month"), "sites[0].colocation", "site.hall", ("2500 USD/kW-month", "250 USD/kW-month")),
    "a site of 40 GW": (at_site(power="40 GW"), "sites[0].power", "site.power", ("40 GW", "5 GW")),
    # money
    "discount rate of 80 %": (spec(horizon={"discount_rate": 0.8}), "horizon.discount_rate", "money.discount", ("0.8", "0.12")),
    "exchange rate upside down": (spec(exchange={"CNY": {"per_usd": 0.139}}), "exchange.CNY.per_usd", "money.exchange", ("0.139", "CNY", "6.692")),
    # loads
    "demand of ten nations": (chat(demand={"output_tokens": "40B tokens/s"}), "workloads[0].demand", "load.beyond_the_world", ("14976T tokens", "107")),  # (1 + 1000/300) x 40e9 x 86,400
    "seconds for milliseconds": (chat(slo={"tpot": {"p95": "50 s"}}), "workloads[0].slo.tpot.p95", "load.no_limit", ("50 s", "0.1939")),
    "microseconds for milliseconds": (chat(slo={"tpot": {"p95": "50 us"}}), "workloads[0].slo.tpot.p95", "load.too_fast", ("20k tokens/s", "3000 tokens/s")),
    "drafts always accepted": (chat(speculation={"draft_tokens": 3, "acceptance": 0.99}), "workloads[0].speculation.acceptance", "load.too_certain", ("0.99", "0.9")),
    "more text than there is": (spec(RUN | {"tokens": "15000T"}), "workloads[0].tokens", "load.tokens", ("15000T tokens", "1000T tokens")),
    "a batch of 1B tokens": (spec(RUN | {"batch_tokens": "1B"}), "workloads[0].batch_tokens", "load.batch", ("1B tokens", "62.91M tokens")),
    "a run of 1e29 operations": (spec(RUN | {"architecture": "own network", "tokens": "1500T"}, catalog=own(network={"layers": 128, "hidden": 65_536, "ffn": 262_144})), "workloads[0].tokens", "load.operations", ("FLOP", "check tokens")),
    # networks
    "encoder of 1.5e11 parameters in a layer of width 19": (
        chat(media=[{"kind": "image", "items": 1, "encoder": ENCODER | {"parameters": 1.5e11, "layers": 1, "hidden": 19}}]),
        "workloads[0].media[0].encoder.parameters", "network.encoder", ("150B", "4332"),  # 12 x 19^2
    ),
    "a published count of another network": (
        spec(CHAT | {"architecture": "own network"}, catalog=own(network={"total_parameters": 70e9})), "workloads[0].architecture", "network.unlike_its_count", ("8.03B", "70B"),
    ),
    "a feed-forward block of width 3M": (made(network={"ffn": 3_000_000}), "catalog.architectures[0]", "network.ffn", ("732",)),
    "heads of width 8192": (made(network={"head_dim": 8192}), "catalog.architectures[0]", "network.queries", ("64",)),
    "one layer of width 65,536": (made(network={"layers": 1, "hidden": 65_536, "ffn": 200_000, "head_dim": 2048}), "catalog.architectures[0]", "network.aspect", ("65.54k", "check hidden and layers")),
    # hardware
    "a peak rate a thousand times too high": (made(chip={"bf16_flop_per_s": "500 PFLOP/s", "fp8_flop_per_s": "1000 PFLOP/s"}), "catalog.chips[0]", "chip.efficiency", ("833.3 TFLOP",)),
    "a memory at the rate of bits": (made(chip={"hbm_bytes_per_s": "3 Gbit/s"}), "catalog.chips[0]", "chip.drain", ("4.267 min",)),  # 96e9 x 8 / 3e9
    "more operations than it can read for": (made(chip={"hbm_bytes_per_s": "3 GB/s"}), "catalog.chips[0]", "chip.balance", ("166.7k", "check its peak rate")),
    "8 bit with every sparsity": (made(chip={"fp8_flop_per_s": "8000 TFLOP/s"}), "catalog.chips[0]", "chip.eight_bit", ("16 times",)),
    "a link of all lanes of a rack": (made(chip={"scaleup_bytes_per_s": "130 TB/s"}), "catalog.chips[0]", "chip.link", ("43.3",)),
    "a system on the power of a chip": (made(system={"power_w": "600 W"}), "catalog.systems[0]", "system.power", ("0.125",)),  # 600 W over 8 x 600 W
    "a network of a whole cluster": (made(system={"nic_bytes_per_s": "51.2 TB/s"}), "catalog.systems[0]", "system.network", ("17.0",)),
    "an override in bits": (
        spec(overrides={"chips/H100 SXM5 80GB/hbm_bytes_per_s": {"value": "3.35 GB/s", "note": "n"}}), "overrides.chips/H100 SXM5 80GB/hbm_bytes_per_s", "override.another_prefix", ("3.35 GB/s", "3.35 TB/s"),
    ),
}  # fmt: skip

REFUSED: dict[str, tuple[dict[str, Any], str, str, tuple[str, ...]]] = {
    "context over by one": (chat(lengths={"input": CONTEXT, "output": 2} | {"input": CONTEXT - 1}), "workloads[0].lengths", "lengths.request", ("40,961", "40,960", "max_context")),
    "media beyond the context": (
        chat(media=[{"kind": "image", "items": 200, "encoder": ENCODER}]), "workloads[0].lengths", "lengths.media", ("52,500", "40,960"),  # 1000 + 200 x 256 + 300
    ),
    "a session over by its last call": (with_session(calls=32), "workloads[0].session", "lengths.session", ("41,600", "40,960")),  # 1300 + 31 x 1300
    "a response beyond the context": (spec(LEARNER | {"lengths": {"prompt": 961, "response": 2000, "limit": 40_000}}), "workloads[0].lengths", "lengths.response", ("40,961", "40,960")),
    "an alternative with less context": (
        chat(
            architecture="Llama-3.1-8B", lengths={"input": 60_000, "output": 300}, quality_floor={"least": 0.5, "source": "x"},
            alternatives=[{"architecture": name, "quality": 0.6, "source": "x"} for name in ("Llama-3.1-8B", "Qwen3-32B")],
        ), "workloads[0].alternatives[1].architecture", "lengths.request", ("60,300", "40,960"),
    ),
    "a name of no width": (spec(CHAT, CHAT | {"name": "ch\u200bat"}), "workloads[1].name", "names.same", ("workloads[0].name",)),
    "a name in full width": (spec(CHAT, CHAT | {"name": "\uff43\uff48\uff41\uff54"}), "workloads[1].name", "names.same", ("workloads[0].name",)),
    "sun at night": (bought(ppa=[PPA | {"capacity_factor": 0.8}]), "sites[0].electricity.ppa[0].capacity_factor", "site.more_than_daylight", ("0.8", "0.5")),
}  # fmt: skip

MALFORMED: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "output tokens without a time": (chat(demand={"output_tokens": "10B"}), "workloads[0].demand.output_tokens", ("tokens/s", "10B")),
    "output tokens of no time": (chat(demand={"output_tokens": "10B tokens"}), "workloads[0].demand.output_tokens", ("tokens/s",)),
    "a profile of a week": (chat(demand={"requests_per_s": 3, "profile": [1] * 7}), "workloads[0].demand.profile", ("24", "7", "week")),
    "a PUE below 1": (at_site(pue=0.9), "sites[0].pue", ("1",)),
    "a yield above 1": (spec(offers=[{"system": "DGX H100", "how": "buy", "components": PARTS | {"die_yield": 60}}]), "offers[0].components.die_yield", ("1",)),
    "a purchase for a rent": (priced("2.10 USD"), "offers[0].price", ("55.04 USD/h", "2.10 USD")),
    "the same name twice": (spec(CHAT, CHAT), "workloads", ("chat",)),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTED)
def test_what_is_hardly_right_is_noted(name):
    document, path, code, figures = NOTED[name]
    notes, problems = noted(document)
    assert not problems
    found = [fact for fact in notes if (fact.path, fact.message.code) == (path, code)]
    assert len(found) == 1, [(fact.path, fact.message.code, fact.message.text()) for fact in notes]
    assert found[0].source
    assert not [figure for figure in figures if figure not in found[0].message.text()], found[0].message.text()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused(name):
    document, path, code, figures = REFUSED[name]
    _, problems = noted(document)
    assert [problem.path for problem in problems] == [path], problems
    text = problems[0].message
    assert text.endswith("]"), "ends with its source"
    assert not [figure for figure in figures if figure not in text], text
    fixed = texts("en")[code].split("{")[-1].partition("}")[2]
    assert fixed in text, "is the sentence of the code"


@pytest.mark.parametrize("name", MALFORMED)
def test_what_has_no_meaning_is_refused_where_it_is_read(name):
    document, path, figures = MALFORMED[name]
    _, problems = noted(document)
    assert [problem.path for problem in problems] == [path], problems
    assert not [figure for figure in figures if figure not in problems[0].message], problems


def test_an_engine_that_extends_the_context_is_believed():
    path = "architectures/Qwen3-32B/max_context"
    over = {path: {"value": "131072 tokens", "note": "YaRN, as the model card says"}}
    document = chat(lengths={"input": 60_000, "output": 300})
    assert noted(document)[1] and noted(document | {"overrides": over}) == ([], [])


def codes() -> set[str]:
    """Codes of the rules: all of their file but the echoes, and the frame of a refusal."""
    file = Path(planner.messages.__file__).parent / "en" / "plausibility.json"
    return {code for code in json.loads(file.read_text("utf-8")) if not code.startswith(("price.stated", "fact."))}


def test_every_rule_has_a_row():
    assert codes() == {row[2] for row in (*NOTED.values(), *REFUSED.values())}
    assert len(codes()) >= 40


def test_every_rule_stands_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "facts.md").read_text("utf-8")
    assert not {code for code in codes() if f"`{code}`" not in page}
