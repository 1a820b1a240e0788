# SPDX-License-Identifier: Apache-2.0
"""The rules of IO500 that make a phase or a run INVALID, with IO500's texts."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.dialects.io500.command_lines import get_stonewall_seconds, uses_several_directories
from sonde.dialects.io500.figures import PhaseFigures
from sonde.dialects.io500.ini import Io500Config
from sonde.dialects.io500.phases import Io500Phase


class Io500Rules:
    """The rules for one run."""

    def __init__(self, config: Io500Config) -> None:
        self._config = config
        self.run_is_valid = True
        # 30 s in the Student Cluster Competition, 300 s elsewhere (rules 2.0).
        self.min_s = 30 if config.get_flag("global", "scc") else 300

    def check_settings(self, dry_run: bool) -> Iterator[str]:
        """Rules that the settings alone break. IO500 says so of the stonewall and of files-per-dir too, and forgets it
        when the first phase begins; here the run is invalid, as the description of these keys has it."""
        wall = get_stonewall_seconds(self._config)
        broken = []
        if dry_run:
            broken.append("DRY RUN MODE ACTIVATED")
        if self._config.get_text("debug", "pause-dir") is not None:
            broken.append("PAUSING BETWEEN RUNS ACTIVATED")
        if wall != self.min_s:
            broken.append(f"stonewall-time {wall}s != {self.min_s}s")
        if uses_several_directories(self._config):
            broken.append("files-per-dir is set")
        self.run_is_valid = self.run_is_valid and not broken
        yield from broken

    def check_phase(
        self, phase: Io500Phase, figures: PhaseFigures, seconds: float, was_run: bool, dry_run: bool
    ) -> Iterator[str]:
        """Rules that a phase of `seconds` breaks. `was_run`: the phase was enabled and started."""
        wall = get_stonewall_seconds(self._config)
        if was_run and figures.mismatches and phase.tool == "ior":
            yield f"Errors ({figures.mismatches}) occured during phase in IOR. This invalidates your run."
        elif was_run and figures.mismatches:
            yield f"Errors ({figures.mismatches}) in the data that mdtest read. This invalidates your run."
        if was_run and phase.tool == "ior" and phase.writes and figures.seconds < wall:
            yield (
                f"Write phase needed {figures.seconds:f}s instead of stonewall {wall}s."
                f" Stonewall was hit at {figures.stonewall_s:.1f}s"
            )
        if was_run and phase.tool == "find" and figures.visited is not None and figures.matches == 0:
            yield "Find didn't find anything, this is likely invalid."
        if not dry_run and phase.writes and seconds < wall:
            yield f"Runtime of phase ({seconds:f}) is below stonewall time. This shouldn't happen!"
        elif not dry_run and figures.value == 0.0:
            yield "Resulting score shouldn't be 0.0"
        if phase.writes and seconds < self.min_s:
            yield "Runtime is smaller than expected minimum runtime"
