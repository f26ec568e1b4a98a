"""Read what a person already has (traces, model configs, launch commands, inventories, published hours) as parts of a spec.

Readers give plain figures and documents, and know nothing of the blocks of a spec (`planner.spec`) nor of plans. Figures that a file does not
state are guesses, which the document lists under `assumptions`.
"""
