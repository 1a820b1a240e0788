# SPDX-License-Identifier: Apache-2.0
"""The files that a run of IO500 leaves in its result directory, in the layout of the program."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TextIO

from sonde.dialects.io500.phases import Io500Phase, ScoreGroup
from sonde.dialects.io500.score import Io500Score
from sonde.model.confined_files import create_file, write_file
from sonde.model.errors import MachineError


def format_local_time() -> str:
    """The time as result.txt has it, in the time zone of this machine."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")


class ResultFile:
    """result.txt and result_summary.txt, written as things happen; a summary is shown at the same time."""

    def __init__(self, result_folder: Path, show_line: Callable[[str], None], verbosity: int) -> None:
        """Raises MachineError when the files cannot be made."""
        self.folder = result_folder
        self._show = show_line
        self._verbosity = verbosity
        try:
            result_folder.mkdir(parents=True, exist_ok=True)
            self._result: TextIO = io.TextIOWrapper(create_file(result_folder / "result.txt"), encoding="utf-8")
            self._summary: TextIO = io.TextIOWrapper(
                create_file(result_folder / "result_summary.txt"), encoding="utf-8"
            )
        except OSError as reason:
            raise MachineError(
                f"The result directory {result_folder} cannot be written: {reason.strerror}; name another in resultdir."
            ) from None

    def close_files(self) -> None:
        """No more comes."""
        self._result.close()
        self._summary.close()

    def write_pair(self, key_name: str, value_text: str, min_verbosity: int = 0) -> None:
        """A line `key = value`; not below the verbosity `min_verbosity`."""
        if self._verbosity >= min_verbosity:
            self._write_to_result(f"{key_name:<15} = {value_text}")

    def write_line(self, output_line: str = "") -> None:
        """Writes a line to result.txt unchanged."""
        self._write_to_result(output_line)

    def write_comment(self, comment: str, min_verbosity: int = 0) -> None:
        """Writes a comment to result.txt, on one line, if the verbosity is at least `min_verbosity`."""
        if self._verbosity >= min_verbosity:
            self._write_to_result("; " + " ".join(comment.split()))

    def write_broken_rule(self, broken_rule: str) -> None:
        """Writes and prints which IO500 rule is broken, so that the result is invalid."""
        self.write_comment(f"ERROR INVALID {broken_rule}")
        self._show(f"ERROR INVALID {broken_rule}")

    def write_warning(self, warning_text: str) -> None:
        """Writes and prints a warning; the result stays valid."""
        self.write_comment(f"WARNING {warning_text}")
        self._show(f"WARNING {warning_text}")

    def write_summary_line(self, summary_line: str) -> None:
        """Writes and prints a line of result_summary.txt."""
        self._summary.write(summary_line + "\n")
        self._summary.flush()
        self._show(summary_line)

    def write_phase_result(self, phase: Io500Phase, phase_result: float, seconds: float, is_valid: bool) -> None:
        """The line of a phase."""
        mark = "[RESULT]" if phase.group is not ScoreGroup.NONE else "[      ]"
        unit = "GiB/s" if phase.name.startswith("i") else "kIOPS"
        text = f"{mark} {phase.name:>20} {phase_result:>15f} {unit} : time {seconds:.3f} seconds"
        self.write_summary_line(text + ("" if is_valid else " [INVALID]"))

    def write_score(self, score_name: str, score: Io500Score, is_valid: bool, score_hash: str) -> None:
        """A score: SCORE, or SCOREX with the phases of extended mode. `score_hash`: its hash."""
        broken = "" if is_valid else " [INVALID]"
        self.write_line(f"\n[{score_name}]")
        self.write_pair("MD", f"{score.metadata:f}")
        self.write_pair("BW", f"{score.bandwidth:f}")
        self.write_pair("SCORE", f"{score.total_score:f}{broken}")
        self.write_pair("hash", score_hash)
        self.write_summary_line(
            f"[{score_name:<6}] Bandwidth {score.bandwidth:f} GiB/s : IOPS {score.metadata:f} kiops :"
            f" TOTAL {score.total_score:f}{broken}"
        )

    def write_other_file(self, file_name: str, file_text: str) -> Path:
        """Another file of the result directory. Raises MachineError."""
        path = self.folder / file_name
        try:
            write_file(path, file_text)
        except OSError as reason:
            raise MachineError(f"{path} cannot be written: {reason.strerror}.") from None
        return path

    def _write_to_result(self, written_text: str) -> None:
        self._result.write(written_text + "\n")
        self._result.flush()
