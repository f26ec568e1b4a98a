"""What answers to specs that differ in prices, limits or demand share: evaluations of operating points, and which of them plans use."""
