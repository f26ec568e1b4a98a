"""Input of single blocks of the joint program, as fields of `PlanData`: one file per block, of the block's name."""
