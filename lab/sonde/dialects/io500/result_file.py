# SPDX-License-Identifier: Apache-2.0
"""The files that a run of IO500 leaves in its result directory, in the layout of the program."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TextIO

from sonde.dialects.io500.phases import Io500Phase, ScoreGroup
from sonde.dialects.io500.score import Score
from sonde.model.confined_files import create_file, write_file
from sonde.model.errors import MachineError


def format_local_time() -> str:
    """The time as result.txt has it, in the time zone of this machine."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")


class ResultFile:
    """result.txt and result_summary.txt, written as things happen; a summary is shown at the same time."""

    def __init__(self, folder: Path, show: Callable[[str], None], verbosity: int) -> None:
        """Raises MachineError when the files cannot be made."""
        self.folder = folder
        self._show = show
        self._verbosity = verbosity
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._result: TextIO = io.TextIOWrapper(create_file(folder / "result.txt"), encoding="utf-8")
            self._summary: TextIO = io.TextIOWrapper(create_file(folder / "result_summary.txt"), encoding="utf-8")
        except OSError as reason:
            raise MachineError(
                f"The result directory {folder} cannot be written: {reason.strerror}; name another in resultdir."
            ) from None

    def close(self) -> None:
        """No more comes."""
        self._result.close()
        self._summary.close()

    def pair(self, key: str, value: str, least: int = 0) -> None:
        """A line `key = value`; not below the verbosity `least`."""
        if self._verbosity >= least:
            self._write(f"{key:<15} = {value}")

    def line(self, text: str = "") -> None:
        """Any line of result.txt."""
        self._write(text)

    def note(self, text: str, least: int = 0) -> None:
        """A comment."""
        if self._verbosity >= least:
            self._write("; " + " ".join(text.split()))

    def invalid(self, text: str) -> None:
        """A rule is broken."""
        self.note(f"ERROR INVALID {text}")
        self._show(f"ERROR INVALID {text}")

    def warn(self, text: str) -> None:
        """Something is odd, and breaks no rule."""
        self.note(f"WARNING {text}")
        self._show(f"WARNING {text}")

    def summary(self, text: str) -> None:
        """A line of the summary."""
        self._summary.write(text + "\n")
        self._summary.flush()
        self._show(text)

    def result(self, phase: Io500Phase, value: float, seconds: float, valid: bool) -> None:
        """The line of a phase."""
        mark = "[RESULT]" if phase.group is not ScoreGroup.NONE else "[      ]"
        unit = "GiB/s" if phase.name.startswith("i") else "kIOPS"
        text = f"{mark} {phase.name:>20} {value:>15f} {unit} : time {seconds:.3f} seconds"
        self.summary(text + ("" if valid else " [INVALID]"))

    def score(self, name: str, score: Score, valid: bool, mark: str) -> None:
        """A score: SCORE, or SCOREX with the phases of extended mode. `mark`: its hash."""
        broken = "" if valid else " [INVALID]"
        self.line(f"\n[{name}]")
        self.pair("MD", f"{score.metadata:f}")
        self.pair("BW", f"{score.bandwidth:f}")
        self.pair("SCORE", f"{score.total:f}{broken}")
        self.pair("hash", mark)
        self.summary(
            f"[{name:<6}] Bandwidth {score.bandwidth:f} GiB/s : IOPS {score.metadata:f} kiops :"
            f" TOTAL {score.total:f}{broken}"
        )

    def file(self, name: str, text: str) -> Path:
        """Another file of the result directory. Raises MachineError."""
        path = self.folder / name
        try:
            write_file(path, text)
        except OSError as reason:
            raise MachineError(f"{path} cannot be written: {reason.strerror}.") from None
        return path

    def _write(self, text: str) -> None:
        self._result.write(text + "\n")
        self._result.flush()
