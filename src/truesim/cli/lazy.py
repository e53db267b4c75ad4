"""Modules that load when one of their names is first used.

A verb's module is imported before its arguments are parsed. At its top it imports only typer, `truesim` (whose names
load on first use) and light modules of the command line; it reaches everything else as `lazy.<module>.<name>`.
`lazy.pyi` declares the types.
"""

from importlib import import_module
from types import ModuleType

LAZY_MODULES = {
    "actuator_models": "truesim.physics.model.actuator_models",
    "application": "truesim.studio.application",
    "before_after": "truesim.scenes.before_after",
    "build": "truesim.identification.problem.build",
    "comparison": "truesim.report.comparison",
    "comparison_table": "truesim.cli.comparison_table",
    "control": "truesim.control",
    "coverage": "truesim.cli.coverage",
    "demo_robot": "truesim.cli.demo_robot",
    "designing": "truesim.cli.designing",
    "diagnose_options": "truesim.identification.diagnose.options",
    "evaluation": "truesim.identification.diagnose.evaluation",
    "effort_limits": "truesim.identification.regression.limits",
    "excitation": "truesim.identification.excitation",
    "fit_folder": "truesim.identification.fit_folder",
    "fit_observer": "truesim.cli.fit_observer",
    "fit_page": "truesim.report.fit_page",
    "fit_tables": "truesim.cli.fit_tables",
    "gap_methods": "truesim.cli.gap_methods",
    "guessed_mapping": "truesim.cli.guessed_mapping",
    "inspect_logs": "truesim.cli.inspect_logs",
    "inspect_ports": "truesim.cli.inspect_ports",
    "inspect_robot": "truesim.cli.inspect_robot",
    "jax": "jax",
    "live_pages": "truesim.cli.live_pages",
    "log_warnings": "truesim.cli.log_warnings",
    "logs": "truesim.files.logs",
    "measured_gap": "truesim.cli.measured_gap",
    "motion": "truesim.cli.motion",
    "native": "truesim.native",
    "nodes": "truesim.scenes.nodes",
    "online": "truesim.identification.online",
    "payload": "truesim.cli.payload",
    "per_log": "truesim.identification.problem.per_log",
    "planned": "truesim.cli.planned",
    "replayed": "truesim.cli.replayed",
    "policies": "truesim.policies",
    "policy_motion": "truesim.studio.policy_motion",
    "posterior_tables": "truesim.cli.posterior_tables",
    "replay": "truesim.scenes.replay",
    "sampling": "truesim.cli.sampling",
    "score_test": "truesim.identification.diagnose.score_test",
    "search_run": "truesim.identification.search.run",
    "solve_options": "truesim.identification.solve.options",
    "subject": "truesim.cli.subject",
    "suggest_page": "truesim.report.suggest_page",
    "suggestion": "truesim.identification.suggestion",
    "suggestion_folder": "truesim.identification.suggestion.folder",
    "suggestion_tables": "truesim.cli.suggestion_tables",
    "torque_errors": "truesim.identification.regression.errors",
    "torques": "truesim.identification.regression.torques",
    "trained_policies": "truesim.cli.trained_policies",
    "verbs": "truesim.cli.verbs",
    "viewer_library": "truesim.scenes.viewer_library",
    "viewing": "truesim.studio.viewing",
    "watch_screen": "truesim.cli.watch_screen",
}


def __getattr__(name: str) -> ModuleType:
    """Import a module by its short name."""
    if name not in LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = module = import_module(LAZY_MODULES[name])
    return module
