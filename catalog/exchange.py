"""Compare prices of the catalog that are stated in the currencies of their sources, at the catalog's own rates."""

from __future__ import annotations

from catalog.figures import Figure
from catalog.lookup import Catalog

USD = "USD"


def per_usd(catalog: Catalog, code: str) -> float | None:
    """Return the units of a currency for one US dollar; None where the catalog has no rate."""
    if code == USD:
        return 1.0
    name = f"exchange_{code.lower()}"
    return catalog.get("defaults", name).value("value") if name in catalog.names("defaults") else None


def usd_of_one(catalog: Catalog, figure: Figure) -> float | None:
    """Return the US dollars of one unit of a price's currency; None where the catalog has no rate."""
    rate = per_usd(catalog, figure.unit[:3])
    return None if rate is None else 1.0 / rate
