"""The program's blocks, one file each: sets, data, variables, objective, constraints."""
