"""Five forms of one recording, from file to a robot file that replays in MuJoCo.

`python -m experiments.five_forms [FORM...]`. The arm is simulated by MuJoCo with a delay of 36.5 ms, encoders of 4,096
steps a turn and jittered stamps. Every form gets at most three commands of the command line, and the written robot file
is replayed in plain MuJoCo on a run that was not fitted to, from its first sample to its last.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from experiments.five_forms.forms import FORMS, RATES, ROBOTS
from experiments.five_forms.recording import JOINTS, record
from experiments.recorded import show
from truesim.bridges.mujoco_replay import replay_in_mujoco
from truesim.files.logs import Log
from truesim.identification.fit_folder import mujoco_file, read_document


def main() -> None:
    """Run the commands of each form and print a table."""
    rows = []
    for name, (write, ending, robot, commands) in FORMS.items():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        rate = RATES.get(name, 100.0)
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / robot).write_text(ROBOTS[robot])
            for part, seed in (("train", 1), ("test", 2)):
                write(home / f"{part}{ending}", record(seed, rate=rate))
            words = {"robot": robot, "train": f"train{ending}", "test": f"test{ending}"}
            for command in commands:
                _call([word.format(**words) for word in command], home)
            rows.append(
                (
                    name,
                    len(commands),
                    read_document(home / "fit")["verdict"],
                    *_replayed(home / "fit", RATES.get(name, 100.0)),
                )
            )
    header = ("form", "commands", "status", *(f"{joint} [mrad]" for joint in JOINTS))
    show("Error of the written robot in MuJoCo over the held-out run, against encoders", header, rows)


def _call(words: list[str], home: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "truesim", *words], cwd=home, capture_output=True, text=True)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"truesim {' '.join(words)}\n{done.stdout}{done.stderr}")


def _replayed(fit: Path, rate: float) -> list[float]:
    run = record(2, rate=rate)
    columns = {f"qpos/{name}": run.position[:, k] for k, name in enumerate(JOINTS)}
    columns |= {f"ctrl/{name}": run.command[:, k] for k, name in enumerate(JOINTS)}
    (replay,) = replay_in_mujoco(mujoco_file(fit), [Log(run.time, columns)])
    return [1e3 * replay.rmse[f"qpos/{name}"] for name in JOINTS]


if __name__ == "__main__":
    main()
