# SPDX-License-Identifier: Apache-2.0
"""Plants real faults on this machine, diagnoses each by real runs, and prints how often the answer is right.

Usage: .venv/bin/python tools/diagnosis_real_faults.py [--rounds N] [--minutes N] [--seed N] [--only TEXT]
[--out FILE]. Needs root. Each round plants every fault of real_faults.py once, with a drawn strength, and does each
experiment once. References are the last runs on the healthy machine: each experiment is done there before each fault,
so load by others affects both sides. Loop device, control groups and mount are removed. --out appends one JSON line for
each trial.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]

from real_faults import REAL_FAULTS, LoopFileSystem, find_missing_need, open_loop_file_system  # noqa: E402
from real_trials import RealMachine, make_trial_parser, run_trials  # noqa: E402
from sonde.conduct.run import RunSetup, conduct_run  # noqa: E402
from sonde.diagnose.diagnosis_session import DiagnosisSession  # noqa: E402
from sonde.diagnose.diagnosis_state import DiagnosisState  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402
from sonde.store.archive import Archive  # noqa: E402


class LocalMachine(RealMachine[LoopFileSystem]):
    """A loop file system with an archive."""

    def __init__(self, system: LoopFileSystem, archive: Archive) -> None:
        opened = DiagnosisSession.open_session(DiagnosisState(directory=str(system.directory)), None)
        super().__init__(opened, [item.id for item in opened.model.experiments if not item.description.is_contrast])
        self._system = system
        self._setup = RunSetup(find_engine(), archive)

    def measure(self, experiment_id: str) -> Path:
        plan = self.opened.model.find_experiment(experiment_id).make_plan(str(self._system.directory))
        result = conduct_run(plan, self._setup, lambda kind, line: None)
        if result.exit_code:
            raise RuntimeError(f"{experiment_id}: {result.text}")
        return result.folder

    def draw_storage(self, generator: random.Random) -> tuple[LoopFileSystem, str]:
        return self._system, ""


def main() -> int:
    """Does rounds of trials and prints the table. Exit code 3 without root or control groups."""
    options = make_trial_parser(__doc__).parse_args()
    if missing := find_missing_need():
        print(f"No real fault can be planted here: {missing}.", file=sys.stderr)
        return 3
    # An end by a signal leaves no mount, device or limit, as an end by an exception does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="sonde-real-faults-") as name:
        folder = Path(name)
        with open_loop_file_system(folder) as system:
            run_trials(LocalMachine(system, Archive(folder / "archive")), REAL_FAULTS, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
