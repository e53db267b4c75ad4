"""`truesim watch`: online estimates of parameters, and sudden changes of them."""

import truesim as ts
from truesim.cli import lazy
from truesim.cli import watch_options as given
from truesim.cli.arguments import Bounds, Channel, FloatingBase, Free, Mapping, Prior, Robot, Threads, Tie
from truesim.cli.console import results
from truesim.cli.pairs import pairs
from truesim.core.errors import TruesimError


def watch(
    robot: Robot,
    stream: given.Stream,
    free: Free,
    changes: given.Changes = None,
    out: given.OutputIfAny = None,
    first: given.First = 2.0,
    memory: given.Memory = 60.0,
    between_alarms: given.BetweenAlarms = 86400.0,
    patience: given.Patience = None,
    follow: given.Follow = False,
    mapping: Mapping = None,
    tie: Tie = None,
    bounds: Bounds = None,
    prior: Prior = None,
    channel: Channel = None,
    floating_base: FloatingBase = False,
    threads: Threads = 1,
    force: given.StartAgain = False,
) -> None:
    """Estimate parameters of ROBOT with 95 % intervals while samples arrive, and report sudden changes.

    Ctrl-C ends it; with --out, the same command continues from there.
    """
    options = lazy.build.ProblemOptions(
        ties=[t.split(",") for t in tie or []],
        bounds=pairs(bounds, "LOW:HIGH"),
        priors=pairs(prior, "MEAN:STD"),
        channels=channel or (),
    )
    watching = lazy.online.WatchOptions(("*",) if changes is None else tuple(changes), first, memory, between_alarms)
    model = ts.load(robot, floating_base=floating_base)
    columns = None if mapping is None else lazy.logs.read_mapping(mapping)
    watcher = lazy.online.Watcher(model, free, options=options, watching=watching)
    console = results()
    folder = None if out is None else lazy.online.WatchFolder(out, watcher, force=force)
    if folder is not None and folder.resumed:
        console.print(f"Continuing from {watcher.time:.6g} s in {out}.", markup=False)
    incoming = lazy.online.samples(
        stream,
        patience=patience,
        mapping=columns,
        follow=follow or patience is not None,
        waiting=lambda: console.print("Waiting for more samples; Ctrl-C ends it."),
    )
    with lazy.watch_screen.Screen(console, watcher) as screen:
        try:
            lazy.watch_screen.follow(watcher, incoming, screen, folder)
        except KeyboardInterrupt:
            console.print("Interrupted." if folder is None else "Interrupted; the same command continues.")
        finally:
            if folder is not None:
                folder.keep()
    if watcher.update is None:
        raise TruesimError(
            f"The stream ended after {watcher.samples} lines ({watcher.rejected} rejected), before the first "
            f"{first:g} s (--first) that the first estimate needs."
        )
    screen.summary(out)
