"""Comparisons with other engines, and the ratios to reach."""

from dataclasses import dataclass
from functools import partial

from benchmarks.process import Task

SLOW = 600.0
"""Time limit of measurements that XLA compiles for a minute or more [s]."""


@dataclass(frozen=True)
class Comparison:
    """One row of the table; its ratio is the peer's time divided by ours."""

    key: str
    """Short name on the command line."""
    name: str
    """Description of the measurement."""
    ours: Task
    peer: Task | float
    """The peer's measurement, or a fixed time limit [s]."""
    peer_name: str
    target: float
    """Ratio to reach."""
    unit: str = "us"
    tolerance: float | None = None
    """Largest difference of equal outputs, relative to one plus the largest entry."""
    slow: bool = False
    """True if it takes more than a minute."""


_ours = partial(Task, "benchmarks.ours")
_contact = partial(Task, "benchmarks.contact")
_mujoco = partial(Task, "benchmarks.peers.mujoco_c")
_mjx = partial(Task, "benchmarks.peers.mjx", double=False, limit=SLOW)
_brax = partial(Task, "benchmarks.peers.brax", double=False, limit=SLOW)
_pinocchio = Task("benchmarks.peers.pinocchio", "derivatives")
_tinydiffsim = Task("benchmarks.peers.tinydiffsim", "arm")

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
        "lengths of a double pendulum, one of 3,600 Levenberg-Marquardt solves in a batch",
        Task("benchmarks.two_links", "solve"),
        Task("benchmarks.peers.scipy_solves", "solve"),
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


def _wait(key: str, name: str, task: str, against: float, slow: bool = True) -> Comparison:
    """CPU time of a whole process, against the time allowed [s]."""
    ours = Task("benchmarks.wait", task, limit=SLOW)
    return Comparison(f"wait-{key}", name, ours, against, "time allowed", 1, unit="s", slow=slow)


def _wait_peer(key: str, name: str, task: str, target: float) -> Comparison:
    """CPU time of a whole process, against that of MuJoCo's identification toolbox."""
    ours, peer = (Task("benchmarks.wait", name, limit=SLOW) for name in (task, "peer"))
    return Comparison(f"wait-{key}", name, ours, peer, "mujoco.sysid", target, unit="s", slow=True)


WAIT = (
    _wait("help", "`truesim --help`, whole process", "help", 0.2, slow=False),
    _wait("import", "`import truesim`, whole process", "import", 0.3, slow=False),
    _wait("inspect", "`truesim inspect` of a Panda, whole process", "inspect", 1.2, slow=False),
    _wait("identify-cold", "`truesim identify` of 21 parameters, cold", "identify cold", 5.0),
    _wait_peer(
        "identify-cold-peer", "`truesim identify` of 21 parameters, cold, against the peer", "identify cold", 0.5
    ),
    _wait("identify", "`truesim identify` of 21 parameters, second time", "identify", 2.0),
    _wait_peer(
        "identify-peer", "`truesim identify` of 21 parameters, second time, against the peer", "identify", 1 / 0.9
    ),
    _wait("half-log", "`truesim identify` of 21 parameters, another log", "identify half log", 2.0),
    _wait("other-start", "`truesim identify` of 21 parameters, other start values", "identify other start", 2.0),
    _wait("demo-cold", "`truesim demo`, cold", "demo cold", 5.0),
    _wait("demo", "`truesim demo`, second time", "demo", 3.0),
    _wait("inertias-cold", "`truesim identify` of 70 inertial parameters, cold", "inertias cold", 10.0),
    _wait("boxpush-cold", "`truesim identify` with rigid contact, cold", "boxpush cold", 6.0),
    _wait("boxpush", "`truesim identify` with rigid contact, second time", "boxpush", 3.0),
    _wait("posterior", "`truesim posterior` of a fit, second time", "posterior", 2.0),
    _wait("report", "`truesim report` of a fit, second time", "report", 2.0),
    _wait("evaluate", "`truesim evaluate` of a fit, second time", "evaluate", 2.0),
)
_MENAGERIE_TARGETS = {
    "go2": ("Unitree Go2", 7, 10),
    "anymal": ("ANYmal C", 6, 8),
    "go1": ("Unitree Go1", 6, 8),
    "barkour": ("Barkour vB", 4, 4),
    "h1": ("Unitree H1", 5, 4),
    "t1": ("Booster T1", 5, 4),
    "g1": ("Unitree G1, 24 meshes", 4.5, 2.5),
    "shadow": ("Shadow hand", 4, 3.5),
    "panda": ("Franka Panda", 3, 3),
    "panda-cube": ("Franka Panda that holds a cube", 3, 3),
    "kinova": ("Kinova Gen3", 1.5, 1.5),
}
"""Robots of `benchmarks.menagerie`: name, and the ratios to reach at rest and in motion."""
_menagerie = partial(Task, "benchmarks.menagerie", limit=SLOW)
MENAGERIE = tuple(
    Comparison(
        f"{robot}-{kind}",
        f"{name} with MuJoCo's contact, {words}, step, batch 1,024",
        _menagerie(f"ours-{robot}-{kind}"),
        _menagerie(f"mujoco-{robot}-{kind}"),
        "mujoco.rollout",
        target,
        slow=True,
    )
    for robot, (name, *targets) in _MENAGERIE_TARGETS.items()
    for kind, words, target in zip(("stand", "move"), ("at rest", "moving"), targets, strict=True)
)
_MENAGERIE_DERIVATIVES = {"go2": 22, "anymal": 15, "h1": 10, "g1": 10, "shadow": 10, "panda": 10}
"""Robots, and the ratio of step Jacobians to centered differences to reach."""
MENAGERIE_DERIVATIVES = tuple(
    row
    for robot, jacobian_target in _MENAGERIE_DERIVATIVES.items()
    for name in (_MENAGERIE_TARGETS[robot][0],)
    for row in (
        Comparison(
            f"{robot}-gradient",
            f"gradient of a rollout of {name} by all controls, a step, batch 1,024",
            _menagerie(f"gradient-{robot}"),
            _menagerie(f"rollout-{robot}"),
            "our forward pass",
            0.25,
            slow=True,
        ),
        Comparison(
            f"{robot}-jacobian",
            f"step Jacobian of {name} at rest by state and control, batch 256",
            _menagerie(f"jacobian-{robot}"),
            _menagerie(f"differences-{robot}"),
            "mjd_transitionFD, centered",
            jacobian_target,
            slow=True,
        ),
        Comparison(
            f"{robot}-one-jacobian",
            f"step Jacobian of {name} at rest by state and control, one instance",
            _menagerie(f"one-jacobian-{robot}"),
            _menagerie(f"differences-{robot}"),
            "mjd_transitionFD, centered",
            1,
            slow=True,
        ),
    )
)
_ALL = (
    *STEPS,
    *DERIVATIVES,
    *CONTACT,
    *SEARCH,
    *THREADS,
    *JAX_ENGINES,
    *COMPILATION,
    *WAIT,
    *MENAGERIE,
    *MENAGERIE_DERIVATIVES,
)
COMPARISONS = {row.key: row for row in _ALL}
"""All comparisons by key, in the order of the table."""
