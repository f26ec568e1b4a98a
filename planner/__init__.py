"""flopwatt: capacity plans for AI compute with a proven bound on cost.

    import planner
    plan = planner.solve("examples/mixed_fleet.json")
    print(plan.objective["value"], plan.gap, planner.verify_plan(plan))

The public names load their modules on first use, so that the import stays light. The packages beside this one have
common names, so the import first makes sure that Python finds ours and not somebody else's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from planner.version import __version__ as __version__

IDENTITY = "flopwatt:planner"

__all__ = [
    "Plan",
    "PlanSpec",
    "SpecError",
    "WhatIf",
    "alternatives",
    "audit",
    "break_even",
    "calibrate",
    "characterise",
    "check_spec",
    "compare",
    "estimate",
    "export",
    "forecast",
    "frontier",
    "init",
    "layouts",
    "load_plan",
    "load_spec",
    "measure",
    "quote",
    "ratios",
    "replan",
    "replay",
    "robust",
    "sensitivity",
    "solve",
    "stale",
    "sweep",
    "validate",
    "verify_plan",
]

_HOME = Path(__file__).resolve().parent.parent
_SIBLINGS = ("catalog", "models", "solvers")


def _guard_siblings() -> None:
    """Refuse foreign packages under our top-level names, by place and by identity mark.

    Wheel and editable install alike keep the four folders side by side. Nothing foreign is executed on the way: the
    mark is looked up in the file that Python would run, not in the module.
    """
    for name in _SIBLINGS:
        found = _file_of(name)
        ours = _HOME / name
        if found is None:
            raise ImportError(
                f"flopwatt needs its own package '{name}' in {ours}, but it is not there. Reinstall flopwatt."
            )
        if found.parent != ours:
            way = found.parent if found.stem == "__init__" else found
            raise ImportError(
                f"flopwatt needs its own package '{name}' in {ours}, but Python finds another one first: {way}{_owners(name, way.parent)}. "
                f"Rename or remove that one, start Python from another folder, or install flopwatt in an environment of its own."
            )
        if f"flopwatt:{name}".encode() not in found.read_bytes():
            raise ImportError(
                f"flopwatt's own package '{name}' in {ours} was overwritten by another one{_owners(name, _HOME)}. "
                f"Uninstall that one and reinstall flopwatt, best in an environment of its own."
            )


def _file_of(name: str) -> Path | None:
    """Find the file that `import name` runs (or has run); None where there is no such package or it has no file of its own."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module without a spec was put in place by hand
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin).resolve()


def _owners(name: str, folder: Path) -> str:
    """Name the distributions that installed the package; empty without any."""
    from importlib.metadata import distributions  # slow to import, and wanted for a refusal only

    first = f"{name}/__init__.py"
    names = {d.name for d in distributions(path=[str(folder)]) if any(f.as_posix() == first for f in d.files or ())}
    others = sorted(names - {"flopwatt"})
    return f" (of the distribution {', '.join(others)})" if others else ""


_guard_siblings()

if TYPE_CHECKING:
    from planner.errors import SpecError
    from planner.library import (
        audit,
        calibrate,
        characterise,
        compare,
        estimate,
        export,
        forecast,
        init,
        layouts,
        measure,
        ratios,
        replan,
        replay,
        robust,
        stale,
        validate,
    )
    from planner.pipeline import check_spec, solve
    from planner.plan import Plan, load_plan
    from planner.spec.model import PlanSpec, load_spec
    from planner.studies.alternatives import alternatives
    from planner.studies.break_even import break_even
    from planner.studies.frontier import frontier
    from planner.studies.quotes.study import quote
    from planner.studies.sensitivity import sensitivity
    from planner.studies.sweeps.grid import sweep
    from planner.studies.whatif import WhatIf
    from planner.verify.plan import verify_plan
else:
    _MODULES = {
        "Plan": "planner.plan",
        "PlanSpec": "planner.spec.model",
        "SpecError": "planner.errors",
        "WhatIf": "planner.studies.whatif",
        "alternatives": "planner.studies.alternatives",
        "audit": "planner.library",
        "break_even": "planner.studies.break_even",
        "calibrate": "planner.library",
        "characterise": "planner.library",
        "check_spec": "planner.pipeline",
        "compare": "planner.library",
        "estimate": "planner.library",
        "export": "planner.library",
        "forecast": "planner.library",
        "frontier": "planner.studies.frontier",
        "init": "planner.library",
        "layouts": "planner.library",
        "load_plan": "planner.plan",
        "load_spec": "planner.spec.model",
        "measure": "planner.library",
        "quote": "planner.studies.quotes.study",
        "replan": "planner.library",
        "replay": "planner.library",
        "ratios": "planner.library",
        "robust": "planner.library",
        "sensitivity": "planner.studies.sensitivity",
        "solve": "planner.pipeline",
        "stale": "planner.library",
        "sweep": "planner.studies.sweeps.grid",
        "validate": "planner.library",
        "verify_plan": "planner.verify.plan",
    }

    def __getattr__(name):
        if name in _MODULES:
            value = getattr(import_module(_MODULES[name]), name)
            globals()[name] = value  # later look-ups skip this hook
            return value
        raise AttributeError(f"module 'planner' has no attribute {name!r}")

    class _Command(ModuleType):
        """A package with the name of a command: called, it answers as the function of this name does."""

        def __call__(self, *arguments, **options):
            name = self.__name__.rpartition(".")[2]
            return getattr(import_module(_MODULES[name]), name)(*arguments, **options)

    class _Package(ModuleType):
        """This package. Python puts each of its packages here once it is loaded, in place of a function of the same name."""

        def __setattr__(self, name, value):
            if name in _MODULES and isinstance(value, ModuleType):
                value.__class__ = _Command
            super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package

    def __dir__():
        return sorted({*globals(), *__all__})
