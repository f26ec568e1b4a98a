"""Branch and bound over the binaries of a program, with warm-started LP relaxations."""
