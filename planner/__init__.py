"""tokenwatt: from a question about AI compute to a proven plan.

    import planner
    plan = planner.solve("examples/mixed_fleet.json")
    print(plan.objective["value"], plan.gap, planner.verify_plan(plan))

The names below load their modules on first use, so that the import stays light.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

IDENTITY = "tokenwatt:planner"
__version__ = "0.1.0"

_HOME = Path(__file__).resolve().parent.parent

_PUBLIC = {
    "PlanSpec": "planner.spec",
    "SpecError": "planner.spec",
    "load_spec": "planner.spec",
    "Plan": "planner.plan",
    "load_plan": "planner.plan",
    "solve": "planner.pipeline",
    "check_spec": "planner.pipeline",
    "verify_plan": "planner.verify",
}

__all__ = sorted(_PUBLIC)


def _guard_siblings() -> None:
    """Refuse foreign packages that share our top-level names, by place and by mark."""
    for name in ("catalog", "models", "solvers"):
        package = import_module(name)
        home = Path(getattr(package, "__file__", None) or "nowhere").resolve().parent.parent
        if home != _HOME or getattr(package, "IDENTITY", None) != f"tokenwatt:{name}":
            raise ImportError(
                f"tokenwatt needs its own package '{name}' in {_HOME / name}, but Python found another one in "
                f"{home / name}. Remove or rename that one, or install tokenwatt in an environment of its own."
            )


_guard_siblings()


def __getattr__(name: str):
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value  # later lookups skip this hook
        return value
    raise AttributeError(f"module 'planner' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
