"""Plans that keep a promise in sampled scenarios."""
