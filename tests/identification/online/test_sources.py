"""Streams: a file that grows, a socket, and lines that cannot be read."""

import io
import json
import socket
import threading
import time

import pytest

from truesim.core.errors import TruesimError
from truesim.files.logs import column_map
from truesim.identification.online import Rejected, samples


def test_a_file_that_grows(tmp_path):
    """Rows appear as they are written, also one that is written in two parts."""
    path = tmp_path / "log.csv"
    path.write_text("time,qpos/a\n0,1\n", encoding="utf-8")

    def write():
        for part in ("1,2", ".5\n", "oops\n", "2,\n", "3,x\n", "4,5"):
            time.sleep(0.05)
            with path.open("a", encoding="utf-8") as file:
                file.write(part)

    writer = threading.Thread(target=write)
    writer.start()
    found = list(samples(str(path), patience=0.6))
    writer.join()
    assert [s for s in found if not isinstance(s, Rejected)] == [
        {"time": 0.0, "qpos/a": 1.0},
        {"time": 1.0, "qpos/a": 2.5},
        {"time": 2.0},
        {"time": 4.0, "qpos/a": 5.0},
    ]
    assert [s.reason for s in found if isinstance(s, Rejected)] == [
        "Line 4 has 1 values for 2 columns.",
        "Line 6: qpos/a is 'x', which is not a number.",
    ]


def test_a_port_that_is_taken():
    """Is named, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TruesimError, match=f"{address}.*another port"):
            next(samples(address))


@pytest.mark.parametrize("text", ["time,qpos/a\n0,1\n1,x\n", '{"time": 0, "qpos/a": 1}\nnonsense\n'])
def test_the_standard_input(monkeypatch, text):
    """CSV or JSON lines, until the sender ends; bad lines are told of."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    good, bad = samples("-")
    assert good == {"time": 0.0, "qpos/a": 1.0}
    assert isinstance(bad, Rejected)


def test_a_socket_of_json_lines():
    """A sender connects, sends good and bad lines, and hangs up; a mapping renames."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def send():
        for _ in range(100):
            try:
                sender = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        with sender:
            for line in (json.dumps({"stamp": 500, "a": 90}), "{", "[1]", json.dumps({"stamp": 600, "a": None})):
                sender.sendall(line.encode() + b"\n")

    sender = threading.Thread(target=send)
    sender.start()
    mapping = column_map(
        {"columns": {"time": {"from": "stamp", "unit": "ms"}, "qpos/a": {"from": "a", "unit": "deg"}, "ctrl/m": 1.0}}
    )
    found = list(samples(f"tcp://127.0.0.1:{port}", patience=5.0, mapping=mapping))
    sender.join()
    assert found[0] == pytest.approx({"time": 0.5, "qpos/a": 1.5707963, "ctrl/m": 1.0})
    assert "not JSON" in found[1].reason
    assert "not an object" in found[2].reason
    assert found[3] == pytest.approx({"time": 0.6, "ctrl/m": 1.0})


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("tcp://192.168.1.5:5555", "not an address of this machine"),
        ("tcp://127.0.0.1", "not a valid address"),
        ("udp://127.0.0.1:5", "not a valid address"),
        ("nowhere.csv", "There is no file"),
    ],
)
def test_streams_that_cannot_be(stream, message):
    """The message says what would be valid."""
    with pytest.raises(TruesimError, match=message):
        next(samples(stream))


def test_a_finished_file_ends_unless_it_is_followed(tmp_path, monkeypatch):
    """A file that does not grow ends after a silence; a followed one says that it waits."""
    monkeypatch.setattr("truesim.identification.online.sources.SILENCE", 0.05)
    path = tmp_path / "run.csv"
    path.write_text("time,qpos/a\n0,1\n1,2\n")
    assert len(list(samples(str(path), follow=False))) == 2
    said = []
    assert len(list(samples(str(path), patience=0.3, waiting=lambda: said.append(1)))) == 2
    assert said == [1]
