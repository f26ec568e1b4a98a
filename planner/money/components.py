"""The components of a plan's cost: one record each, and the only list of their names outside `planner.verify`."""

from __future__ import annotations

from dataclasses import dataclass

from planner.messages import DEFAULT, Message

SYSTEM, REPLICA, REQUEST = "system", "replica", "request"
LOAD = "load"  # a worker that loads its weights in a slot
HOUR, START = (
    "hour",
    "start",
)  # a system that runs in a slot, and one that starts in it, where they are counted by the hour
SITE, COPY, PORT = "site", "copy", "port"
LINE, STREAM, SEND = "line", "stream", "send"
GRID, PEAK, CONTRACT, TAKEN, STORE, POWER = "grid", "peak", "contract", "taken", "store", "power"
AT_METER = (GRID, PEAK, CONTRACT, TAKEN, STORE, POWER)
DATED = (SYSTEM, REPLICA, REQUEST, LOAD, HOUR, START)
"""Decisions whose amounts fall due when a system is held, works, answers, loads, runs or starts; amounts of the others are spread evenly over the horizon."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component of the cost of a plan.

    `key`: its name in the plan. `paid_for`: the decisions of which each unit costs something. `of_workload`: whether the workload that
    causes a cost bears it; other costs are shared by the system-seconds that each workload keeps at work in the same place, or at the same
    site. `fixed`: whether it is paid whether the fleet works or not, by the hour for systems that are rented so. `capital`: whether it is a purchase, which `limits.capital` counts.
    `carbon`: the line of carbon that goes with it; "" for none.
    """

    key: str
    paid_for: tuple[str, ...]
    of_workload: bool = False
    fixed: bool = False
    capital: bool = False
    carbon: str = ""

    def words(self, language: str = DEFAULT) -> str:
        """Name the component in a language."""
        return Message.of(f"component.{self.key}").text(language)


SYSTEMS = Component("systems", (SYSTEM,), fixed=True, capital=True, carbon="embodied")
FABRIC = Component("fabric", (SYSTEM,), fixed=True, capital=True)
MAINTENANCE = Component("maintenance", (SYSTEM,), fixed=True)
SPARE_PARTS = Component("spare parts", (SYSTEM,), fixed=True, capital=True)
STAFF = Component("staff", (SYSTEM, SITE), fixed=True)
SOFTWARE = Component("software", (SYSTEM, HOUR), fixed=True)
LEVIES = Component("levies", (SYSTEM,), fixed=True)
FACILITY = Component("facility", (SYSTEM,), fixed=True)
COLOCATION = Component("colocation", (SYSTEM,), fixed=True)
ENERGY = Component("energy", (SYSTEM, REPLICA, GRID), carbon="operation")
RENT = Component("rent", (SYSTEM, HOUR, START), fixed=True, carbon="embodied")
EARLY_EXIT = Component("early exit", (SYSTEM,), fixed=True)
SITES = Component("site", (SITE,), fixed=True)
EGRESS = Component("egress", (REQUEST, REPLICA), of_workload=True)
API_TOKENS = Component("api", (REQUEST,), of_workload=True)
PORTING = Component("porting", (PORT,), of_workload=True)
ENVIRONMENTS = Component("environments", (REPLICA,), of_workload=True)
RELAYS = Component("relays", (LOAD,), of_workload=True)
WEIGHTS = Component("weights", (COPY, SEND), of_workload=True)
LINES = Component("lines", (LINE,), of_workload=True)
CONTROL = Component("control", (STREAM,), of_workload=True)
TELEMETRY = Component("telemetry", (STREAM,), of_workload=True)
DEMAND_CHARGE = Component("demand charge", (PEAK,))
PPA = Component("ppa", (CONTRACT, TAKEN), carbon="ppa")
BATTERY = Component("battery", (STORE, POWER), capital=True)

COMPONENTS = {
    component.key: component
    for component in (
        SYSTEMS, FABRIC, MAINTENANCE, SPARE_PARTS, STAFF, SOFTWARE, LEVIES, FACILITY, COLOCATION, ENERGY, RENT, EARLY_EXIT, SITES, EGRESS,
        API_TOKENS, PORTING, ENVIRONMENTS, RELAYS, WEIGHTS, LINES, CONTROL, TELEMETRY, DEMAND_CHARGE, PPA, BATTERY,
    )
}  # fmt: skip


def component_words(key: str, language: str = DEFAULT) -> str:
    """Name a component of a plan in a language; a plan of another release may hold one that is unknown here, which keeps its key."""
    return COMPONENTS[key].words(language) if key in COMPONENTS else key
