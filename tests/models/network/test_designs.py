"""Closed forms of the fabric designs: known machines, agreement with the older functions, laws, one element like many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.network.designs import (
    Design,
    bisection_bytes_per_s,
    largest_network,
    latency_s,
    network,
    network_power_w,
    network_price,
)
from models.network.direct import rack_brick, torus, torus_dims
from models.network.group_links import GroupLinks, Plant, admits, dimension_links, group_links, levels_of
from models.network.trees import rows_reach, tree

NAMES = (
    "scale-up",
    "rail-only",
    "rail-only:2",
    "rail-optimised",
    "rail-optimised:3",
    "fat-tree",
    "fat-tree:3/2",
    "torus",
    "dragonfly",
)
GB = 1e9


def plant(name: str, systems: int = 64, **changes: float) -> Plant:
    usual = {
        "chips_per_system": 8, "ports_per_system": 8, "port_bytes_per_s": 50 * GB, "radix": 64, "scaleup_bytes_per_s": 450 * GB,
        "alpha_s": 5e-6, "hop_latency_s": 3e-7,
    }  # fmt: skip
    return Plant(Design.named(name), systems, **usual | changes)


def test_known_machines():
    # k = 48: 27,648 hosts of 2,880 switches (Al-Fares et al. 2008, section 3)
    assert largest_network(Design("fat-tree"), 1, 48) == 27_648
    assert network(Design("fat-tree"), 27_648, 1, 48).switches == 2_880
    # radix 64 scales to over 256 K ends (Kim et al. 2008, figure 1)
    assert largest_network(Design("dragonfly"), 1, 64) == 262_656
    # 4,096 chips in racks of 64: 96 optical links leave a rack, and each joins two (Jouppi et al. 2023)
    assert torus(16, 16, 16, brick=rack_brick((16, 16, 16), 64)).links_between_bricks == 64 * 96 / 2
    # A 16 x 16 pod of 200 or 400 GB/s a chip: bisection of 1.6 and 3.2 TB/s as its maker states it
    assert torus(16, 16).bisection_links * np.array([200 * GB, 400 * GB]) / 4 == pytest.approx([1.6e12, 3.2e12])


@pytest.mark.parametrize("name", NAMES)
def test_one_element_is_like_many(name):
    counts = np.array([1, 2, 3, 8, 31, 64, 100, 257, 1024])
    many = network(Design.named(name), counts, 8, 64, rack_systems=4)
    for i, systems in enumerate(counts):
        one = network(Design.named(name), int(systems), 8, 64, rack_systems=4)
        for field in many.__dataclass_fields__:
            assert getattr(one, field) == getattr(many, field)[i], (field, systems)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ports", [1, 2, 8])
def test_what_holds_is_what_the_largest_says(name, ports):
    largest = largest_network(Design.named(name), ports, 16)
    assert network(Design.named(name), largest, ports, 16).holds
    assert not network(Design.named(name), largest + 1, ports, 16).holds


@given(
    st.sampled_from(NAMES),
    st.integers(1, 3000),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([16, 40, 64]),
    st.integers(1, 64),
)
def test_laws_of_a_network(name, systems, ports, radix, rack):
    net = network(Design.named(name), systems, ports, radix, rack_systems=rack)
    if not net.holds:
        return
    assert 0 <= net.copper_links <= net.host_links + net.switch_links
    assert net.switches * radix >= net.host_links + 2 * net.switch_links or net.switches == 0
    assert 0 <= net.uniform_share <= 1 and 0 <= net.mean_hops <= net.most_hops
    assert net.bisection_links <= net.ends / 2
    if systems > 1 and name != "dragonfly":  # whose halves are whole groups
        # Of uniform traffic, the ends of one half send n/2 of n - 1 parts across the middle; a rail on its own.
        ends = systems if name.startswith("rail-only") else net.ends
        ends, rate = (net.systems, net.uniform_share * ports) if name == "torus" else (ends, net.uniform_share)
        sent = (
            rate
            * (ends // 2)
            * (ends - ends // 2)
            / (ends - 1)
            * (net.ends / ends if name.startswith("rail-only") else 1)
        )
        assert sent <= net.bisection_links * (1 + 1e-9)
    racked = network(Design.named(name), systems, ports, radix, rack_systems=rack + 8)
    assert network_power_w(racked, 700, 8) <= network_power_w(net, 700, 8) or name == "torus"
    assert network_price(net, 5e4, 300, 1300) <= network_price(net, 5e4, 1300, 1300)
    assert bisection_bytes_per_s(net, 2.0) == 2 * net.bisection_links


@given(st.floats(1, 4), st.floats(1, 4), st.integers(65, 2000))
def test_more_taper_never_more_bisection_or_switches(a, b, ports):
    low, high = sorted((a, b))
    thin, thick = tree(ports, 1, 64, high), tree(ports, 1, 64, low)
    assert thin.switch_links <= thick.switch_links + 64 * 3
    assert thin.uniform_share <= thick.uniform_share * 1.1  # whole ports make steps


def test_a_torus_holds_what_is_asked_with_few_spare():
    for nodes in range(1, 400):
        x, y, z = torus_dims(nodes)
        assert x >= y >= z >= 1 and nodes <= x * y * z <= 1.1 * nodes + 2
    assert rows_reach(64, 8, 2) == 8


def test_designs_are_named_and_checked():
    assert Design.named("rail-optimised:2") == Design("rail-optimised", 2.0)
    for name in ("token ring", "torus:2", "fat-tree:1/2"):
        with pytest.raises(ValueError, match=r"fabric design|taper"):
            Design.named(name)


def test_latency_grows_with_hops():
    assert latency_s(2, 5e-6, 3e-7) == pytest.approx(5.3e-6) and latency_s(0, 5e-6, 3e-7) == 5e-6


def test_designs_admit_what_they_can_carry():
    assert not admits(Design("scale-up"), 16, 1, 8) and admits(Design("scale-up"), 8, 1, 8)
    assert group_links(plant("scale-up"), 16, 1).bytes_per_s == 0
    assert group_links(plant("rail-only", 100_000), 16, 8).bytes_per_s == 0  # more than the rails can join


def test_rails_forward_what_leaves_them():
    ring, exchange = (
        group_links(plant("rail-only", scaleup_start_s=1e-6), 64, 1, pattern) for pattern in ("ring", "all-to-all")
    )
    assert ring.bytes_per_s == exchange.bytes_per_s == 50 * GB  # the scale-up domain keeps up
    assert exchange.start_s == pytest.approx(ring.start_s + 1e-6)
    slow = plant("rail-only", scaleup_bytes_per_s=35 * GB)
    assert group_links(slow, 64, 1, "all-to-all").bytes_per_s == pytest.approx(40 * GB)  # 7/8 of it passes at 35 GB/s
    assert group_links(slow, 8, 8, "all-to-all").bytes_per_s == 50 * GB  # one chip a system, all of the same rail
    assert (
        group_links(plant("rail-optimised", scaleup_bytes_per_s=35 * GB), 512, 1, "all-to-all").bytes_per_s == 50 * GB
    )  # by the spine


def test_taper_thins_what_crosses_leaves():
    two = plant("fat-tree:2", 128)  # a leaf of 42 ports: 5 systems
    assert group_links(two, 2, 64).bytes_per_s == 25 * GB  # neighbours 8 systems apart never share a leaf
    assert group_links(two, 40, 1).bytes_per_s == 50 * GB
    assert group_links(two, 1024, 1, "all-to-all").bytes_per_s == pytest.approx(25 * GB * 1016 / 984)


def test_a_torus_gives_rings_their_links_and_exchanges_its_bisection():
    box = plant("torus", 64, ports_per_system=6, chips_per_system=1, port_bytes_per_s=50 * GB, scaleup_bytes_per_s=0)
    ring, exchange = (group_links(box, 64, 1, pattern) for pattern in ("ring", "all-to-all"))
    assert ring.bytes_per_s == pytest.approx(300 * GB)  # three pieces, both ways around
    net = network(Design("torus"), 64, 6, 64)
    assert exchange.bytes_per_s == pytest.approx(net.uniform_share * 300 * GB)
    assert exchange.bytes_per_s == pytest.approx(bisection_bytes_per_s(net, 50 * GB) * 63 / 32**2)


def test_a_dragonfly_spreads_rings_over_third_groups():
    wide = plant("dragonfly", 1024)
    apart = group_links(wide, 2, 512)  # every pair in two groups: adversarial for direct links
    assert 0 < apart.bytes_per_s <= 25 * GB and apart.hops == 5
    assert group_links(wide, 8192, 1, "all-to-all").bytes_per_s == pytest.approx(50 * GB, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_group_links_broadcast_and_stay_below_the_nics(name):
    group, stride = np.array([[8], [16], [64]]), np.array([1, 4, 8])
    for pattern in ("ring", "all-to-all"):
        many = group_links(plant(name), group, stride, pattern)
        assert isinstance(many, GroupLinks) and many.bytes_per_s.shape == (3, 3)
        assert np.all(many.bytes_per_s <= 50 * GB * (1 + 1e-12)) and np.all(many.start_s >= 0)
        for i, j in np.ndindex(3, 3):
            assert (
                group_links(plant(name), int(group[i, 0]), int(stride[j]), pattern).bytes_per_s
                == many.bytes_per_s[i, j]
            )


def test_dimensions_of_a_layout_meet_the_design_by_their_strides():
    tapered = plant("fat-tree:2", 128)  # leaves of 5 systems, 40 chips
    links = dimension_links(tapered, tp=8, cp=[1, 2], dp=[32, 16], pp=4, ep=1)
    assert links["tp"].bytes_per_s.tolist() == [50 * GB] * 2 and links["tp"].hops.tolist() == [0, 0]
    assert links["dp"].bytes_per_s.tolist() == [50 * GB] * 2  # 5 members under a leaf send one stream out of it
    assert links["pp"].bytes_per_s.tolist() == [25 * GB] * 2 and np.all(
        links["pp"].hops == 4
    )  # every stage is under another leaf
    assert links["cp"].hops.tolist() == [0, 2]
    exchange = dimension_links(tapered, tp=1, cp=1, dp=1024, pp=1, ep=[8, 64, 1024])["ep"].bytes_per_s / GB
    assert exchange[0] == 50 and exchange[2] == pytest.approx(25 * 1016 / 984) and exchange[1] >= exchange[2]


def test_levels_are_those_of_the_design():
    assert [level.chips for level in levels_of(plant("fat-tree"))] == [8, 32]
    assert [level.chips for level in levels_of(plant("rail-only"))] == [8]  # a switch a rail holds 64 systems
    assert [level.chips for level in levels_of(plant("rail-optimised"))] == [8, 256]
    with pytest.raises(ValueError, match="placement_torus"):
        levels_of(plant("torus"))
