"""A fast start: which modules may be loaded when, the public names, and their types."""

import ast
import resource
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import truesim as ts
from truesim.cli import lazy
from truesim.cli.verbs import VERB_TABLE, load_verb

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "truesim"
SCIENCE = {
    "jax",
    "torch",
    "numpy",
    "equinox",
    "mujoco",
    "polars",
    "plotly",
    "scipy",
    "optax",
    "llvmlite",
    "jinja2",
    "cmaes",
}
"""Packages that take long to load."""
UNUSED_BY_INSPECT = SCIENCE - {"jax", "numpy", "equinox", "mujoco"}
RUN = "import sys; sys.argv = {!r}\nfrom truesim.cli.main import run\ntry:\n    run()\nexcept SystemExit: pass\n"
LOADED = "\nimport sys; print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"


def packages(program: str) -> set[str]:
    """Packages that are loaded after a program in a fresh process."""
    done = subprocess.run([sys.executable, "-c", program + LOADED], capture_output=True, text=True, check=True)
    return set(done.stdout.rsplit("LOADED", 1)[1].split())


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import truesim", SCIENCE | {"typer", "rich"}),
        (RUN.format(["truesim", "--version"]), SCIENCE),
        (RUN.format(["truesim", "--help"]), SCIENCE),
        (RUN.format(["truesim", "identifi"]), SCIENCE),
        *((RUN.format(["truesim", verb, "--wrong-flag"]), SCIENCE | {"pydantic"}) for verb in VERB_TABLE),
        *((RUN.format(["truesim", verb, "--help"]), SCIENCE) for verb in VERB_TABLE),
    ],
)
def test_answers_before_science(program, absent):
    """Help, version and wrong flags need nothing that computes."""
    assert not packages(program) & absent


def test_inspect_loads_no_more_than_a_model_needs(tmp_path):
    """The content of a URDF is printed without readers of logs, solvers, compilers and plots."""
    robot = tmp_path / "arm.urdf"
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    robot.write_text(f"<robot name='arm'>{link.format('a')}{link.format('b')}{joint}</robot>")
    loaded = packages(RUN.format(["truesim", "inspect", str(robot)]))
    assert "mujoco" in loaded
    assert not loaded & UNUSED_BY_INSPECT


def test_a_fit_loads_no_libraries_that_it_does_not_use():
    """SciPy, optax and cmaes belong to searches, designs, posteriors and training, polars to unusual logs."""
    loaded = packages("import truesim\ntruesim.identify, truesim.Fit, truesim.design\n")
    assert "jax" in loaded
    assert not loaded & {"scipy", "optax", "cmaes", "polars", "plotly", "jinja2"}


LIGHT = ("truesim", "truesim.core.errors", "truesim.core.missing", "truesim.core.persistence.toml", "typer")
"""What a verb's module may import beside the standard library and other light modules of the command line."""


def imports(path: Path) -> set[str]:
    """Modules that a file imports, at any depth."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            inside = [f"{module}.{a.name}" for a in node.names if (PACKAGE.parent / module.replace(".", "/")).is_dir()]
            modules = [name for name in inside if (PACKAGE.parent / (name.replace(".", "/") + ".py")).is_file()]
            found |= set(modules) or {module}
    return found


@pytest.mark.parametrize("verb", VERB_TABLE)
def test_verbs_import_light_modules(verb):
    """A verb reaches what computes through `truesim` and `lazy`."""
    todo, seen = [f"truesim.cli.{verb}"], set()
    while todo:
        name = todo.pop()
        seen.add(name)
        for module in imports(PACKAGE.parent / (name.replace(".", "/") + ".py")):
            if module.startswith("truesim.cli."):
                todo += [module] if module not in seen else []
            else:
                top = module.split(".")[0]
                assert module in LIGHT or top == "rich" or top in sys.stdlib_module_names, f"{name} imports {module}"


def test_no_imports_inside_functions():
    """Modules that load late are listed in `truesim` and `lazy`, not hidden in functions."""
    for path in PACKAGE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
                if (path.stem, function.name) == ("fit", "report"):
                    continue  # the one door from a result up to its page
                assert not inside, f"{path.relative_to(PACKAGE)}:{function.name} imports inside a function"


def declared(stub: Path) -> dict[str, str]:
    """Names that a stub declares, with the object each comes from."""
    names = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names[node.targets[0].id] = names.pop(node.value.id)
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = ""
    return names


def test_the_stub_declares_the_public_names():
    """`__init__.pyi`, `__all__`, `dir` and the objects themselves agree."""
    names = declared(PACKAGE / "__init__.pyi")
    assert set(names) - {"__version__"} == set(ts.__all__)
    assert set(ts.__all__) < set(dir(ts))
    for name, origin in names.items():
        if origin:
            module = origin.rpartition(".")[0]
            assert getattr(ts, name) is getattr(__import__(module, fromlist=["x"]), name), name
    assert isinstance(ts.__version__, str)
    assert callable(ts.identify)
    with pytest.raises(AttributeError, match="no attribute 'idenfity'"):
        _ = ts.idenfity


def test_the_stub_declares_the_lazy_modules():
    """`lazy.pyi` and `lazy.py` agree, and every module exists."""
    names = {name: origin for name, origin in declared(PACKAGE / "cli" / "lazy.pyi").items() if origin}
    assert names == lazy.LAZY_MODULES
    for name, path in lazy.LAZY_MODULES.items():
        assert getattr(lazy, name).__name__ == path


SCRIPT = """
import truesim as ts

model = ts.load("robot.xml")
logs = ts.read_logs("run*.csv")
reveal_type(model)
reveal_type(logs)
fit = ts.identify(model, logs, ["bodies/*.mass"])
reveal_type(fit)
reveal_type(ts.Simulator.of(model))
reveal_type(ts.__version__)
model.no_such_attribute
ts.idenfity
"""


def test_types_of_a_users_script(tmp_path):
    """A type checker knows the public names, and finds a typo."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent"]
    done = subprocess.run([*command, str(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    revealed = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert revealed == [
        "truesim.physics.model.model.Model",
        "list[truesim.files.logs.log.Log]",
        "truesim.identification.fit.Fit",
        "truesim.physics.simulation.simulator.Simulator",
        "str",
    ], done.stdout + done.stderr
    assert 'no attribute "no_such_attribute"' in done.stdout
    assert 'no attribute "idenfity"' in done.stdout


@pytest.mark.parametrize("verb", VERB_TABLE)
def test_every_verb_has_its_own_help(verb):
    """The command is made of the verb's function; the table has a sentence and an example for it."""
    command = load_verb(verb)
    assert command.name == verb
    examples = VERB_TABLE[verb].examples
    assert examples
    assert all(example.startswith(f"truesim {verb}") for example in examples)
    assert VERB_TABLE[verb].line.endswith(".")
    assert all(p.help for p in command.params), [p.name for p in command.params if not p.help]


def cpu_seconds(command: list[str], repeats: int = 5) -> float:
    """CPU time of a command in fresh processes, the best of several [s]."""
    times = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        (["-c", "import truesim"], 0.2),
        (["-m", "truesim", "--version"], 0.3),
        (["-m", "truesim", "--help"], 0.3),
        (["-m", "truesim", "identify", "--wrong-flag"], 0.3),
        (["-m", "truesim", "inspect", "PANDA"], 1.5),
    ],
)
def test_start_is_fast(arguments, limit):
    """Limits of CPU time, on a machine that imports what a model needs in 0.9 s; a slower or busy one has more."""
    site = Path(sysconfig.get_paths()["purelib"])
    panda = site / "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
    assert panda.is_file()
    command = [str(panda) if word == "PANDA" else word for word in arguments]
    science = cpu_seconds([sys.executable, "-c", "import jax, equinox, mujoco"])
    assert cpu_seconds([sys.executable, *command]) < limit * max(1.0, science / 0.9)
