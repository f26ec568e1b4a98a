"""What a wrong spec is told: every place at once, each with a remedy. And what a right one may leave out or override."""

from __future__ import annotations

import copy
import json
from typing import get_args

import pytest

import planner
from planner.errors import Issue, SpecError, path_text
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Serving, Training


def problems(document) -> dict[str, str]:
    """path -> message of everything that is wrong with a spec, given as a mapping."""
    with pytest.raises(SpecError) as caught:
        planner.check_spec(document)
    found = caught.value.problems
    words = [problem.path for problem in found if not any(map(str.isdigit, problem.path))]
    assert words == sorted(words), "problems are sorted by path"
    return {problem.path: problem.message for problem in found}


def changed(document: dict, path: tuple, value) -> dict:
    """A copy with one value set; `...` removes it."""
    result = copy.deepcopy(document)
    place = result
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


CHAT = ("workloads", 0)
SITE = ("sites", 0)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        # (where, what is written there, what the message must say: the remedy among it)
        ((*CHAT, "slo", "ttft", "p95"), "500 MB", ['"500 ms"', "500 MB"]),
        ((*CHAT, "slo", "ttft", "p95"), "500", ['"500 ms"', '"500 s" or "500 min"']),
        ((*CHAT, "slo", "ttft", "p95"), 0.5, ['"500 ms"', "0.5"]),
        ((*CHAT, "slo", "ttft", "p95"), "-1 s", ['"500 ms"', "-1 s"]),
        ((*CHAT, "slo", "ttft", "p95"), "0 s", ['"500 ms"', "0 s"]),
        ((*CHAT, "slo", "ttft", "p95"), "nan s", ["nan"]),
        ((*CHAT, "slo", "ttft", "p95"), "inf s", ["inf"]),
        ((*CHAT, "slo", "ttft", "p95"), True, ['"500 ms"', "true"]),
        ((*CHAT, "slo", "ttft", "p95"), "", ['"500 ms"']),
        ((*SITE, "power"), "20 MJ", ['"20 MW"', "20 MJ"]),
        ((*SITE, "power"), 20, ['"20 MW"', "20"]),
        ((*SITE, "electricity_price"), "80 USD", ["USD/kWh", "80 USD"]),
        ((*SITE, "fixed_cost"), "2M USD", ["USD/h", "2M USD"]),
        ((*SITE, "pue"), 0.9, ["1", "0.9"]),
        ((*SITE, "topologies"), ["token ring"], ["scale-up", "fat-tree-2:1", "token ring"]),
        (("limits",), {"budget": "420M"}, ['"420M CNY"', "420M"]),
        (("limits",), {"budget": 420e6}, ['"420M CNY"']),
        (("limits",), {"carbon": "5 km"}, ['such as "', "5 km"]),
        (("horizon",), {"years": 0}, ["1", "0"]),
        (("horizon",), {"start": "the first of May"}, ["2027-01-01", "the first of May"]),
        (("horizon",), {"calendar": "hourly"}, ["representative-day", "hourly"]),
        (("currency",), "dollars", ["dollars"]),
        (("solver",), {"gap": 0}, ["0"]),
        (("solver",), {"backend": "abacus"}, ["highs", "pulp", "abacus"]),
        (("schema_version",), 2, ["1", "2"]),
        ((*CHAT, "kind"), "cooking", ["serving", "training"]),
        ((*CHAT, "precision"), ["fp7"], ["fp8", "bf16", "fp7"]),
        ((*CHAT, "lengths", "output"), 1.5, ["1.5"]),
        ((*CHAT, "lengths", "input"), 0, ["1", "0"]),
        ((*CHAT, "lengths", "output_cv"), 3.5, ["at most 3", "two workloads"]),
        ((*CHAT, "origins"), [], ["1"]),
        ((*CHAT, "grade"), "divine", ["consumer", "professional", "frontier"]),
        (("sites",), [], ["1"]),
        (("workloads",), [], ["1"]),
        (("sites",), "everywhere", ["list"]),
        (("objective",), {"minimise": "effort"}, ["cost", "carbon"]),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_remedy(tiny, path, value, words):
    document = changed({**tiny(), "limits": {}, "horizon": {}}, path, value)
    found = problems(document)
    place = path_text(path)
    hits = [text for where, text in found.items() if where == place or where.startswith((f"{place}.", f"{place}["))]
    assert len(hits) == len(found) == 1, found
    assert all(word in hits[0] for word in words), hits[0]


@pytest.mark.parametrize(
    "path",
    [
        ("name",),
        ("workloads",),
        ("sites",),
        (*CHAT, "architecture"),
        (*CHAT, "origins"),
        (*CHAT, "lengths", "output"),
        (*SITE, "region"),
    ],
)
def test_a_missing_value_is_asked_for(tiny, path):
    assert "missing" in problems(changed(tiny(), path, ...))[path_text(path)]


@pytest.mark.parametrize(
    ("path", "close"),
    [
        (("budged",), "name"),
        (("solvr",), "solver"),
        (("objectiv",), "objective"),
        ((*CHAT, "presicion"), "precision"),
        ((*CHAT, "slo", "ttfs"), "ttft"),
        ((*CHAT, "slo", "ttft", "p59"), "p95"),
        ((*CHAT, "demand", "request_per_s"), "requests_per_s"),
        ((*SITE, "powr"), "power"),
        (("offers", 0, "supplies"), "supply"),
        (("limits", "budgett"), "budget"),
    ],
)
def test_an_unknown_key_is_refused_and_the_close_ones_are_listed(tiny, path, close):
    message = problems(changed(tiny(limits={}), path, "1"))[path_text(path)]
    assert "unknown key" in message and close in message


@pytest.mark.parametrize("block", [Serving, Training, Reinforcement])
def test_an_unknown_key_of_a_workload_lists_the_keys_of_its_kind_alone(tiny, block):
    (kind,) = get_args(block.model_fields["kind"].annotation)
    message = problems(tiny(workloads=[{"kind": kind, "colour": 1}]))["workloads[0].colour"]
    own = {field.alias or name for name, field in block.model_fields.items()}
    assert message.partition("known here: ")[2].split(", ") == sorted(own)


def test_an_unknown_key_inside_a_workload_lists_the_keys_of_the_block_of_its_kind(tiny):
    inner = {"lengths": {"colour": 1}}
    served, learned = (
        problems(tiny(workloads=[{"kind": kind, **inner}]))["workloads[0].lengths.colour"]
        for kind in ("serving", "reinforcement")
    )
    assert "input_quantiles" in served and "endless" not in served
    assert "endless" in learned and "input_quantiles" not in learned


@pytest.mark.parametrize(
    ("path", "value", "close"),
    [
        ((*CHAT, "architecture"), "Llama-3.2-1C", "Llama-3.2-1B"),
        ((*CHAT, "origins", 0, "region"), "us-virgina", "us-virginia"),
        ((*CHAT, "weights_from"), "us-texs", "us-texas"),
        ((*CHAT, "residency"), ["us-virgina"], "us-virginia"),
        ((*SITE, "region"), "us-oregone", "us-oregon"),
        ((*SITE, "systems", 0), "DGX H10", "DGX H100"),
        ((*SITE, "fabric"), "InfiniBand NDQ", "InfiniBand NDR"),
        ((*SITE, "tariff"), "us-californa", "us-california"),
        (("offers", 0, "system"), "DGX H1000", "DGX H100"),
        (("offers", 0, "regions"), ["us-virgina"], "us-virginia"),
    ],
)
def test_an_unknown_name_lists_the_close_ones(tiny, path, value, close):
    found = problems(changed(tiny(), path, value))
    place = path_text(path)
    message = next(text for where, text in found.items() if where.startswith(place))
    assert "unknown" in message and close in message


def test_all_problems_come_at_once(tiny):
    document = tiny(currency="usd", limits={"budget": "lots", "carbom": "1 t"}, horizon={"years": 99})
    document["workloads"][0]["slo"]["ttft"]["p95"] = "500 MB"
    document["workloads"][0]["grade"] = "divine"
    document["sites"][0]["power"] = "20 MJ"
    assert {*problems(document)} >= {
        "currency", "limits.budget", "limits.carbom", "horizon.years", "workloads[0].slo.ttft.p95", "workloads[0].grade", "sites[0].power",
    }  # fmt: skip


def test_all_unknown_names_come_at_once(tiny):
    document = tiny()
    document["workloads"][0]["architecture"] = "Llama-9"
    document["workloads"][0]["origins"][0]["region"] = "atlantis"
    document["sites"][0]["systems"] = ["DGX H100", "abacus"]
    document["offers"].append({"system": "slide rule", "how": "buy", "price": "1 USD"})
    assert {*problems(document)} >= {
        "workloads[0].architecture",
        "workloads[0].origins[0].region",
        "sites[0].systems[1]",
        "offers[1].system",
    }


# -- rules between values ----------------------------------------------------------------------------------------------


TUNE = {"name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "5B", "deadline": "10 d"}


def only(document: dict, path: str) -> str:
    """The one message of a document, which must stand at `path` or in it."""
    found = problems(document)
    assert len(found) == 1 and next(iter(found)).startswith(path), found
    return next(iter(found.values()))


def test_shares_of_origins_add_up_to_one(tiny):
    document = tiny()
    document["workloads"][0]["origins"] = [
        {"region": "us-virginia", "share": 0.5},
        {"region": "us-texas", "share": 0.4},
    ]
    assert "0.9" in only(document, "workloads[0]")


def test_a_region_stands_once_among_origins_and_sites_and_a_name_once_among_workloads(tiny):
    document = tiny()
    document["workloads"][0]["origins"] = [{"region": "us-virginia", "share": 0.5}] * 2
    assert "add its shares up" in only(document, "workloads[0]")
    assert "us-virginia" in " ".join(problems(tiny(sites=[{"region": "us-virginia"}] * 2)).values())
    assert "chat" in " ".join(problems(tiny(workloads=tiny()["workloads"] * 2)).values())


def test_a_deadline_lies_after_the_start_and_within_the_horizon(tiny):
    assert "start" in only(tiny(workloads=[{**TUNE, "start": "11 d"}]), "workloads[0]")
    assert "horizon" in only(tiny(workloads=[{**TUNE, "deadline": "500 d"}]), "workloads[0].deadline")
    assert "sequence" in only(tiny(workloads=[{**TUNE, "batch_tokens": "1000"}]), "workloads[0]")


def test_demand_is_stated_in_one_way(tiny):
    for demand in ({}, {"requests_per_s": 1, "output_tokens": "1B tokens/day"}):
        message = only(changed(tiny(), (*CHAT, "demand"), demand), "workloads[0].demand")
        assert "requests_per_s" in message and "output_tokens" in message
    assert "24" in only(
        changed(tiny(), (*CHAT, "demand"), {"requests_per_s": 1, "profile": [1.0] * 23}), "workloads[0].demand.profile"
    )
    only(changed(tiny(), (*CHAT, "demand"), {"requests_per_s": 1, "profile": [0.0] * 24}), "workloads[0].demand")


def test_the_objective_is_one(tiny):
    for objective in ({}, {"minimise": "cost", "maximise": "throughput"}):
        assert "throughput" in only(tiny(objective=objective), "objective")
    assert "throughput" in only(tiny(objective={"minimise": "cost", "workload": "chat"}), "objective")


def test_electricity_has_one_price(tiny):
    document = tiny(sites=[{"region": "us-virginia", "tariff": "us-california", "electricity_price": "0.08 USD/kWh"}])
    assert "not both" in only(document, "sites[0]")


def test_a_price_has_the_unit_of_its_way(tiny):
    for how, price, remedy in (
        ("buy", "20 USD/h", ""),
        ("on_demand", "310000 USD", "USD/h"),
        ("reserved", "20", "USD"),
    ):
        message = only(tiny(offers=[{"system": "DGX H100", "how": how, "price": price}]), "offers[0]")
        assert price in message and remedy in message


def test_an_offer_without_any_price_says_where_to_state_one(tiny):
    message = only(
        tiny(sites=[{"region": "us-virginia"}], offers=[{"system": "Atlas 800T A2", "how": "on_demand"}]), "offers[0]"
    )
    assert "price" in message and "USD/h" in message


def test_a_currency_without_a_rate_says_where_to_state_one(tiny):
    message = " ".join(problems(tiny(currency="CHF")).values())
    assert "CHF" in message and "per_usd" in message


# -- the text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["not valid JSON", "line 1"]),
        ("", ["not valid JSON"]),
        ('{"name": "a",\n "sites": [}', ["not valid JSON", "line 2"]),
        ("[1, 2]", ["JSON object"]),
        ('"text"', ["JSON object"]),
        ("null", ["JSON object"]),
        ('{"name": NaN}', ["NaN", "finite"]),
        ('{"name": -Infinity}', ["-Infinity", "finite"]),
        ('{"name": "a", "sites": [], "name": "b"}', ["name", "twice"]),
        ('{"sites": [{"region": "a", "region": "a"}]}', ["region", "twice"]),
        (b'{"name": "\xff"}', ["UTF-8"]),
        ("[" * 100_000, ["nested"]),
    ],
)
def test_a_text_that_is_no_spec_says_why(tmp_path, text, words):
    path = tmp_path / "spec.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as caught:
        planner.check_spec(path)
    assert len(caught.value.problems) == 1 and all(word in str(caught.value) for word in words), caught.value


def test_a_byte_order_mark_does_no_harm(tmp_path, tiny):
    path = tmp_path / "spec.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(tiny()).encode())
    assert planner.check_spec(path)["workloads"] == 1


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        planner.check_spec(tmp_path / "nowhere.json")


def test_problems_print_their_place():
    assert str(Issue("sites[0].power", "too little")) == "sites[0].power: too little"
    assert str(Issue("", "not valid JSON")) == "not valid JSON"


# -- exchange and overrides --------------------------------------------------------------------------------------------


def test_amounts_of_any_currency_are_held_in_the_plans(tiny):
    """310,000 USD stated as EUR at 0.9 EUR per USD is 279,000 EUR; in a plan of USD it is 310,000 again."""
    from planner.resolve.resolver import resolve
    from planner.spec.model import parse_spec

    exchange = {"EUR": {"per_usd": 0.9, "date": "2026"}}
    offers = [{"system": "DGX H100", "how": "buy", "price": "279000 EUR"}]
    in_dollars = resolve(parse_spec(tiny(offers=offers, exchange=exchange, limits={"budget": "9M EUR"})))
    assert in_dollars.offers[0].prices["us-virginia"] == pytest.approx(310_000, rel=1e-12)
    assert in_dollars.budget == pytest.approx(10e6, rel=1e-12)
    in_euros = resolve(parse_spec(tiny(currency="EUR", exchange=exchange, limits={"budget": "10M USD"})))
    assert in_euros.offers[0].prices["us-virginia"] == pytest.approx(279_000, rel=1e-12)
    assert in_euros.budget == pytest.approx(9e6, rel=1e-12)
    assert in_euros.sites[0].facility_cost_per_w == pytest.approx(
        0.9 * in_dollars.sites[0].facility_cost_per_w, rel=1e-12
    )
    assert in_euros.sites[0].price_per_j == pytest.approx(0.9 * in_dollars.sites[0].price_per_j, rel=1e-12)


def test_an_override_takes_the_place_of_a_figure_and_is_listed(tiny):
    from planner.resolve.resolver import resolve
    from planner.spec.model import parse_spec

    path = "chips/H100 SXM5 80GB/hbm_bytes_per_s"
    problem = resolve(parse_spec(tiny(overrides={path: {"value": "3 TB/s", "note": "what we measured"}})))
    assert problem.systems["DGX H100"].hbm_bytes_per_s == 3e12
    assumption = next(a for a in problem.assumptions if a.path == path)
    assert assumption.value == "3 TB/s" and assumption.reason == "what we measured"
    assert next(c for c in problem.citations if c.path == path).figure.kind == "override"
    plain = resolve(parse_spec(tiny()))
    assert plain.systems["DGX H100"].hbm_bytes_per_s != 3e12 and path not in {a.path for a in plain.assumptions}
    assert plain.catalog_digest != problem.catalog_digest


@pytest.mark.parametrize(
    ("path", "override", "word"),
    [
        ("chips/H100 SXM5 80GB/hbm_bytes_per_s", {"value": "3 TB/s"}, "note"),
        ("chips/H100 SXM5 80GB/hbm_bytes_per_s", {"value": "3 TB/s", "note": ""}, ""),
        ("chips/H100 SXM5 80GB/hbm_bytes_per_s", {"value": "3 kg", "note": "wrong unit"}, "3 kg"),
        ("chips/H100 SXM5 80GB/hbm_bytes_per_sec", {"value": "3 TB/s", "note": "no such figure"}, "hbm_bytes_per_s"),
        ("chips/H1000/hbm_bytes_per_s", {"value": "3 TB/s", "note": "no such chip"}, "H100"),
        ("chip/H100 SXM5 80GB/hbm_bytes_per_s", {"value": "3 TB/s", "note": "no such kind"}, "chips"),
        ("hbm_bytes_per_s", {"value": "3 TB/s", "note": "of what?"}, "/"),
        ("defaults/system_life_s/value", {"value": 4, "note": "years, or what?"}, "time"),
        ("defaults/facility_cost/value", {"value": "12 USD", "note": "for how much power?"}, "USD/MW"),
    ],
)
def test_a_wrong_override_is_refused(tiny, path, override, word):
    found = problems(tiny(overrides={path: override}))
    assert len(found) == 1
    where, message = next(iter(found.items()))
    assert path in where and word in where + message


def test_things_that_nobody_sells_need_an_override(tiny):
    sites = [{"region": "us-virginia", "systems": ["Atlas 900 Pro"]}]
    offers = [{"system": "Atlas 900 Pro", "how": "buy", "price": "1M USD"}]
    assert all("overrides" in message for message in problems(tiny(sites=sites, offers=offers)).values())


def test_records_of_the_spec_are_assumptions(tiny):
    from planner.resolve.resolver import resolve
    from planner.spec.model import parse_spec

    ours = {"name": "Our server", "text": {"chip": "H100 SXM5 80GB"}, "figures": {
        "chips": {"value": 4, "note": "as built"}, "power_w": {"value": "5 kW", "note": "measured"},
        "scaleup_bytes_per_s": {"value": "450 GB/s", "note": "measured"}, "scaleup_chips": {"value": 4, "note": "as built"},
        "nic_bytes_per_s": {"value": "50 GB/s", "note": "data sheet"},
    }}  # fmt: skip
    offers = [{"system": "Our server", "how": "buy", "price": "150000 USD"}]
    problem = resolve(parse_spec(tiny(catalog={"systems": [ours]}, offers=offers, sites=[{"region": "us-virginia"}])))
    assert problem.systems["Our server"].power_w == 5000
    assert {f"systems/Our server/{name}" for name in ours["figures"]} <= {a.path for a in problem.assumptions}
