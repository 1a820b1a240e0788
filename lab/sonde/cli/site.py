# SPDX-License-Identifier: Apache-2.0
"""``sonde site``: the whole archive as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.cli.options import add_existing_archive_option, add_json_option
from sonde.cli.run_selection import open_catalog_with_progress, open_progress_bar
from sonde.store.archive import Archive
from sonde.terminal.screen import get_results_console, print_json

report_count_option = click.option(
    "--reports",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="N",
    help="Latest runs that get their whole report; runs around changes get one too. 0: none.",
)


@click.command("site")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@report_count_option
@add_existing_archive_option
@add_json_option
def command(out: Path, reports: int, archive: Archive, as_json: bool) -> int:
    """Write the whole archive as a static site into the folder OUT: overview, every history, event and run.

    The pages contain no script and need no server: open OUT/index.html, or copy OUT to any web server. The overview
    shows file systems by tests, colored by the ratio to the baseline. Building again rewrites only what changed.

    \b
    Examples:
      sonde site site
      sonde site /var/www/storage --reports 200

    More: sonde help tasks/watch
    """
    from sonde.site.build import build_site  # the imports of charts and statistics take longer than most commands

    archive.recover_unfinished_runs()
    report = build_site(
        open_catalog_with_progress(archive.root),
        out,
        reports,
        lambda: open_progress_bar("watching histories"),
        lambda: open_progress_bar("writing pages"),
    )
    if as_json:
        print_json(
            {
                "index": str(out / "index.html"),
                "written": report.written,
                "unchanged": report.unchanged,
                "removed": report.removed,
            }
        )
        return 0
    get_results_console().print(
        f"{out / 'index.html'}  ({report.written:,} pages written, {report.unchanged:,} unchanged,"
        f" {report.removed:,} removed)",
        soft_wrap=True,
    )
    return 0
