"""The question with every figure resolved, in SI units and typed."""
