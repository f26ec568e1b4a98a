"""Parse and check the blocks of a spec."""
