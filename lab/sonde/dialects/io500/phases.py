# SPDX-License-Identifier: Apache-2.0
"""The phases of IO500 in their order, and what each counts for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ScoreGroup(Enum):
    """Group of the score that a result belongs to."""

    NONE = "NO SCORE"
    MD = "MD"
    BW = "BW"


@dataclass(frozen=True)
class Io500Phase:
    """One phase. `tool`: what does it. `part`: the section whose settings it shares with others."""

    name: str
    tool: str  # ior, mdtest, find, mdworkbench or timestamp
    part: str
    group: ScoreGroup = ScoreGroup.NONE
    writes: bool = False  # must last as long as the stonewall
    removes: bool = False
    extra: bool = False  # only in extended mode

    @property
    def result_unit(self) -> str:
        """Unit of the phase's result."""
        return "GiB/s" if self.tool == "ior" else "kIOPS"

    @property
    def is_measured(self) -> bool:
        """False: it only prepares others."""
        return self.tool != "timestamp"


def _make_ior_phase(
    phase_name: str, part_name: str, score_group: ScoreGroup = ScoreGroup.BW, is_write: bool = False
) -> Io500Phase:
    return Io500Phase(phase_name, "ior", part_name, score_group, is_write)


def _make_mdtest_phase(phase_name: str, part_name: str, is_write: bool = False, is_removal: bool = False) -> Io500Phase:
    return Io500Phase(phase_name, "mdtest", part_name, ScoreGroup.MD, is_write, is_removal)


ALL_PHASES: tuple[Io500Phase, ...] = (
    _make_ior_phase("ior-easy-write", "ior-easy", is_write=True),
    _make_mdtest_phase("mdtest-easy-write", "mdtest-easy", is_write=True),
    Io500Phase("mdworkbench-create", "mdworkbench", "mdworkbench", extra=True),
    Io500Phase("timestamp", "timestamp", "timestamp"),
    Io500Phase("find-easy", "find", "find-easy", ScoreGroup.MD, extra=True),
    _make_ior_phase("ior-hard-write", "ior-hard", is_write=True),
    _make_mdtest_phase("mdtest-hard-write", "mdtest-hard", is_write=True),
    Io500Phase("find", "find", "find", ScoreGroup.MD),
    Io500Phase("find-hard", "find", "find-hard", ScoreGroup.MD, extra=True),
    Io500Phase("mdworkbench-bench", "mdworkbench", "mdworkbench", ScoreGroup.MD, extra=True),
    _make_ior_phase("ior-easy-read", "ior-easy"),
    _make_mdtest_phase("mdtest-easy-stat", "mdtest-easy"),
    _make_ior_phase("ior-hard-read", "ior-hard"),
    _make_mdtest_phase("mdtest-hard-stat", "mdtest-hard"),
    Io500Phase("mdworkbench-delete", "mdworkbench", "mdworkbench", removes=True, extra=True),
    _make_mdtest_phase("mdtest-easy-delete", "mdtest-easy", is_removal=True),
    _make_mdtest_phase("mdtest-hard-read", "mdtest-hard"),
    _make_mdtest_phase("mdtest-hard-delete", "mdtest-hard", is_removal=True),
    _make_ior_phase("ior-rnd4K-easy-read", "ior-easy", ScoreGroup.NONE),
)


def list_io500_phases(is_extended: bool, includes_removal: bool = False) -> list[Io500Phase]:
    """The phases of a mode; `includes_removal`: only those that remove."""
    return [
        phase for phase in ALL_PHASES if (is_extended or not phase.extra) and (phase.removes or not includes_removal)
    ]
