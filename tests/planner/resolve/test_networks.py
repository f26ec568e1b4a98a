"""Every fabric of the catalog named as the network of a site: bought in parts, or refused with what it is."""

from __future__ import annotations

import pytest

from catalog.lookup import shipped_catalog
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.resolve.systems import NETWORKS

FABRICS = shipped_catalog().records("fabrics")
BOUGHT = [record.name for record in FABRICS if record.words("family") in NETWORKS and record.get("radix")]
LINKS = [record.name for record in FABRICS if record.words("family") == "scale-up"]


def named(tiny, network: str) -> dict:
    return tiny(
        sites=[{"region": "us-virginia", "systems": ["DGX H100"], "fabric": network, "topologies": ["rail-optimised"]}]
    )


def refusal(spec: dict) -> str:
    with pytest.raises(SpecError) as caught:
        resolve_document(spec)
    (problem,) = caught.value.problems
    assert problem.path == "sites[0].fabric"
    return problem.message


@pytest.mark.parametrize("name", BOUGHT)
def test_a_network_with_a_switch_on_record_can_be_bought(tiny, name):
    site = resolve_document(named(tiny, name)).sites[0]
    assert site.fabric.name == name and site.fabric.switch_price > 0 and site.fabric.switch_power_w > 0


def test_the_five_generations_of_two_families_are_there():
    assert {"InfiniBand HDR", "InfiniBand NDR", "InfiniBand XDR", "Spectrum-X", "RoCE v2 200G"} <= set(BOUGHT)


@pytest.mark.parametrize("name", LINKS)
def test_links_within_a_system_are_no_network_between_systems(tiny, name):
    message = refusal(named(tiny, name))
    assert name in message and "within a system" in message and "InfiniBand NDR" in message


def test_a_network_of_a_provider_is_not_bought_in_parts(tiny):
    assert '"provider"' in refusal(named(tiny, "AWS EFA v2/v3/v4"))


@pytest.mark.parametrize("name", ["PCIe 4.0 / 5.0 / 6.0 x16", "Google OCS (Palomar)", "DeepEP (H100/H800 + CX7; B200)"])
def test_a_record_of_another_kind_is_refused_as_such(tiny, name):
    assert "bought in switches" in refusal(named(tiny, name))


def test_parts_that_the_spec_states_make_a_network_of_any_record(tiny):
    """Whoever states all figures of a record may build with it."""
    figures = {
        "radix": "64",
        "port_bytes_per_s": "400 Gbit/s",
        "switch_price": "36000 USD",
        "switch_power_w": "747 W",
        "optic_power_w": "8 W",
    }
    figures |= {f"link_price_{tier}_tier": "1300 USD" for tier in ("one", "two", "three")}
    spec = named(tiny, "Google OCS (Palomar)")
    spec["overrides"] = {
        f"fabrics/Google OCS (Palomar)/{key}": {"value": value, "note": "quoted"}
        for key, value in figures.items()
        if key != "link_price_three_tier"
    }
    assert resolve_document(spec).sites[0].fabric.radix == 64


def test_prices_scale_with_the_rate_within_a_family():
    """The assumed prices: per Tbit/s of the family's priced switch, per Gbit/s of its priced link."""
    by_name = {record.name: record for record in FABRICS}
    for base, others in (
        ("InfiniBand NDR", ("InfiniBand HDR", "InfiniBand XDR")),
        ("RoCE v2 400G (Tomahawk 4 / SN5400)", ("RoCE v2 200G", "Spectrum-X")),
    ):
        priced = by_name[base]
        for name in others:
            record = by_name[name]
            assert record.value("switch_price") / record.value("switch_bytes_per_s") == pytest.approx(
                priced.value("switch_price") / priced.value("switch_bytes_per_s"), rel=1e-3
            )
            assert record.value("link_price_two_tier") / record.value("port_bytes_per_s") == pytest.approx(
                priced.value("link_price_two_tier") / priced.value("port_bytes_per_s"), rel=1e-3
            )
