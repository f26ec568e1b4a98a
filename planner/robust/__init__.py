"""Make plans that keep their promise in a required share of sampled scenarios."""
