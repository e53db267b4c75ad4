"""Libraries that load when one of their names is first used, as `libraries.scipy.stats`.

They take long to load, and most jobs need none of them. `libraries.pyi` declares the types.
"""

from importlib import import_module
from types import ModuleType

LIBRARIES = ("cmaes", "optax", "polars", "scipy")


def __getattr__(name: str) -> ModuleType:
    """Import a library by its name."""
    if name not in LIBRARIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = module = import_module(name)
    return module
