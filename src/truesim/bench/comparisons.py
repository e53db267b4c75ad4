"""What is compared with what, and how much faster we have to be."""

from dataclasses import dataclass
from functools import partial

from truesim.bench.process import Task

SLOW = 600.0
"""Time limit of what XLA compiles for a minute [s]."""


@dataclass(frozen=True)
class Comparison:
    """One row of the table; its ratio is the peer's time by ours."""

    key: str
    """Short name, for the command line."""
    name: str
    """What is measured."""
    ours: Task
    peer: Task | float
    """The peer's side, or the time that we are allowed [s]."""
    peer_name: str
    target: float
    """Ratio to reach."""
    unit: str = "us"
    tolerance: float | None = None
    """Largest difference of the outputs that counts as equal, of one plus the largest entry."""
    slow: bool = False
    """Whether it takes more than a minute."""


_ours = partial(Task, "truesim.bench.ours")
_contact = partial(Task, "truesim.bench.contact")
_mujoco = partial(Task, "truesim.bench.peers.mujoco_c")
_mjx = partial(Task, "truesim.bench.peers.mjx", double=False, limit=SLOW)
_brax = partial(Task, "truesim.bench.peers.brax", double=False, limit=SLOW)
_pinocchio = Task("truesim.bench.peers.pinocchio", "derivatives")
_tinydiffsim = Task("truesim.bench.peers.tinydiffsim", "arm")

STEPS = (
    Comparison("arm", "7-joint arm, step, batch 1,024", _ours("arm"), _mujoco("arm"), "MuJoCo C", 12),
    Comparison(
        "rollout", "7-joint arm, 1,000-step rollout, one instance", _ours("rollout"), _mujoco("arm"), "MuJoCo C", 3
    ),
    Comparison(
        "quadruped",
        "12-joint quadruped without contact, step, batch 1,024",
        _ours("quadruped"),
        _mujoco("quadruped"),
        "MuJoCo C",
        8,
    ),
    Comparison("humanoid", "humanoid, step, batch 1,024", _ours("humanoid"), _mujoco("humanoid"), "MuJoCo C", 5),
    Comparison(
        "arm-tds",
        "7-joint arm, step, batch 1,024, against pytinydiffsim",
        _ours("arm"),
        _tinydiffsim,
        "pytinydiffsim, empty calls subtracted",
        1,
    ),
)
DERIVATIVES = (
    Comparison(
        "gradient",
        "gradient of a 1,000-step rollout loss, a step, against its forward pass",
        _ours("gradient"),
        _ours("loss"),
        "our forward pass",
        0.25,
    ),
    Comparison(
        "gradient-mujoco",
        "gradient of a 1,000-step rollout loss, a step, against MuJoCo's forward pass",
        _ours("gradient"),
        _mujoco("arm"),
        "MuJoCo C",
        1,
    ),
    Comparison(
        "derivatives",
        "acceleration and derivatives in q, v, tau, 7 joints, inertias as inputs, batch 1,024",
        _ours("derivatives"),
        _pinocchio,
        "Pinocchio, empty call subtracted",
        5,
    ),
)
CONTACT = (
    Comparison(
        "cube",
        "cube resting on a plane, rigid contact, step, batch 1,024",
        _contact("cube"),
        _mujoco("resting cube"),
        "MuJoCo C",
        2,
    ),
    Comparison(
        "standing",
        "12-joint quadruped standing on four feet, rigid contact, step, batch 1,024",
        _contact("quadruped"),
        _mujoco("standing quadruped"),
        "MuJoCo C",
        2,
    ),
    Comparison(
        "standing-compliant",
        "12-joint quadruped standing on four feet, compliant contact, step, batch 1,024",
        _contact("quadruped compliant"),
        _mujoco("standing quadruped"),
        "MuJoCo C",
        10,
    ),
    Comparison(
        "contact-gradient",
        "gradient of a rollout of the standing quadruped, rigid contact, a step",
        _contact("gradient"),
        _contact("loss"),
        "our forward pass",
        0.2,
    ),
    Comparison(
        "chain",
        "chain of lcp-physics hit by a ball, step, batch 1,024",
        _contact("chain"),
        15e-6,
        "time allowed",
        1,
    ),
)
SEARCH = (
    Comparison(
        "search",
        "lengths of a double pendulum, one Levenberg-Marquardt solve of 3,600 side by side",
        Task("truesim.bench.two_links", "solve"),
        Task("truesim.bench.peers.scipy_solves", "solve"),
        "a loop of scipy.optimize.least_squares on our compiled residual and Jacobian",
        20,
    ),
)
THREADS = (
    Comparison(
        "threads",
        "7-joint arm, 100-step rollout, batch 4,096, 2 threads",
        _ours("2 threads", cores=2),
        _ours("1 thread"),
        "1 thread",
        1.7,
    ),
)
JAX_ENGINES = (
    Comparison(
        "quadruped-mjx",
        "12-joint quadruped without contact, step, batch 256, float32, against MJX",
        _ours("quadruped 256", double=False),
        _mjx("free quadruped"),
        "MJX",
        50,
        slow=True,
    ),
    Comparison(
        "quadruped-mjx-rollout",
        "12-joint quadruped without contact, 100-step rollout, batch 256, float32",
        _ours("quadruped rollout", double=False),
        _mjx("free rollout"),
        "MJX",
        50,
        slow=True,
    ),
    Comparison(
        "arm-brax",
        "7-joint arm, step, batch 256, float32, against brax",
        _ours("arm 256", double=False),
        _brax("arm"),
        "brax",
        1,
        slow=True,
    ),
    Comparison(
        "quadruped-brax",
        "12-joint quadruped without contact, step, batch 256, float32, against brax",
        _ours("quadruped 256", double=False),
        _brax("quadruped"),
        "brax",
        1,
        slow=True,
    ),
    Comparison(
        "mjx-cube",
        "mjx.step of a cube on a plane, batch 256, float32, by native.compile",
        _mjx("cube kernel"),
        _mjx("cube"),
        "MJX by XLA",
        10,
        tolerance=1e-5,
    ),
    Comparison(
        "mjx-quadruped",
        "mjx.step of a quadruped on a plane, batch 256, float32, by native.compile",
        _mjx("quadruped kernel"),
        _mjx("quadruped"),
        "MJX by XLA",
        10,
        tolerance=1e-5,
        slow=True,
    ),
)


def _compilation(what: str, allowed: float, warm: bool) -> Comparison:
    state = "warm" if warm else "cold"
    name = f"compile the 7-joint {what}, {'second process, warm cache' if warm else 'from cold'}, tracing included"
    task = _ours(f"compile {what}", processes=3, warm=warm)
    return Comparison(f"compile-{what}-{state}", name, task, allowed, "time allowed", 1, unit="s")


COMPILATION = (
    _compilation("step", 2.0, warm=False),
    _compilation("gradient", 6.0, warm=False),
    _compilation("step", 0.8, warm=True),
    _compilation("gradient", 3.0, warm=True),
)
_ALL = (*STEPS, *DERIVATIVES, *CONTACT, *SEARCH, *THREADS, *JAX_ENGINES, *COMPILATION)
COMPARISONS = {row.key: row for row in _ALL}
"""All comparisons by key, in the order of the table."""
