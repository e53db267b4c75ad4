"""Work of `truesim gap`: policies on the robot and in simulation, the document of the result, and printed lines."""

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.markup import escape

from truesim.bridges.real import STAND_IN_LEVELS, RealBudget, RealEnv, make_stand_in
from truesim.bridges.real.comparison import RealTrace, SignalDiscrepancy, discrepancies, play_on, read_traces
from truesim.cli.console import messages, results, titled_table
from truesim.cli.gap_methods import MethodOptions, check_methods, compare_methods, print_methods, randomized_task
from truesim.cli.trained_policies import use_compilation_cache
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.persistence.atomic import write_json
from truesim.policies.gap import ROLES, MeanInterval, RealReturns
from truesim.policies.policy import check_policy, load_policy
from truesim.policies.runner import PolicyRunner
from truesim.policies.task import PolicyTask
from truesim.policies.tasks import make_task
from truesim.report.gap_page import GAP_DOCUMENT, write_gap_page

GAP_SCHEMA = "truesim.gap/1"
MAX_DRAWN_POINTS = 400
"""Largest number of points of a drawn signal."""


class GapOptions(NamedTuple):
    """Choices of a comparison on the command line."""

    on: str
    logs: tuple[Path, ...]
    episodes: int
    seed: int
    adaptation: MethodOptions = MethodOptions()
    """Methods of adaptation to compare."""


class _Played(NamedTuple):
    """One policy: real episodes, and the same in simulation."""

    traces: list[RealTrace]
    signals: list[SignalDiscrepancy]
    simulated: np.ndarray
    steps: int


def measure_gap(groups: Mapping[str, Sequence[Path]], out: Path, options: GapOptions, as_json: bool) -> None:
    """Play all policies, write `gap.json` and `gap.html`, and print the result."""
    use_compilation_cache()
    check_methods(options.adaptation, options.logs)
    others = [role for role, folders in groups.items() if folders and role != "policy"]
    if options.logs and others:
        raise TruesimError(f"Logs are of one policy; play --{others[0]} on a robot with --on.")
    policies = {role: [(folder, load_policy(folder)) for folder in folders] for role, folders in groups.items()}
    first = policies["policy"][0][1]
    tasks = {id(policy): _task_of(policy, first) for each in policies.values() for _, policy in each}
    told = randomized_task(tasks[id(first)], options.adaptation)
    played: dict[str, list[_Played]] = {}
    for role, each in policies.items():
        for k, (_, policy) in enumerate(each):
            messages().print(f"Playing {ROLES[role]} ({k + 1} of {len(each)}) …", highlight=False)
            traces = _traces(policy, out / "real" / f"{role}_{k}", options)
            task = tasks[id(policy)]
            signals, simulated = discrepancies(policy, task, traces)
            played.setdefault(role, []).append(_Played(traces, signals, simulated, task.steps))
    document = gap_document(played, tasks[id(first)], "logs" if options.logs else options.on)
    document["methods"] = _methods(document, told, first, options)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / GAP_DOCUMENT, document)
    page = write_gap_page(out)
    if as_json:
        print(json.dumps({key: value for key, value in document.items() if key != "discrepancies"}))
        return
    _print_gap(document, page)


def _methods(
    document: Mapping[str, Any], task: PolicyTask, policy: PolicyRunner, options: GapOptions
) -> list[dict[str, Any]]:
    """Lines of methods of adaptation; empty if none was asked for."""
    if not options.adaptation.methods:
        return []
    means = {row["role"]: row["real"]["value"] for row in document["roles"]}
    known = "nominal" in means and "oracle" in means and means["oracle"] > means["nominal"]
    ends = (means["nominal"], means["oracle"]) if known else None
    return compare_methods(task, lambda: _robot(options.on, policy), options.adaptation, ends, options.seed)


def _task_of(policy: PolicyRunner, first: PolicyRunner) -> PolicyTask:
    """Task of a policy, in the simulator that it was trained in."""
    said = policy.description
    if said["task"] != first.description["task"]:
        raise TruesimError(f"The policies are for {first.description['task']} and {said['task']}; compare one task.")
    task = make_task(said["task"], said["robot"].get("robot"))
    check_policy(policy, task)
    return task


def _traces(policy: PolicyRunner, folder: Path, options: GapOptions) -> list[RealTrace]:
    """Episodes of a policy on the robot: from logs, or played."""
    if options.logs:
        return read_traces(options.logs)
    env = _robot(options.on, policy)
    budget = RealBudget(episodes=options.episodes, stops=options.episodes)
    real = RealEnv(env, period=policy.period, folder=folder, budget=budget)
    try:
        return play_on(real, policy, options.episodes, seed=options.seed)
    finally:
        real.close()


def _robot(on: str, policy: PolicyRunner) -> gymnasium.Env:
    if on in STAND_IN_LEVELS:
        said = policy.description
        return make_stand_in(said["task"], on)
    module, _, name = on.partition(":")
    if not name:
        raise unknown_name("robot", on, (*STAND_IN_LEVELS, "module:function"))
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise TruesimError(f"The robot {on} cannot be loaded: {error}.") from error
    try:
        env = make()
    except Exception as error:
        raise TruesimError(f"The robot {on} cannot be made: {type(error).__name__}: {error}.") from error
    if not (hasattr(env, "reset") and hasattr(env, "step")):
        raise TruesimError(f"{on} returns {type(env).__name__}; a robot is an environment with reset and step.")
    return env


def gap_document(played: Mapping[str, Sequence[_Played]], task: PolicyTask, real: str) -> dict[str, Any]:
    """Content of `gap.json`."""
    returns = RealReturns({role: [_values(one) for one in each] for role, each in played.items()})
    rows = [_row(role, each, returns) for role, each in played.items()]
    closed, valid = returns.gap_closed(), returns.is_valid()
    mean = returns.mean("policy")
    sentence = f"The policy returns {mean.value:.3g} on the robot, 95 % interval {mean.low:.3g} to {mean.high:.3g}."
    if closed is not None:
        sentence += (
            f" It closes {100 * closed.value:.0f} % of the gap ({100 * closed.low:.0f} to {100 * closed.high:.0f} %)."
        )
    if valid is False:
        sentence += (
            " The comparison is not valid: the oracle is not better than the references by three standard errors."
        )
    beyond = returns.gap_closed_from_uniform()
    return {
        "schema": GAP_SCHEMA,
        "task": task.name,
        "real": real,
        "sentence": sentence,
        "roles": rows,
        "gap_closed_from_uniform": None if beyond is None else beyond._asdict(),
        "valid": valid,
        "discrepancies": [_described(each) for each in _median_signals(played["policy"])],
    }


def _values(one: _Played) -> np.ndarray:
    return np.array([trace.value for trace in one.traces])


def _row(role: str, each: Sequence[_Played], returns: RealReturns) -> dict[str, Any]:
    lengths = [len(trace.log.time) < one.steps for one in each for trace in one.traces]
    closed = None if role in ("nominal", "oracle") else returns.gap_closed(role)
    return {
        "role": role,
        "name": ROLES[role],
        "short": role,
        "policies": len(each),
        "episodes": sum(len(one.traces) for one in each),
        "ended_early": int(sum(lengths)),
        "returns": [_values(one).tolist() for one in each],
        "real": returns.mean(role)._asdict(),
        "simulated": float(np.mean([one.simulated.mean() for one in each])),
        "gap_closed": None if closed is None else closed._asdict(),
    }


def _median_signals(each: Sequence[_Played]) -> list[SignalDiscrepancy]:
    """Discrepancies of the first policy, with medians over all policies."""
    medians = np.median([[(s.median, s.relative) for s in one.signals] for one in each], axis=0)
    first = each[0].signals
    return [s._replace(median=float(m), relative=float(r)) for s, (m, r) in zip(first, medians, strict=True)]


def _described(signal: SignalDiscrepancy) -> dict[str, Any]:
    every = max(1, len(signal.time) // MAX_DRAWN_POINTS)
    lists = {name: getattr(signal, name)[::every].tolist() for name in ("time", "real", "simulated")}
    return {"name": signal.name, "median": signal.median, "relative": signal.relative, **lists}


def _print_gap(document: Mapping[str, Any], page: Path) -> None:
    console = results()
    table = titled_table("Returns", "policy", "on the robot", "in simulation", "gap closed", right=True)
    for row in document["roles"]:
        closed = "" if row["gap_closed"] is None else _shown(MeanInterval(**row["gap_closed"]))
        table.add_row(escape(row["name"]), _shown(MeanInterval(**row["real"])), f"{row['simulated']:.3g}", closed)
    console.print(table)
    table = titled_table("Motion in simulation beside the robot", "signal", "difference", "relative", right=True)
    for each in document["discrepancies"]:
        table.add_row(escape(each["name"]), f"{each['median']:.3g}", f"{100 * each['relative']:.0f} %")
    console.print(table)
    if document["methods"]:
        print_methods(document["methods"])
    console.print(escape(document["sentence"]), highlight=False)
    console.print(f"Result in {escape(str(page.parent))}; open {escape(str(page))} in a browser.")


def _shown(e: MeanInterval) -> str:
    return escape(f"{e.value:.3g} [{e.low:.3g}, {e.high:.3g}]")
