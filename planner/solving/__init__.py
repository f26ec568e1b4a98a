"""Solve a problem: plan, marginal values of limits, diagnosis of infeasibility, and dispatch over the full year."""
