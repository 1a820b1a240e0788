# SPDX-License-Identifier: Apache-2.0
"""One offline HTML file from one or more runs: readable on a phone, on paper, and in twenty years.

The file holds no script at all and asks for nothing: charts are drawn here, as SVG, before it is written. That was
chosen over an embedded chart library (Vega-Lite through altair: 0.9 MB of script in every file, 34 MB to install, and
pre-rendered SVG whose colors, letters and widths are fixed) because a report must

* look the same with scripts forbidden, in a mail program, printed, and when today's chart library is forgotten;
* follow the width of the reader's screen and the reader's light or dark scheme, which pre-rendered charts cannot;
* open at once for 5,000 tasks, and travel by mail: a run takes a few hundred kB;
* carry names found on the system under test, which may be hostile, without any way to execute them. A content security
  policy in the file forbids scripts and every kind of request besides.

Pointing at a chart shows values (style sheet only), and the numbers behind every chart stand in a table below it.

Color tells one thing only: blue is a number about storage, gray is a number about something else (page cache, memory, a
synthetic backend), vermilion is wrong or failed. Each is also said in words.

``write_report`` (runs) and ``write_study`` (whatever is compared or watched) are what other parts of the lab need; a
study is drawn with `change_bars`, `matrix`, `amount_bars`, `history_chart` and `profile_chart`.

Files: `reading` (a run folder -> values), `standing` (what a
number is about), `verdicts` and `movement` (that, and how the rate moved, in words), `profile` (series -> arrays),
`members` (who was slow), `axes` and `plot` (how a chart is framed), `over_time` and `distributions` (the charts),
`facts`, `figures` and `page` (everything the page says), `templates/` (how it is laid out).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sonde.model.errors import ReportError
from sonde.model.run import read_run
from sonde.report.layout import lay_out
from sonde.report.page import page
from sonde.report.study import Section, Study, write_study
from sonde.report.writing import replace_file

__all__ = ["Section", "Study", "write_report", "write_study"]


def write_report(runs: Sequence[Path], out: Path, title: str | None = None) -> Path:
    """Writes the report on these run folders to the file `out` and returns its path.

    Several runs make one report with a summary over all of them. Runs that failed, were interrupted or lost their end
    are shown with what they have. Raises ReportError (one sentence) when a folder holds no readable record, or when
    `out` cannot be written. An older file is replaced in one step.
    """
    if not runs:
        raise ReportError("There is no run to report on: name at least one run folder.")
    html = lay_out(page([read_run(Path(run)) for run in runs], title))
    try:
        replace_file(out, html)
    except OSError as problem:
        raise ReportError(f"The report cannot be written to {out}: {problem.strerror}.") from problem
    return out
