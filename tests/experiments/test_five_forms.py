"""Five forms of one recording."""

import numpy as np
import pytest

from experiments.five_forms.__main__ import main
from experiments.five_forms.forms import FORMS
from experiments.five_forms.recording import COUNTS, record


def test_the_recording_is_that_of_a_real_recorder():
    """Encoders are quantized, stamps jitter and never decrease."""
    run = record(0, seconds=1.0)
    steps = run.position * COUNTS / (2 * np.pi)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert np.all(np.diff(run.time) >= 0)
    assert np.std(np.diff(run.time)) > 1e-4


def test_at_most_three_commands():
    """Of every form."""
    assert all(len(commands) <= 3 for _, _, _, commands in FORMS.values())


@pytest.mark.slow
def test_written_robots_replay_in_mujoco(monkeypatch, capsys):
    """Within 2 mrad on the held-out run, in all five forms."""
    monkeypatch.setattr("sys.argv", ["five_forms"])
    main()
    rows = capsys.readouterr().out.splitlines()[-len(FORMS) :]
    errors = [[float(word) for word in row.split()[-3:]] for row in rows]
    assert np.max(errors) < 2
