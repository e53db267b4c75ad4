"""Make a robot simulator agree with the real machine.

Names load on first use: `import truesim` reads no other module. `__init__.pyi` declares their types.
"""

from importlib import import_module

__version__ = "0.1.0"
__all__ = [
    "Blueprint",
    "CompliantContact",
    "Fit",
    "Log",
    "Model",
    "RigidContact",
    "Simulator",
    "State",
    "Task",
    "Trajectory",
    "TruesimError",
    "design",
    "identify",
    "load",
    "plan",
    "read_log",
    "read_logs",
    "record",
    "rollout",
    "save",
    "suggest",
    "with_actuator_model",
]

_MODULES = {
    "truesim.control": ("Task", "plan"),
    "truesim.core.errors": ("TruesimError",),
    "truesim.files.logs": ("Log", "read_log", "read_logs"),
    "truesim.files.robots": ("load", "save"),
    "truesim.identification.after_fit": ("design", "suggest"),
    "truesim.identification.fit": ("Fit",),
    "truesim.identification.pipeline": ("identify",),
    "truesim.physics.blueprint": ("Blueprint",),
    "truesim.physics.contact": ("CompliantContact", "RigidContact"),
    "truesim.physics.model.actuator_models": ("with_actuator_model",),
    "truesim.physics.model.model": ("Model",),
    "truesim.physics.simulation": ("Simulator", "State", "Trajectory", "record", "rollout"),
}
_DOORS = ("torch",)
"""Modules that are attributes of the package without an import of their own."""
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name in _DOORS:
        return import_module(f"truesim.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'truesim' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted([*__all__, "__version__", "__doc__", "__file__", "__name__", "__path__"])
