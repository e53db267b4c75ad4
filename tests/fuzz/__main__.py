"""Many damaged inputs: `python -m tests.fuzz [--inputs 1000] [TARGET...]`.

Prints how many inputs each loader read, refused and failed on, and the seeds of failures, which `harness.check`
repeats.
"""

import argparse
import collections
import os
import sys
import traceback
import warnings

from tests.fuzz.harness import check
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the targets; the exit code is 1 if any input was not answered with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    for name in given.targets:
        counts: collections.Counter[str] = collections.Counter()
        for seed in range(given.inputs):
            try:
                counts["refused" if check(name, seed) else "read"] += 1
            except Exception as error:
                counts["failed"] += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{os.path.basename(where.filename)}:{where.lineno}"
                print(f"{name} seed {seed}: {type(error).__name__} {str(error)[:100]!r} at {place}", flush=True)
        print(f"{name}: {dict(counts)}", flush=True)
        failed += counts["failed"]
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
