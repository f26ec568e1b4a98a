"""Parse arguments and files of the command line, print the answer, and return an exit code."""
