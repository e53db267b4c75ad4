"""MJCF texts that XML forbids, and files with equal base names, are read as MuJoCo reads them."""

import mujoco
import numpy as np
import pytest

from truesim.core.errors import FileError
from truesim.files.robots import load, loads
from truesim.files.robots.frames import matrix_of_quaternion


def body(name, *inside):
    """A body with a joint and a sphere."""
    return f'<body name="{name}"><joint/><geom size=".1"/>{"".join(inside)}</body>'


def robot(*inside):
    """A robot file."""
    return f"<mujoco><worldbody>{''.join(inside)}</worldbody></mujoco>"


def included(*inside):
    """A file to include."""
    return f"<mujocoinclude>{''.join(inside)}</mujocoinclude>"


def include(*files):
    """Elements that include files."""
    return "".join(f'<include file="{file}"/>' for file in files)


ATTACHING = '<mujoco><asset><model name="s" file="sub/m.xml"/></asset><worldbody><attach model="s" {} prefix="p_"/>'
TEXTS = {
    "two dashes in a comment": {"m.xml": robot("<!-- a -- b -->", body("a"))},
    "a line of dashes": {"m.xml": robot("<!------- a ------->", body("a"))},
    "comments everywhere": {"m.xml": f"<!-- -- -->{robot('<!---->', '<!--<body>-->', body('a', '<!--x-->'))}<!--x-->"},
    "comment in an included file": {
        "m.xml": robot(include("p.xml")),
        "p.xml": f"<?xml version='1.0'?>\n<!-- <a> -- <b> -->\n{included('<!-- -- -->', body('a'))}",
    },
    "bare < and &": {"m.xml": robot(body("a<b & c"))},
    "references": {"m.xml": robot(body("&lt;&#65;&#x42;&amp;lt; &nbsp;"))},
    "no blank between attributes": {"m.xml": robot('<body name="a"pos="1 2 3"><joint/><geom size=".1"/></body>')},
    "blank lines before the declaration": {"m.xml": "\n\n<?xml version='1.0'?>" + robot(body("a"))},
    "an element after the root": {"m.xml": robot(body("a")) + robot(body("b"))},
    "Latin-1": {"m.xml": b"<!-- caf\xe9 -->" + robot(body("a")).encode()},
    "unknown encoding": {"m.xml": '<?xml version="1.0" encoding="none"?>' + robot(body("a"))},
    "equal names in two folders": {
        "m.xml": robot(include("a/p.xml", "b/p.xml", "P.xml")),
        **{"a/p.xml": included(body("a")), "b/p.xml": included(body("b")), "P.xml": included(body("c"))},
    },
    "the robot file's own name": {"m.xml": robot(include("a/m.xml")), "a/m.xml": included(body("a"))},
    "equal names within each other": {
        "m.xml": robot(include("a/p.xml")),
        **{"a/p.xml": included(body("a", include("b/p.xml"))), "b/p.xml": included(body("b"))},
    },
    "a file of another folder's name that is not there": {
        "m.xml": robot(include("a/p.xml", "b/p.xml")),
        "a/p.xml": included(body("a")),
    },
    "one file twice": {"m.xml": robot(include("a/p.xml", "a/../a/p.xml")), "a/p.xml": included(body("a"))},
    "an attached model of the robot file's name": {
        "m.xml": ATTACHING.format("") + "</worldbody></mujoco>",
        "sub/m.xml": robot(body("a")),
    },
    "an attached model with a mesh": {
        "m.xml": ATTACHING.format('body="a"') + "</worldbody></mujoco>",
        "sub/m.xml": robot('<body name="a"><joint/><geom type="mesh" mesh="x"/></body>').replace(
            "<worldbody>", '<asset><mesh file="x.obj"/></asset><worldbody>'
        ),
        "sub/x.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n",
    },
    "a mesh beside an included file": {
        "m.xml": f"<mujoco>{include('s/p.xml')}</mujoco>",
        "s/p.xml": robot('<body name="a"><joint/><geom type="mesh" mesh="x"/></body>').replace(
            "<worldbody>", '<asset><mesh file="x.obj"/></asset><worldbody>'
        ),
        "s/x.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n",
    },
}


@pytest.mark.parametrize("files", TEXTS.values(), ids=TEXTS)
def test_bodies_are_those_of_mujoco(tmp_path, files):
    """The same bodies of the same masses; where MuJoCo refuses a file, its reason is given."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        expected = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    except ValueError as error:
        with pytest.raises(FileError) as ours:
            load(tmp_path / "m.xml")
        reason = str(error).removeprefix("XML Error: ").splitlines()[0]
        assert reason.split("'")[0] in str(ours.value), "the reason is another"
        assert "|" not in str(ours.value), "the name of a file is not that on disk"
        return
    model = load(tmp_path / "m.xml")
    assert list(model.bodies.names) == [expected.body(i).name for i in range(1, expected.nbody)]
    assert model.bodies.mass.tolist() == expected.body_mass[1:].tolist()


FRAMES = """<mujoco><worldbody>
  <body name="a"><joint/><inertial pos="0 0 2e-7" quat="1 0 0 3e-7" mass="1" diaginertia="1 2 2.5"/>
    <geom name="of body" size=".1" pos="1e-7 0 2e-7"/>
    <site name="turned as the body" pos="1 0 0" quat="1 2e-7 0 0"/></body>
  <body name="b"><joint/><inertial pos="0 0 .2" quat="1 .3 0 0" mass="1" diaginertia="1 2 2.5"/>
    <geom name="of inertia" size=".1" pos="0 0 .2000001" quat="1 .3 0 2e-7"/>
    <geom name="apart" size=".1" pos="0 0 .1" quat="1 0 .1 0"/></body>
</worldbody></mujoco>"""


def test_frames_that_differ_by_less_than_a_micrometre_are_equal():
    """Poses relative to the bodies are those that MuJoCo computes."""
    m, model = mujoco.MjModel.from_xml_string(FRAMES), loads(FRAMES)
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    assert m.geom_sameframe.tolist() == [1, 2, 0]
    assert (m.site_sameframe.tolist(), m.body_sameframe.tolist()[1]) == ([3], 1)
    assert model.bodies.com == pytest.approx(data.xipos[1:], abs=1e-16)
    for part, position, rotation in (
        (model.geoms, data.geom_xpos, data.geom_xmat),
        (model.sites, data.site_xpos, data.site_xmat),
    ):
        assert part.position == pytest.approx(position, abs=1e-16)
        matrices = [matrix_of_quaternion(q).ravel() for q in part.orientation]
        assert np.array(matrices) == pytest.approx(rotation, abs=1e-15)
