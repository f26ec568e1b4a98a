"""Blocks of specs and cases about the stack below a workload: chips and architectures made for each other, and the software between."""
