"""Compare how systems are had with who sells them: instances of a cloud are rented, never bought or owned."""

from __future__ import annotations

from catalog.records import Record
from planner.facts import Fact
from planner.messages import Message

CLOUD = "cloud"  # how the form of an instance begins, such as "cloud node"


def is_cloud(system: Record) -> bool:
    """Tell whether a system is an instance of a cloud: its form says so."""
    return system.words("form").startswith(CLOUD)


def cloud_bought(path: str, system: Record) -> Fact | None:
    """Refuse an offer to buy an instance of a cloud; None for a system that is sold."""
    return _refused(path, "cloud.bought", system) if is_cloud(system) else None


def cloud_owned(path: str, system: Record) -> Fact | None:
    """Refuse an instance of a cloud that is said to be owned, or leased as hardware; None for a system that can be owned."""
    return _refused(path, "cloud.owned", system) if is_cloud(system) else None


def _refused(path: str, code: str, system: Record) -> Fact:
    words = Message.of(code, system=system.name, vendor=system.words("vendor") or system.name.split()[0])
    return Fact(path, words, f"systems/{system.name}, form: {system.words('form')}", refuses=True)
