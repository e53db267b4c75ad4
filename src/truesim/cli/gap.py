"""`truesim gap`: a policy in simulation beside the robot."""

from pathlib import Path
from typing import Annotated

import typer

from truesim.cli import lazy
from truesim.cli.arguments import AsJson, OutputFolder, ReplaceFolder, Seed
from truesim.cli.outputs import check_folder
from truesim.cli.play import Episodes

GapPolicies = Annotated[
    list[Path],
    typer.Argument(help="Folders of policies, trained alike with several seeds.", metavar="POLICY…"),
]
OnReal = Annotated[
    str,
    typer.Option(
        "--on",
        help="The robot: R0, R1 or R2 for a stand-in in MuJoCo, or module:function of yours that returns an "
        "environment of gymnasium.",
        metavar="ROBOT",
    ),
]
RealLogs = Annotated[
    list[Path],
    typer.Option(
        "--log",
        help="Logs or folders of episodes that were played on the robot; nothing is played then.",
        metavar="LOG…",
    ),
]
NominalPolicies = Annotated[
    list[Path], typer.Option("--nominal", help="Policy trained in the nominal simulator.", metavar="POLICY")
]
UniformPolicies = Annotated[
    list[Path], typer.Option("--uniform", help="Policy trained with uniform randomization.", metavar="POLICY")
]
FixedPolicies = Annotated[list[Path], typer.Option("--fixed", help="Best fixed controller.", metavar="POLICY")]
OraclePolicies = Annotated[
    list[Path], typer.Option("--oracle", help="Policy trained on the robot itself.", metavar="POLICY")
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        help="Methods of adaptation to compare on the robot, with commas between: latent-awr, latent-cma-es, "
        "latent-bayesian, latent-hill-climbing, so-cma, pup-bayesian, up-osi, rma, or the controls latent-random and "
        "so-random.",
        metavar="NAMES",
    ),
]
MethodRandomization = Annotated[
    Path | None,
    typer.Option(
        "--randomize",
        help="Randomization (TOML) of the policies of --methods: what they are told, and adapt to.",
        metavar="FILE",
        show_default=False,
    ),
]
AdaptEpisodes = Annotated[
    int, typer.Option("--adapt-episodes", min=3, help="Real episodes of each adaptation of --methods.")
]
MethodSteps = Annotated[int, typer.Option("--steps", min=1, help="Control steps of training for --methods.")]
MethodWorkers = Annotated[
    str,
    typer.Option(
        "--workers",
        help="Where policies of --methods are trained: 1 for here, 'ray' or an address for a Ray cluster.",
        metavar="1|ray|ADDRESS",
    ),
]


def gap(
    policies: GapPolicies,
    out: OutputFolder,
    on: OnReal = "R1",
    log: RealLogs = [],  # noqa: B006
    nominal: NominalPolicies = [],  # noqa: B006
    uniform: UniformPolicies = [],  # noqa: B006
    fixed: FixedPolicies = [],  # noqa: B006
    oracle: OraclePolicies = [],  # noqa: B006
    episodes: Episodes = 10,
    methods: Methods = "",
    randomize: MethodRandomization = None,
    adapt_episodes: AdaptEpisodes = 20,
    steps: MethodSteps = 3_000_000,
    workers: MethodWorkers = "1",
    seed: Seed = 0,
    as_json: AsJson = False,
    force: ReplaceFolder = False,
) -> None:
    """Play policies on the robot and in simulation, and write what is left of the gap as gap.json and gap.html.

    The gap closed is (J - J of --nominal) / (J of --oracle - J of --nominal). A comparison is valid if the oracle
    exceeds every reference by three standard errors. Options of references can be given several times, for seeds.

    --methods adds a line of gap closed against real episodes for each method of adaptation, three searches each:
    truesim gap UNIFORM --nominal NOMINAL --oracle ORACLE --methods latent-bayesian,up-osi --randomize ranges.toml
    """
    check_folder(out, force)
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    adaptation = lazy.gap_methods.MethodOptions(names, randomize, adapt_episodes, steps, workers=workers)
    groups = {"policy": policies, "nominal": nominal, "uniform": uniform, "fixed": fixed, "oracle": oracle}
    options = lazy.measured_gap.GapOptions(on, tuple(log), episodes, seed, adaptation)
    lazy.measured_gap.measure_gap(groups, out, options, as_json)
