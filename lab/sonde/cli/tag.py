# SPDX-License-Identifier: Apache-2.0
"""``sonde tag``: adds, removes and lists tags of runs."""

from __future__ import annotations

from collections import Counter

import click

from sonde.cli.options import add_existing_archive_option, add_json_option
from sonde.cli.run_selection import (
    add_selection_options,
    has_no_filter,
    open_catalog_with_progress,
    open_progress_bar,
    select_run_folders,
)
from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.store.selection import Selection
from sonde.store.tags import change_tags, check_tag, read_tags
from sonde.terminal.screen import get_results_console, make_plain_table, print_json


@click.command("tag")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--add", "added", metavar="TAG", multiple=True, help="Add this tag to the runs.")
@click.option("--remove", "removed", metavar="TAG", multiple=True, help="Remove this tag from the runs.")
@add_selection_options
@add_existing_archive_option
@add_json_option
def command(
    runs: tuple[str, ...],
    added: tuple[str, ...],
    removed: tuple[str, ...],
    wanted: Selection,
    archive: Archive,
    as_json: bool,
) -> int:
    """Add, remove or print tags of the runs that match the names and the filters, as far as given.

    Without names and filters, print all tags and the number of runs of each.

    \b
    Examples:
      sonde tag last --add accepted
      sonde tag --plan daily --since 7d --add before-upgrade
      sonde tag --tag accepted --remove accepted
      sonde tag

    More: sonde help tasks/archive
    """
    archive.recover_unfinished_runs()
    for tag in added:
        check_tag(tag)
    if not runs and has_no_filter(wanted) and not added and not removed:
        return _print_tag_counts(archive, as_json)
    folders = select_run_folders(archive, runs, wanted, "tag")
    if not folders:
        raise UserError("No run matches; no tag was changed.")
    tagged: dict[str, list[str]] = {}
    with open_progress_bar("tagging") as step:
        for done, folder in enumerate(folders):
            change = added or removed
            tagged[folder.name] = change_tags(folder, added, removed) if change else read_tags(folder)
            step(done + 1, len(folders))
    if as_json:
        print_json(tagged)
    elif len(tagged) > 20 and (added or removed):
        get_results_console().print(f"{len(tagged):,} runs have their tags now.", soft_wrap=True)
    else:
        for name, tags in tagged.items():
            get_results_console().print(f"{name}  {' '.join(tags) or '-'}", soft_wrap=True)
    return 0


def _print_tag_counts(archive: Archive, as_json: bool) -> int:
    catalog = open_catalog_with_progress(archive.root)
    counts = Counter(tag for tags in catalog.read_run_table(["tags"])["tags"].to_pylist() for tag in tags or ())
    if as_json:
        print_json(dict(sorted(counts.items())))
        return 0
    if not counts:
        get_results_console().print(f"No run in the archive {archive.root} has a tag.", soft_wrap=True)
        return 0
    table = make_plain_table()
    table.add_column("tag")
    table.add_column("runs", justify="right")
    for tag, count in sorted(counts.items()):
        table.add_row(tag, f"{count:,}")
    get_results_console().print(table)
    return 0
