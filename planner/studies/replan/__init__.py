"""Plan again from a day on: owned systems and commitments stay, observations since the plan was made count, and the rest is decided anew."""
