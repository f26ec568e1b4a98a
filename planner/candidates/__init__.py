"""Choice of operating points: enumeration, evaluation and dominance."""
