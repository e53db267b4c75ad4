"""Which geoms may touch is MuJoCo's: masks, excluded bodies, explicit pairs, parents and children."""

import mujoco
import numpy as np
import pytest

from truesim.files.robots.compiled import from_compiled
from truesim.physics.contact.pairs import touching_pairs, unsupported_pairs

FILES = 60
BODIES = 7


def random_file(seed: int) -> str:
    """A random forest of balls that all overlap, some of them welded, with random masks, excludes and pairs."""
    rng = np.random.default_rng(seed)
    children: dict[int, list[int]] = {i: [] for i in range(-1, BODIES)}
    for i in range(BODIES):
        children[int(rng.integers(-1, i)) if i else -1].append(i)

    def geom(name: str) -> str:
        masks = f'contype="{rng.integers(0, 4)}" conaffinity="{rng.integers(0, 4)}"'
        return f'<geom name="{name}" size="{rng.uniform(0.5, 1):.3f}" mass="1" {masks}/>'

    def body(i: int) -> str:
        joint = '<joint type="ball"/>' if rng.random() < 0.7 else ""
        inside = "".join(map(body, children[i]))
        geoms = "".join(geom(f"g{i}{k}") for k in range(rng.integers(1, 3)))
        return f'<body name="b{i}" pos="{rng.uniform(-0.1, 0.1):.3f} 0 0">{joint}{geoms}{inside}</body>'

    first, second = (rng.choice(BODIES, 2, replace=False) for _ in range(2))
    rules = f'<exclude body1="b{first[0]}" body2="b{first[1]}"/>'
    rules += f'<pair geom1="g{second[0]}0" geom2="g{second[1]}0"/>'
    flag = '<option><flag filterparent="disable"/></option>' if rng.random() < 0.3 else ""
    world = geom("ground") + "".join(map(body, children[-1]))
    return f"<mujoco>{flag}<worldbody>{world}</worldbody><contact>{rules}</contact></mujoco>"


@pytest.mark.parametrize("seed", range(FILES))
def test_pairs_are_mujocos_contacts(seed):
    """Where everything overlaps, MuJoCo's list of contacts has exactly our pairs."""
    m = mujoco.MjModel.from_xml_string(random_file(seed))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    theirs = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
    ours = {tuple(sorted(pair.geoms)) for pair in touching_pairs(from_compiled(m, None))}
    assert ours == theirs


def test_geoms_without_a_collision_function_are_listed():
    """A height field touches nothing, and is listed with what could touch it."""
    text = """<mujoco><asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 .1" elevation="0 1 1 0"/></asset><worldbody>
      <geom name="hills" type="hfield" hfield="h"/><geom name="floor" type="plane" size="1 1 1"/>
      <body><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>"""
    model = from_compiled(mujoco.MjModel.from_xml_string(text), None)
    assert unsupported_pairs(model) == (("ball", "hills"),)
    assert [tuple(model.geoms.names[g] for g in pair.geoms) for pair in touching_pairs(model)] == [("floor", "ball")]
