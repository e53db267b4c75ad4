"""The verbs of `truesim`: one table, and commands whose modules are imported when they are called."""

import inspect
import os
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from truesim.cli import lazy
from truesim.cli.arguments import LOG_LIST
from truesim.cli.choices import check_choices, show_choices
from truesim.cli.config import use_config, write_config
from truesim.cli.console import quiet
from truesim.cli.help_panels import arrange, wrapped_example
from truesim.cli.lists import current_spelling, repeat_options

COMPLETION_VARIABLE = "_TRUESIM_COMPLETE"
"""Environment variable by which typer's completion scripts call the program."""


class VerbHelp(NamedTuple):
    """A verb in the list of commands, and examples for its own help."""

    line: str
    examples: tuple[str, ...]


VERB_TABLE = {
    "demo": VerbHelp(
        "Identify a built-in arm from recordings of a different one.",
        ("truesim demo", "truesim demo --out out/demo --no-open"),
    ),
    "studio": VerbHelp(
        "Identify a robot step by step in a browser.",
        ("truesim studio", "truesim studio robot.xml run0.csv run1.csv --out fit"),
    ),
    "inspect": VerbHelp(
        "Show the content of a robot file, or which parameters logs can identify.",
        (
            "truesim inspect robot.urdf",
            "truesim inspect robot.xml --only 'joints/*.damping'",
            "truesim inspect robot.xml run.csv",
            "truesim inspect robot.xml run.csv --write-mapping mapping.toml",
        ),
    ),
    "identify": VerbHelp(
        "Identify parameters of a robot from logs, with confidence intervals.",
        (
            "truesim identify robot.xml run0.csv run1.csv --holdout run2.csv --free 'bodies/*.mass' 'joints/*.damping' "
            "--out fit",
            "truesim identify arm.urdf torques.csv --preset arm --out fit",
            "truesim identify robot.xml run.csv --free bodies/hand.mass --tie 'actuators/*.delay' --live --out fit",
            "truesim identify --config fit/fit.toml --out again",
        ),
    ),
    "evaluate": VerbHelp(
        "Show the open-loop prediction error of a fit or a robot file on logs.",
        ("truesim evaluate fit run2.csv --window 0.5", "truesim evaluate robot.xml run2.csv --json"),
    ),
    "compare": VerbHelp(
        "Show several fits side by side: values, errors and options that differ.",
        ("truesim compare fit-rigid fit-compliant", "truesim compare fit0 fit1 fit2 --out comparison.html"),
    ),
    "report": VerbHelp(
        "Write the report of a fit again.",
        ("truesim report fit --open",),
    ),
    "view": VerbHelp(
        "Show a robot, the motion of a log, a fit or a policy in 3-D in a browser.",
        (
            "truesim view robot.xml",
            "truesim view robot.xml run.csv",
            "truesim view fit",
            "truesim view walk",
            "truesim view fit --out replay.html",
        ),
    ),
    "posterior": VerbHelp(
        "Sample parameters from the posterior of a fit, for domain randomization.",
        ("truesim posterior fit --out possible", "truesim posterior fit --kind mixture --variants 20 --out possible"),
    ),
    "calibrate": VerbHelp(
        "Measure on simulated logs how often the intervals of a fit contain the truth.",
        ("truesim calibrate fit --repeats 200 --out calibration",),
    ),
    "suggest": VerbHelp(
        "Suggest which term of the physics a network should replace or correct.",
        ("truesim suggest robot.xml run0.csv run1.csv --fit fit --out suggested",),
    ),
    "design": VerbHelp(
        "Design the motion that reduces the uncertainty of parameters most.",
        (
            "truesim design robot.xml --free 'bodies/*.mass' --seconds 10 --speed 2 --out excitation.csv",
            "truesim design robot.xml --free 'joints/*.damping' --seconds 8 --speed 2 elbow=1 --fit fit",
        ),
    ),
    "watch": VerbHelp(
        "Estimate parameters online from a stream, and detect sudden changes.",
        ("truesim watch robot.xml live.csv --free bodies/hand.mass --out watched",),
    ),
    "simulate": VerbHelp(
        "Simulate a robot and write the motion as a log.",
        (
            "truesim simulate robot.xml --seconds 5 --out motion.csv",
            "truesim simulate fit --seconds 5 --controls run.csv --start-from-log --out motion.csv",
        ),
    ),
    "plan": VerbHelp(
        "Plan the motion that minimizes the costs of a task within limits.",
        ("truesim plan robot.xml task.toml --starts 8 --out plan.csv",),
    ),
    "train": VerbHelp(
        "Train a policy for a task in simulation, around what logs leave possible.",
        (
            "truesim train cart-pole-swingup --live --out swingup",
            "truesim train go2-joystick --robot unitree_go2/scene.xml --randomize fit --out walk",
        ),
    ),
    "play": VerbHelp(
        "Play a trained policy in truesim or in MuJoCo.",
        ("truesim play walk --in mujoco",),
    ),
    "gap": VerbHelp(
        "Play a policy on the robot beside simulation, and measure the gap that is left.",
        (
            "truesim gap swing --on R2 --nominal plain --oracle best --out gap",
            "truesim gap swing --log real/ --out gap",
        ),
    ),
    "cache": VerbHelp(
        "Show or clear the compiled kernels that are kept on disk.",
        ("truesim cache", "truesim cache clear"),
    ),
}


class PlainHelp:
    """Commands whose help shows arguments as they are typed: FIT instead of {FIT}, and --help without a type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Words of the line that shows the usage."""
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        plain = [piece.replace("{", "").replace("}", "") for piece in pieces]
        return [piece.removesuffix("...") if "…" in piece else piece for piece in plain]

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Verb(PlainHelp, TyperCommand):
    """A command whose list options take several words, and which runs in float64."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments after expanding lists and old spellings of options, with the defaults of a config file."""
        options = [parameter for parameter in self.params if parameter.param_type_name == "option"]
        several = {word: parameter for parameter in options if parameter.multiple for word in parameter.opts}
        files = {word for word, parameter in several.items() if parameter.metavar == LOG_LIST}
        known = {word for parameter in options for word in parameter.opts}
        arguments = [current_spelling(word, known) for word in args]
        use_config(ctx, arguments)
        rest = super().parse_args(ctx, repeat_options(arguments, several, files))
        if not ctx.resilient_parsing:
            check_choices(str(self.name), self.params, ctx.params)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the verb in float64, with the threads it asks for; a config file of it is written with the result."""
        with quiet(bool(ctx.params.get("quiet"))), lazy.jax.enable_x64(True):
            if not self._has_own_quiet:
                del ctx.params["quiet"]
            if (threads := ctx.params.get("threads", 1)) == 1:
                result = super().invoke(ctx)
            else:
                with lazy.native.use_threads(threads):
                    result = super().invoke(ctx)
            if "config" in ctx.params:
                write_config(ctx)
            return result

    @property
    def _has_own_quiet(self) -> bool:
        return "quiet" in inspect.signature(inspect.unwrap(self.callback)).parameters  # type: ignore[arg-type]


class VerbList(PlainHelp, TyperGroup):
    """Command group for the help of `truesim` itself: lists the verbs without importing them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all verbs, in the order of the table."""
        return list(VERB_TABLE)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Name and help line of a verb; the verb itself where Tab completes its options."""
        if cmd_name not in VERB_TABLE:
            return None
        return load_verb(cmd_name) if is_completing() else TyperCommand(cmd_name, help=VERB_TABLE[cmd_name].line)


def is_completing() -> bool:
    """True if the shell asks for completions."""
    return COMPLETION_VARIABLE in os.environ


def list_verbs() -> TyperGroup:
    """The command `truesim` without a verb."""
    ending = "`truesim VERB --help` shows the arguments of a verb, with examples."
    app = _typer(cls=VerbList, epilog=ending, add_completion=True)

    @app.callback()
    def truesim(
        version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    ) -> None:
        """Make a robot simulator agree with the real machine."""

    group = typer.main.get_command(app)
    arrange(group.params)
    return group  # type: ignore[return-value]


def load_verb(name: str) -> TyperCommand:
    """Import the module of a verb and make its command."""
    command = _command(name, getattr(import_module(f"truesim.cli.{name}"), name))
    if not any(parameter.name == "quiet" for parameter in command.params):
        command.params.append(_command(name, _quiet).params[0])
    show_choices(name, command.params)
    arrange(command.params)
    return command


def _command(name: str, function: Callable[..., object]) -> TyperCommand:
    app = _typer()
    app.command(
        name,
        cls=Verb,
        help="\n\n".join(" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n")),
        epilog="[bold]Examples[/]\n" + "\n".join(escape(wrapped_example(each)) for each in VERB_TABLE[name].examples),
    )(function)
    return typer.main.get_command(app)  # type: ignore[return-value]


def _quiet(
    quiet: Annotated[bool, typer.Option("--quiet", help="Print results only, no messages and no progress.")] = False,
) -> None:
    """Declares the option that every verb has."""


def _typer(add_completion: bool = False, **options: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )
