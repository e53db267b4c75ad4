"""The wheel and the source distribution: built by the backend, complete, and usable where they are unpacked."""

import email
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import truesim

ROOT = Path(__file__).parents[2]
NEEDED = (
    "truesim/py.typed",
    "truesim/__init__.pyi",
    "truesim/files/robots/arm.xml",
    "truesim/report/templates/fit.html",
    "truesim/report/templates/live.js",
)
"""Files that are no modules, without which something fails."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Folder with both distributions."""
    pytest.importorskip("hatchling", reason="the packaging backend is not installed: pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built):
    """All modules and data files, no tests, and the versions of Python that the classifiers promise."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = email.message_from_bytes(archive.read(f"truesim-{truesim.__version__}.dist-info/METADATA"))
    sources = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src" / "truesim").rglob("*.py")}
    assert sources | set(NEEDED) <= names
    assert all(name.startswith(("truesim/", "truesim-")) for name in names)
    assert metadata["Version"] == truesim.__version__
    promised = {c.rpartition(" ")[2] for c in metadata.get_all("Classifier") if "Python :: 3." in c}
    assert promised == {"3.11", "3.12", "3.13"}
    assert metadata["Requires-Python"] == ">=3.11"
    assert "platformdirs>=4.3" in metadata.get_all("Requires-Dist")


def test_the_source_distribution_can_be_built_from(built):
    """It holds what a build needs: settings, the read-me, the license and the source."""
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/truesim/__init__.py"} <= names
    assert not any(name.startswith((".venv", "out/")) for name in names)


def test_the_unpacked_wheel_runs(built, tmp_path):
    """The command line starts from the wheel's files, away from the clone."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    program = (
        "import truesim.cli.main as m, sys; print(m.__file__); sys.argv = ['truesim', 'identify', '--help']; m.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout
    assert "Identify parameters of ROBOT" in done.stdout


def test_every_direct_dependency_is_pinned():
    """`constraints.txt` has a version of each library that the package asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    for requirement in project["dependencies"]:
        assert requirement.partition(">")[0].lower() in pinned, requirement
