"""`truesim.torch` loads on first use, and says how to install PyTorch where it is absent."""

import subprocess
import sys

HIDDEN = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import truesim
try:
    truesim.torch
except truesim.TruesimError as error:
    print(error)
"""


def test_a_missing_torch_gets_one_sentence():
    """The sentence has the command that installs it."""
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    assert done.stdout == "truesim.torch needs PyTorch: pip install 'truesim[torch]'.\n"
