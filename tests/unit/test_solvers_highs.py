"""HiGHS as it is used here."""

from __future__ import annotations

import subprocess
import sys

USE = "from solvers.highs import new_highs; highs = new_highs(); highs.run(); print(highs.getOptionValue('output_flag')[1])"


def test_nothing_is_said_on_the_standard_output(root):
    """In a process of its own: the solver's own words do not pass through Python's stream."""
    done = subprocess.run([sys.executable, "-c", USE], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
