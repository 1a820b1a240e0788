# SPDX-License-Identifier: Apache-2.0
"""``sonde serve``: the site of the archive on the loopback interface."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from sonde.cli.options import add_existing_archive_option
from sonde.cli.run_selection import open_catalog_with_progress, open_progress_bar
from sonde.cli.site import report_count_option
from sonde.store.archive import Archive
from sonde.terminal.screen import get_results_console


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8030, show_default=True, help="0: any free port.")
@report_count_option
@add_existing_archive_option
def command(port: int, reports: int, archive: Archive) -> int:
    """Show the whole archive in a browser, read-only, at http://127.0.0.1:PORT until it is stopped.

    The pages are those of `sonde site`. Loading the overview again shows runs and events that came meanwhile. From
    another machine: ssh -L 8030:127.0.0.1:8030 HOST.

    \b
    Examples:
      sonde serve
      sonde serve --port 9000

    More: sonde help tasks/watch
    """
    from sonde.site.build import build_site  # the imports of charts and statistics take longer than most commands
    from sonde.site.site_server import make_site_server

    archive.recover_unfinished_runs()
    with tempfile.TemporaryDirectory(prefix="sonde-site-") as folder:

        def build_site_of_archive() -> None:
            catalog = open_catalog_with_progress(archive.root)
            build_site(
                catalog,
                Path(folder),
                reports,
                lambda: open_progress_bar("watching histories"),
                lambda: open_progress_bar("writing pages"),
            )

        build_site_of_archive()
        with make_site_server(Path(folder), port, build_site_of_archive) as server:
            get_results_console().print(
                f"http://127.0.0.1:{server.server_address[1]}/  (Ctrl-C ends it)", soft_wrap=True
            )
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return 0
    return 0
