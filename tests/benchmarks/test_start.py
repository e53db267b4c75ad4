"""Start-up times are CPU times of whole processes."""

import pytest

from benchmarks.start import STARTS, start_time
from truesim.core.errors import TruesimError


def test_cpu_time_counts_work_but_no_waiting():
    """A process that computes takes more CPU time than one that sleeps; the interpreter starts in both."""
    busy = "import time\nwhile time.process_time() < 1.2: pass"  # above the asserted second: CPU clocks differ by ticks
    idle = "import time; time.sleep(1.0)"
    worked, slept = (start_time(("-c", code), repeats=1) for code in (busy, idle))
    assert worked.cpu >= 1.0
    assert slept.cpu < worked.cpu / 2
    assert slept.elapsed >= 1.0


def test_a_command_that_fails_is_an_error():
    """A failed command has no start-up time."""
    with pytest.raises(TruesimError, match="exit code 3"):
        start_time(("-c", "raise SystemExit(3)"), repeats=1)


def test_the_commands_run():
    """The longest of the commands runs on the built-in URDF."""
    found = start_time(STARTS["truesim inspect arm.urdf"], repeats=1)
    assert 0.05 < found.cpu < 120
