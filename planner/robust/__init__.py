"""Make plans that keep a promise in an asked share of sampled scenarios."""
