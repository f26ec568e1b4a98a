"""Plan again from a day on: what is owned and committed stays, what was observed since the plan was made counts, and the rest is decided anew."""
