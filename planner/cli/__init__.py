"""The command line: arguments and files in, the answer and an exit code out."""
