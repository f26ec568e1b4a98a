"""Answers a problem: the solve, marginal values of limits, why there is no plan, and dispatch over the full year."""
