"""`truesim watch` on a file with a bad line, twice, and on mistakes."""

import csv
import json

from tests.identification.two_joint_arm import LOWER, stream, xml


def write(folder, samples):
    """The robot and a stream as files."""
    (folder / "robot.xml").write_text(xml(), encoding="utf-8")
    with (folder / "stream.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, samples[0])
        rows.writeheader()
        rows.writerows(samples)


def test_a_stream_is_followed_and_taken_up_again(truesim, tmp_path):
    """Estimates and a change appear, a bad line is named, and the same command goes on where it ended."""
    samples = stream(12.0, 0, picked=7.0)
    write(tmp_path, samples[:2000])
    with (tmp_path / "stream.csv").open("a", encoding="utf-8") as file:
        file.write("nonsense\n")
    what = ("watch", "robot.xml", "stream.csv", "--free", "bodies/lower.mass", "joints/*.damping")
    what += ("joints/*.frictionloss", "--changes", "bodies/lower.mass", "--out", "out", "--patience", "0.1")
    done = truesim(*what)
    assert done.code == 0
    assert "rejected" in done.out
    assert "Change at 7" in done.out
    change = json.loads((tmp_path / "out" / "changes.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert 7 < change["detected"] < 8
    write(tmp_path, samples)
    again = truesim(*what)
    assert again.code == 0
    assert "Continuing from 9.99" in again.out
    rows = (tmp_path / "out" / "estimates.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("time,bodies/lower.mass,bodies/lower.mass:low,bodies/lower.mass:high")
    assert abs(float(rows[-1].split(",")[1]) - 1.1 * LOWER) < 0.02
    times = [float(row.split(",")[0]) for row in rows[1:]]
    assert times == sorted(times)


def test_mistakes_are_one_sentence(truesim, tmp_path):
    """A stream that is not there, one that ends too soon, and an address elsewhere."""
    write(tmp_path, stream(0.5))
    free = ("--free", "bodies/lower.mass", "--patience", "0.1")
    assert "There is no file" in truesim("watch", "robot.xml", "none.csv", *free).sentence
    assert "that the first estimate needs" in truesim("watch", "robot.xml", "stream.csv", *free).sentence
    assert "not an address of this machine" in truesim("watch", "robot.xml", "tcp://10.0.0.1:5", *free).sentence
