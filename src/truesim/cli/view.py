"""`truesim view`: a robot, a log or a fit in a browser."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import FloatingBase, LogsIfAny, Mapping, existing_robot
from truesim.cli.console import results

ViewSubject = Annotated[
    Path,
    typer.Argument(
        help="Robot file (MJCF or URDF), or folder of a fit or of a policy.",
        show_default=False,
        metavar="ROBOT|FIT|POLICY",
        callback=existing_robot,
    ),
]
LOOPBACK_ADDRESS = "127.0.0.1"
Host = Annotated[
    str,
    typer.Option("--host", help="Address to listen on; by default only this machine can connect.", metavar="ADDRESS"),
]
Port = Annotated[
    int | None,
    typer.Option("--port", help="Port to listen on; by default the first free one from 8080 on.", show_default=False),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")]
ViewPage = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Write a page that plays without a server, and end.", metavar="FILE", show_default=False
    ),
]


def view(
    shown: ViewSubject,
    logs: LogsIfAny = None,
    mapping: Mapping = None,
    floating_base: FloatingBase = False,
    out: ViewPage = None,
    host: Host = LOOPBACK_ADDRESS,
    port: Port = None,
    no_browser: NoBrowser = False,
) -> None:
    """Show a robot in 3-D: its joints on sliders, the motion of a log, a fit beside the recording, or a policy.

    With a fit, the real robot is solid; the simulations with the estimates (blue) and with the start values (orange)
    are ghosts. Of a policy, one episode is shown. Ctrl-C ends it.
    """
    lazy.viewer_library.viewer()
    if lazy.policy_motion.is_policy(shown):
        replay = lazy.policy_motion.policy_replay(shown)
        if out is None:
            serve(lazy.viewing.view_replay(replay, host, port), no_browser)
        else:
            _write_page(replay, out)
        return
    subject = lazy.subject.read_subject(shown, floating_base)
    recorded = lazy.log_warnings.read_checked(subject.model, logs, mapping or subject.mapping) if logs else []
    prepared = lazy.build.prepare_logs(subject.model, recorded) if recorded else []
    if out is not None:
        if prepared:
            replay = next(iter(lazy.replay.log_replays(subject.model, prepared[:1]).values()))
        elif subject.fit is not None:
            replay = next(iter(lazy.replay.fit_replays(shown).values()))
        else:
            replay = lazy.replay.robot_replay(subject.model, subject.model.name)
        _write_page(replay, out)
        return
    if prepared:
        viewing = lazy.viewing.view_log(subject.model, prepared, host, port)
    elif subject.fit is not None:
        viewing = lazy.viewing.view_fit(subject.fit, host, port)
    else:
        viewing = lazy.viewing.view_robot(subject.model, host, port)
    serve(viewing, no_browser)


def _write_page(replay: "lazy.replay.Replay", out: Path) -> None:
    out.write_text(lazy.nodes.record_page(replay), encoding="utf-8")
    results().print(f"The replay is in {out} (open it in a browser).", markup=False)


def serve(viewing: "lazy.viewing.Viewing", no_browser: bool) -> None:
    """Print the address, open a browser and wait for Ctrl-C."""
    results().print(f"Open {viewing.address} in a browser; Ctrl-C ends it.", markup=False)
    if not no_browser:
        webbrowser.open(viewing.address)
    try:
        viewing.server.sleep_forever()
    except KeyboardInterrupt:
        viewing.stop()
