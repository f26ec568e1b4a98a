"""What all studies of a spec start from: the plan that `flopwatt plan` prints."""
