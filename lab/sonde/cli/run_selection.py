# SPDX-License-Identifier: Apache-2.0
"""The options that select runs, the same for all verbs that work on several runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.store.selection import RUN_STATUSES, VALIDITIES, Selection, parse_moment
from sonde.terminal.screen import get_messages_console

if TYPE_CHECKING:
    from sonde.store.catalog import Catalog

Command = TypeVar("Command", bound=Callable[..., Any])
ProgressCallback = Callable[[int, int], None]

_SELECTION_OPTIONS = (
    click.option("--plan", metavar="TEXT", default="", help="Only runs whose plan has this in its id or title."),
    click.option(
        "--on", "target", metavar="TEXT", default="", help="Only runs whose target or file system has this in its name."
    ),
    click.option("--system", metavar="TEXT", default="", help="Only runs of systems or hosts with this in their name."),
    click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only runs with this tag; several: with all."),
    click.option("--status", type=click.Choice(RUN_STATUSES), default=None, help="Only runs that ended like this."),
    click.option(
        "--validity",
        type=click.Choice(VALIDITIES),
        default=None,
        help="Only runs whose worst finding is: none or a remark (good), a warning (doubtful), or one that makes a"
        " number worthless (invalid).",
    ),
    click.option("--finding", metavar="ID", default="", help="Only runs with this finding, like cache_suspect."),
    click.option(
        "--plan-hash", metavar="HASH", default="", help="Only runs of the plan with this hash (`sonde query`)."
    ),
    click.option("--tasks", type=click.IntRange(1), default=None, help="Only runs with this many tasks."),
    click.option("--nodes", type=click.IntRange(1), default=None, help="Only runs on this many nodes."),
    click.option(
        "--source", metavar="TOOL", default="", help='Only runs imported from this tool; "sonde" for our own.'
    ),
    click.option("--since", metavar="WHEN", default="", help="Only runs since then: 2026-11-21, or 12h, 7d, 2w ago."),
    click.option("--until", metavar="WHEN", default="", help="Only runs before then."),
)


def add_selection_options(command: Command) -> Command:
    """Adds --plan, --on, --tag, … and passes them as `wanted`, a Selection."""

    @functools.wraps(command)
    def with_selection(*args: Any, **options: Any) -> Any:
        text_options = ("plan", "target", "system", "tags", "finding", "plan_hash", "tasks", "nodes", "source")
        values: dict[str, Any] = {name: options.pop(name) for name in text_options}
        values |= {name: options.pop(name) or "" for name in ("status", "validity")}
        since, until = options.pop("since"), options.pop("until")
        wanted = Selection(
            **values,
            since_s=parse_moment(since, "--since") if since else None,
            until_s=parse_moment(until, "--until") if until else None,
        )
        return command(*args, wanted=wanted, **options)

    decorated: Any = with_selection
    for option in reversed(_SELECTION_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def has_no_filter(selection: Selection) -> bool:
    """Returns whether no filter was given."""
    return selection == Selection()


@contextmanager
def open_progress_bar(bar_label: str) -> Iterator[ProgressCallback]:
    """Shows a progress bar on standard error from the first step on."""
    console = get_messages_console()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(bar_label, total=None, start=True, visible=False)

    def advance_progress_bar(done_count: int, total_count: int) -> None:
        bar.update(task, completed=done_count, total=total_count, visible=True)

    with bar:
        yield advance_progress_bar


def open_catalog_with_progress(archive_root: Path) -> Catalog:
    """Opens the catalog of the archive, with a progress bar while it reads new runs."""
    # The import of pyarrow takes longer than most commands.
    from sonde.store.catalog import Catalog

    with open_progress_bar("reading new runs") as step:
        return Catalog(archive_root, step)


def select_run_folders(
    archive: Archive, run_references: Sequence[str], selection: Selection, command_verb: str
) -> list[Path]:
    """Returns the folders of the runs that match both names and filters, as far as given. Raises UserError if neither
    is given."""
    if not run_references and has_no_filter(selection):
        raise UserError(f"Which runs to {command_verb}? Name them, or select them with --plan, --tag, --since, ….")
    folders = list(
        dict.fromkeys(
            folder
            for name in run_references
            for folder in archive.find_run_folders(name, includes_calibrations=command_verb == "remove")
        )
    )
    if has_no_filter(selection):
        return folders
    matching_names = (
        open_catalog_with_progress(archive.root).read_run_table(["folder"], selection)["folder"].to_pylist()
    )
    matching = [archive.root / folder for folder in matching_names]
    return [folder for folder in folders if folder in set(matching)] if run_references else matching
