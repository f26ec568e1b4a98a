"""From a problem and its operating points to the data of the program."""
