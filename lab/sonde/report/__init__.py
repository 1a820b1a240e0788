# SPDX-License-Identifier: Apache-2.0
"""One offline HTML file from one or more runs: readable on a phone, on paper, and in twenty years.

`findings` assesses the numbers; `charts` draws them, without any script. Here is what the page says: `page` puts it
together, `facts` and `figures` are its tables, `sections/` is what it shows of one phase (a file each, found by the
page) with the charts of `over_time` and `distributions`, `definitions` the meaning of its rates, `templates/` the order
of it all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sonde.charts.page_renderer import render_page_template
from sonde.charts.study import StudySection
from sonde.model.confined_files import write_file
from sonde.model.errors import ReportError
from sonde.model.run import read_recorded_run_folder
from sonde.model.system import System
from sonde.model.system.parents import add_target_parents
from sonde.report.page import make_report_view

__all__ = ["render_report", "write_report"]


def render_report(
    run_folders: Sequence[Path],
    title: str | None = None,
    leading_sections: Sequence[StudySection] = (),
    system: System | None = None,
) -> str:
    """The report as HTML; see `write_report`. Raises ReportError when a folder holds no readable record."""
    if not run_folders:
        raise ReportError("There is no run to report on: name at least one run folder.")
    read = [read_recorded_run_folder(Path(run)) for run in run_folders]
    view = replace(
        make_report_view([add_target_parents(run, system) for run in read] if system else read, title),
        before=tuple(leading_sections),
    )
    return render_page_template(view, "report.html.j2", package_name=__name__)


def write_report(
    run_folders: Sequence[Path],
    page_file: Path,
    title: str | None = None,
    leading_sections: Sequence[StudySection] = (),
    system: System | None = None,
) -> Path:
    """Writes the report on these run folders to the file `page_file` and returns its path.

    Several runs make one report with a summary over all of them. Runs that failed, were interrupted or lost their end
    are shown with the data they have. `leading_sections` are sections of other tools, shown first. `system` maps
    storage targets to servers and units, instead of the mapping recorded with the run. Raises ReportError (one
    sentence) when a folder holds no readable record, or when `page_file` cannot be written. Replaces an older file in
    one step.
    """
    html = render_report(run_folders, title, leading_sections, system)
    try:
        write_file(page_file, html)
    except OSError as problem:
        raise ReportError(f"The report cannot be written to {page_file}: {problem.strerror}.") from problem
    return page_file
