"""Check the promise of a robust plan in sampled scenarios."""
