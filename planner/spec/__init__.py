"""What a person may ask: the blocks of a spec, parsed and checked."""
