"""`truesim`: the entry point, and how errors are shown."""

import os
import sys

import jax
import typer
from rich.console import Console
from rich.markup import escape

from truesim.cli.bench import bench
from truesim.cli.calibrate import calibrate
from truesim.cli.demo import demo
from truesim.cli.design import design
from truesim.cli.evaluate import evaluate
from truesim.cli.identify import identify
from truesim.cli.inspect import inspect
from truesim.cli.lists import spread
from truesim.cli.posterior import posterior
from truesim.cli.report import report
from truesim.cli.simulate import simulate
from truesim.cli.suggest import suggest
from truesim.cli.watch import watch
from truesim.core.errors import TruesimError

app = typer.Typer(
    name="truesim",
    help="Make a robot simulator agree with the real machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
INTERRUPTED = 130
"""Exit code after Ctrl-C, which typer gives as well."""
for verb in (inspect, simulate, identify, evaluate, suggest, posterior, calibrate, design, watch, report, demo, bench):
    app.command()(verb)


def run() -> None:
    """Runs the command line; a user's mistake is one sentence and exit code 2."""
    try:
        with jax.enable_x64(True):
            app(spread(sys.argv[1:]))
    except TruesimError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        _fail("Interrupted.", INTERRUPTED)
    except Exception as error:
        if os.environ.get("TRUESIM_DEBUG"):
            raise
        _fail(
            f"Unexpected {type(error).__name__}: {error}. This is a defect; TRUESIM_DEBUG=1 shows where.",
            1,
        )


def _fail(sentence: str, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[bold red]error:[/] {escape(sentence)}")
    sys.exit(code)
