"""The blocks of the joint program, one file each: sets, data, variables, objective, constraints. `docs/formulation.md` is made of them."""
