# SPDX-License-Identifier: Apache-2.0
"""A page about many runs: a title, facts, and sections of words and drawings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.charts.markup import Markup
from sonde.charts.page_renderer import render_page_template
from sonde.model.confined_files import write_file
from sonde.model.errors import ReportError


@dataclass(frozen=True)
class StudySection:
    """Some paragraphs and then drawings or tables, which are HTML already."""

    title: str
    paragraphs: Sequence[str]
    parts: Sequence[Markup]


@dataclass(frozen=True)
class Study:
    """`alarms` is what the reader must see first; `facts` are pairs of a name and its value."""

    title: str
    lead: str
    facts: Sequence[tuple[str, str]]
    alarms: Sequence[str]
    sections: Sequence[StudySection]


def write_study_page(study: Study, page_file: Path) -> Path:
    """Writes the page to `page_file` and returns that. Raises ReportError when it cannot be written."""
    html = render_page_template(study, "study.html.j2")
    try:
        write_file(page_file, html)
    except OSError as problem:
        raise ReportError(f"The report cannot be written to {page_file}: {problem.strerror}.") from problem
    return page_file
