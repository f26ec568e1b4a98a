"""Run the command line: `python -m planner.cli`."""

import sys

from planner.cli.main import main

sys.exit(main())
