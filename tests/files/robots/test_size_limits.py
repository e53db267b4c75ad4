"""Robot files that ask for too much, and files that are not files: one sentence, at once."""

import os
import struct

import pytest

from truesim.core.errors import FileError
from truesim.files.logs import read_log
from truesim.files.robots import load, loads

BODY = '<body><joint/><geom size=".1"/></body>'
BOMBS = {
    "bodies": (f"<worldbody>{BODY * 6000}</worldbody>", "6,000 bodies"),
    "replicas": (
        f'<worldbody><replicate count="1000"><replicate count="1000">{BODY}</replicate></replicate></worldbody>',
        "1,000,000 bodies",
    ),
    "height field": ('<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>', "1e[+]10 cells"),
    "texture": ('<asset><texture type="2d" builtin="flat" width="99999" height="99999"/></asset>', "cells"),
    "user data": (f'<size nuser_body="100000000"/><worldbody>{BODY}</worldbody>', "nuser_body"),
    "memory": ('<size memory="900G"/>', "memory"),
    "depth": ("<worldbody>" + '<body><geom size=".1"/>' * 400 + "</body>" * 400 + "</worldbody>", "within each other"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_too_large_files_are_refused(name):
    """Before MuJoCo compiles them."""
    text, message = BOMBS[name]
    with pytest.raises(FileError, match=message):
        loads(f"<mujoco>{text}</mujoco>")


def test_a_height_field_of_a_false_size(tmp_path):
    """The header says a million cells, the file holds four."""
    (tmp_path / "h.bin").write_bytes(struct.pack("<ii4f", 1000, 1000, 0, 0, 0, 0))
    text = '<mujoco><asset><hfield name="h" file="h.bin" size="1 1 1 1"/></asset></mujoco>'
    with pytest.raises(FileError, match="1000 by 1000"):
        loads(text, path=tmp_path / "r.xml")


def test_pipes_are_not_waited_for(tmp_path):
    """As robot file, mesh, include and log."""
    os.mkfifo(tmp_path / "pipe.xml")
    os.mkfifo(tmp_path / "pipe.obj")
    os.mkfifo(tmp_path / "pipe.csv")
    mesh = f'<asset><mesh file="pipe.obj"/></asset><worldbody><body>{BODY}</body></worldbody>'
    for text in ('<include file="pipe.xml"/>', mesh):
        with pytest.raises(FileError, match="not a regular file"):
            loads(f"<mujoco>{text}</mujoco>", path=tmp_path / "r.xml")
    for read, name in ((load, "pipe.xml"), (read_log, "pipe.csv")):
        with pytest.raises(FileError, match="not a regular file"):
            read(tmp_path / name)
