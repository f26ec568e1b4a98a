"""From a problem to an answer: the solve, marginal values, infeasibility, and dispatch over the full year."""
