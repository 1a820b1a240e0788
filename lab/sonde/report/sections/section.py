# SPDX-License-Identifier: Apache-2.0
"""The type of a section, and the function that loads all sections of the page."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import sonde.report.sections
from sonde.charts.markup import Markup
from sonde.findings.phase_summary import AssessedPhase
from sonde.model.run import RecordedRun

ChartWidth = Literal["wide", "narrow", "small"]
"""The wide column, the narrow one beside it, or a row of small drawings below both."""


@dataclass(frozen=True)
class PhaseSection:
    """A section of the page about one phase: `draw` returns HTML and its width, or an empty result without data.

    Sections stand in the order of `rank`. Phases that only prepare others have those with `preparation`.
    """

    rank: int
    draw: Callable[[RecordedRun, AssessedPhase], Iterable[tuple[ChartWidth, Markup]]]
    preparation: bool = False


@cache
def load_sections() -> tuple[PhaseSection, ...]:
    """All sections in their order."""
    files = pkgutil.iter_modules(sonde.report.sections.__path__, f"{sonde.report.sections.__name__}.")
    modules = (importlib.import_module(entry.name) for entry in files)
    return tuple(
        sorted((module.SECTION for module in modules if hasattr(module, "SECTION")), key=lambda section: section.rank)
    )


def draw_sections_of_phase(run: RecordedRun, assessed_phase: AssessedPhase) -> dict[ChartWidth, tuple[Markup, ...]]:
    """Everything drawn of a phase, by place."""
    drawing: dict[ChartWidth, tuple[Markup, ...]] = {"wide": (), "narrow": (), "small": ()}
    for section in load_sections():
        if assessed_phase.phase.begin.measured or section.preparation:
            for position, markup in section.draw(run, assessed_phase):
                drawing[position] = (*drawing[position], markup)
    return drawing
