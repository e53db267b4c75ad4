"""`truesim studio`: an identification step by step in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import LogsIfAny, Mapping
from truesim.cli.view import LOOPBACK_ADDRESS, Host, NoBrowser, Port, serve


def studio(
    robot: Annotated[
        Path | None, typer.Argument(help="Robot file, MJCF or URDF.", show_default=False, metavar="ROBOT")
    ] = None,
    logs: LogsIfAny = None,
    mapping: Mapping = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the fit; by default a temporary one.", metavar="DIR", show_default=False
        ),
    ] = None,
    host: Host = LOOPBACK_ADDRESS,
    port: Port = None,
    no_browser: NoBrowser = False,
) -> None:
    """Identify a robot step by step in a browser: robot, data, parameters, check, solve, results.

    Every stage shows the robot, and the check shows the command line that does the same. Closing the page does not end
    a running fit; Ctrl-C in the terminal ends the studio.
    """
    lazy.viewer_library.viewer()
    opened = lazy.application.Studio(host, port, out)
    if robot is not None:
        opened.guard(lambda: opened.load_robot(robot))
    if logs:
        opened.guard(lambda: opened.load_logs(logs, mapping))
    serve(opened.viewing, no_browser)
