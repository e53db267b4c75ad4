"""Config files: the arguments and options of a command as TOML, read before they are parsed, written with a result.

Keys are the long names of options without their dashes, and the names of arguments in lower case. Paths are relative to
the folder of the file. What is given on the command line takes precedence.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from truesim import __version__
from truesim.core.errors import FileError, TruesimError, unknown_name
from truesim.core.missing import missing_file
from truesim.core.persistence.toml import toml_lines

CONFIG_NAME = "fit.toml"
"""Config file in the folder of a fit."""
OF_ONE_RUN = frozenset({"out", "force", "json", "quiet", "config", "live", "help"})
"""Options that do not change the result; they are not written."""


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help=f"TOML file with arguments and options, such as the {CONFIG_NAME} of an earlier fit; the command line "
        "takes precedence.",
        metavar="FILE",
        show_default=False,
    ),
]


def use_config(ctx: Any, arguments: Sequence[str]) -> None:
    """Take the values of the config file that is named in the arguments, if any, as the defaults of a command."""
    path = None
    for k, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == "--config":
            path = value if equals else next(iter(arguments[k + 1 :]), None)
    known = dict(_keys(ctx.command))
    if path is not None and "config" in known:
        ctx.default_map = read_config(Path(path), known)


def read_config(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the name of the parameter.

    Args:
        path: The config file.
        known: Parameters of the command by their keys in config files.
    """
    if not path.is_file():
        raise missing_file("config file", path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not TOML: {error}.") from None
    values = {}
    for key, value in document.items():
        if key not in known:
            raise unknown_name(f"key in {path}", key, known)
        values[known[key].name] = _checked(path, key, value, known[key])
    return values


def write_config(ctx: Any) -> None:
    """Write the arguments and options of a command that has run into its output folder, if it has any."""
    folder: Path = ctx.params["out"]
    if not folder.is_dir():
        return
    table = {
        key: _written(ctx.params[parameter.name], folder)
        for key, parameter in _keys(ctx.command)
        if key not in OF_ONE_RUN and _is_given(ctx, parameter.name)
    }
    head = f"# truesim {__version__}. To repeat this: {ctx.command_path} --config {CONFIG_NAME} --out FOLDER\n"
    (folder / CONFIG_NAME).write_text(head + toml_lines(table), encoding="utf-8")


def _keys(command: Any) -> Iterator[tuple[str, Any]]:
    """Keys of config files with the parameters of a command that they set."""
    for parameter in command.params:
        long = [word.removeprefix("--") for word in parameter.opts if word.startswith("--")]
        yield long[0] if long else parameter.name, parameter


def _checked(path: Path, key: str, value: Any, parameter: Any) -> Any:
    """A value of the form that the command line gives; paths are relative to the file."""
    several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
    if isinstance(value, list) and not several:
        raise TruesimError(f"{key} in {path} is a list; it takes one value.")
    if isinstance(value, dict):
        raise TruesimError(f"{key} in {path} is a table; it takes a value, a list or the name of a file.")
    values = value if isinstance(value, list) else [value]
    if _takes_paths(parameter):
        values = [str(path.parent / str(v)) for v in values]
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise TruesimError(f"{key} in {path} is {value!r}; it must be true or false.")
        return value
    texts = [str(v) for v in values]
    return texts if several else texts[0]


def _takes_paths(parameter: Any) -> bool:
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is not None:
        return "Path" in str(descriptor.annotation)
    return "path" in type(parameter.type).__name__.lower()


def _is_given(ctx: Any, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _written(value: Any, folder: Path) -> Any:
    if isinstance(value, list | tuple):
        return [_written(v, folder) for v in value]
    if not isinstance(value, Path):
        return value
    try:
        return Path(os.path.relpath(value.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return value.resolve().as_posix()
