"""Optimisation over index sets and graphs: the joint program, its solvers, the network. Knows neither chips nor transformers."""

IDENTITY = "flopwatt:solvers"
