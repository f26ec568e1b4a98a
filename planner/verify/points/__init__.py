"""Check the operating points of a plan: each is evaluated again from its row."""
