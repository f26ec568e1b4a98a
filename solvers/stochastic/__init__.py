"""Two-stage and multi-stage stochastic programs of a fleet over a tree of scenarios."""
