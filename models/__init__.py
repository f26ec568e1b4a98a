"""Closed forms of AI compute: arrays in, arrays out, without I/O or state. Knows neither the catalog's records nor solvers."""

IDENTITY = "flopwatt:models"
