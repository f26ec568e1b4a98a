"""Networks that kinds of systems share, as program data: sizes, shares and memberships by hand."""

from __future__ import annotations

from types import SimpleNamespace as NS

import numpy as np
import pytest

from models.network.designs import Design
from models.network.group_links import Plant
from planner.formulate.joint_network import joint_networks, kept_apart, kind_of, network_of
from planner.problem.fabrics import may_join, structure_of

TREE = Design.named("fat-tree")


def plant(systems, ports, design=TREE):
    return Plant(design, systems, 8, ports, 50e9, 64, 450e9, 0.0, 0.0)


def option(system, network, region="here"):
    return NS(site=NS(region=region), system=NS(name=system), plant=network)


EIGHT, FOUR = option("A", plant(256, 8)), option("B", plant(512, 4))
"""Two tiers of 64-port switches: 2,048 ports, for 256 systems of 8 ports or 512 of 4."""


def point(*options):
    return NS(exchange=None, uses=[NS(option=each) for each in options])


def test_a_system_takes_its_share_of_the_ports():
    """512 places of 4 ports, of which a system with 8 ports takes two."""
    other = option("B", plant(8, 4))  # one switch: another network
    options = [EIGHT, FOUR, other]
    found = joint_networks(
        options, [(0, None), (1, None), (2, None)], [point(EIGHT), point(EIGHT, FOUR), point(FOUR, EIGHT)]
    )
    assert found.size.tolist() == [512] and found.network.tolist() == [0, 0] and found.unit.tolist() == [2, 1]
    assert found.member.tolist() == [[0, 0], [1, 1]]
    assert found.pooled.tolist() == [[0, 1], [1, 2], [1, 3], [0, 4]]


def test_points_on_one_kind_need_none():
    assert joint_networks([EIGHT], [(0, None)], [point(EIGHT), point(EIGHT, EIGHT)]) is None


def test_one_network_of_each_structure_and_site():
    assert network_of(EIGHT) == network_of(FOUR) != network_of(option("A", plant(8, 8)))
    assert network_of(EIGHT) != network_of(option("A", plant(256, 8), "there"))
    assert kind_of(EIGHT) == (network_of(EIGHT), "A") and network_of(option("A", None)) == ("here",)


def test_kinds_that_do_not_join_stay_apart():
    points = [point(EIGHT, FOUR)]
    assert kept_apart(points, np.array([1.0, 0.0])) == {kind_of(FOUR)}
    assert kept_apart(points, np.array([1.0, 1.0])) == kept_apart(points, np.zeros(0)) == set()


@pytest.mark.parametrize(
    ("first", "second", "joins"),
    [
        (plant(256, 8), plant(512, 4), True),
        (plant(256, 8), plant(16, 4), False),  # two tiers and one
        (plant(64, 8, Design.named("rail-only")), plant(64, 8, Design.named("rail-only")), True),
        (plant(64, 8, Design.named("rail-only")), plant(64, 4, Design.named("rail-only")), False),  # port i on tree i
        (plant(64, 8, Design.named("torus")), plant(64, 8, Design.named("torus")), False),
        (plant(256, 8), plant(256, 8, Design.named("fat-tree:2")), False),
        (None, plant(256, 8), False),
    ],
)  # fmt: skip
def test_which_kinds_one_network_can_join(first, second, joins):
    assert may_join(first, second) is joins


def test_the_structure_of_a_network():
    """One tier: two links between any two ports; two tiers: four."""
    assert structure_of(plant(8, 8))[1:] == (1, 2) and structure_of(plant(256, 8))[1:] == (2, 4)
