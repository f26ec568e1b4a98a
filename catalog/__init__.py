"""Catalog of hardware, prices, regions and architectures: units, figures with citations, records and their lookup."""

from catalog.errors import CatalogError, MissingFigure, UnknownName
from catalog.figures import Figure, Source
from catalog.lookup import Catalog
from catalog.records import Record

IDENTITY = "flopwatt:catalog"

__all__ = ["IDENTITY", "Catalog", "CatalogError", "Figure", "MissingFigure", "Record", "Source", "UnknownName"]
