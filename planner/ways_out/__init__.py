"""Write a plan as files of the tools that carry it out: launch commands, manifests, schedules, job scripts, a bill of materials.

`formats.py` is the registry: each format has a name, the version of its tool, and a writer from what a plan deploys (`deployed.py`) to files.
Not here: reading such files (`planner.ways_in`).
"""

NAMES = ("vllm", "sglang", "lws", "llm-d", "kserve", "keda", "bench", "megatron", "torchtitan", "slurm", "bill")
"""Names of the formats in the order of `formats.py::FORMATS`, for the command line, which imports no writer before one is asked for."""
