"""Write the versions that an environment holds as `constraints.txt`, for an install of just these.

python .ci/constraints.py PYTHON > constraints.txt      # PYTHON: the interpreter of that environment
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable

PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!]+")
HEAD = "# Versions on which the tests pass: pip install -c constraints.txt . Written by `make constraints`."


def pins(frozen: Iterable[str]) -> list[str]:
    """Return the pins among lines of `pip freeze`, sorted by name; a package installed from a folder or an address has none."""
    return sorted((line.strip() for line in frozen if PIN.fullmatch(line.strip())), key=str.casefold)


if __name__ == "__main__":
    listed = subprocess.run(
        [sys.argv[1], "-m", "pip", "freeze", "--exclude-editable"], capture_output=True, text=True, check=True
    )
    print("\n".join([HEAD, *pins(listed.stdout.splitlines())]))
