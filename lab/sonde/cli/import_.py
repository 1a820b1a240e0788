# SPDX-License-Identifier: Apache-2.0
"""``sonde import``: runs from elsewhere, and results of other tools."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from sonde.cli.options import add_archive_option, add_json_option
from sonde.cli.run_selection import open_progress_bar
from sonde.model.errors import EXIT_FAILED, EXIT_OK, UserError
from sonde.model.imported_runs import ImportedPhase, ImportedRun
from sonde.model.shell import quote_word
from sonde.model.units import format_count_with_noun, format_ops, format_rate
from sonde.sources.column_guesses import guess_column_map
from sonde.sources.columns import ColumnMap, read_column_map
from sonde.sources.csv_rows import read_header, read_rows
from sonde.sources.formats import identify_format, read_result_text, read_results
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.result_folders import find_results
from sonde.store.archive import RECORD, Archive
from sonde.store.imports import add_imported_runs
from sonde.store.packing import Brought, copy_runs, is_pack_file_name, unpack_runs
from sonde.store.summary import NAME as SUMMARY
from sonde.store.tags import change_tags, check_tag
from sonde.terminal.screen import get_messages_console, get_results_console, print_json

_MAX_LINES = 10


@dataclass
class _ImportResult:
    """The result of importing all files."""

    added: list[Path] = field(default_factory=list)
    duplicates: int = 0
    complaints: list[str] = field(default_factory=list)
    unreadable_files: int = 0  # results that are damaged, or of no known format
    other_files: int = 0  # files of folders that hold no result


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option(
    "--columns",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML file that maps the columns of a CSV file.",
)
@click.option(
    "--map",
    "settings",
    metavar="MEANING=COLUMN",
    multiple=True,
    help='The same on the command line, like time=start, "rate=rate_GiBps GiB/s", experiment=benchmark. May be given'
    " several times.",
)
@click.option("--system", metavar="NAME", default="", help="The system of the results, if they do not name it.")
@click.option("--file-system", metavar="NAME", default="", help="The file system, if they do not name it.")
@click.option("--zone", metavar="ZONE", default="UTC", help="Time zone of times without one, like Europe/Berlin.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add this tag to the imported runs.")
@click.option("-n", "--dry-run", is_flag=True, help="Only list the runs; nothing is stored.")
@add_archive_option
@add_json_option
def command(
    paths: tuple[Path, ...],
    columns: Path | None,
    settings: tuple[str, ...],
    system: str,
    file_system: str,
    zone: str,
    tags: tuple[str, ...],
    dry_run: bool,
    archive: Archive,
    as_json: bool,
) -> int:
    """Add runs and results to the archive. Runs that it already has stay unchanged, so an import may be repeated.

    PATH is a pack that `sonde export` wrote, a folder of runs (another archive, or one run), a CSV file with a map of
    its columns, or a result of another tool: IOR (text, JSON, CSV), mdtest, IOzone, fio (JSON), elbencho (text, JSON,
    CSV), IO500; or a folder of such results. Their numbers keep their names and never share a history with Sonde's.
    A file that cannot be read is reported and counted, and the others are imported; the exit code is then 1.

    \b
    Examples:
      sonde import accepted.tar.gz
      sonde import ior-1.txt ior-2.txt --system edison --file-system scratch1
      sonde import history.csv --map time=start --map op=operation --map "rate=rate_GiBps GiB/s" --map experiment=test
      sonde import history.csv --columns map.toml --dry-run

    More: sonde help tasks/import
    """
    for tag in tags:
        check_tag(tag)
    about = ImportDefaults(system=system, file_system=file_system, zone=_find_time_zone(zone))
    column_map = read_column_map(columns, settings) if columns or settings else None
    archive.recover_unfinished_runs()
    result = _ImportResult()
    for path in paths:
        if not path.exists():
            raise UserError(f"There is no file {path}.")
    for path in paths:
        _import_path_or_complain(path, len(paths) == 1, archive, column_map, about, dry_run, result)
    for folder in result.added if not dry_run else ():
        change_tags(folder, tags)
    return _print_result(result, archive, paths, dry_run, as_json)


def _find_time_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f'--zone "{name}" is not a time zone that is known here; write one like Europe/Berlin.'
        ) from None


def _import_path_or_complain(
    path: Path,
    alone: bool,
    archive: Archive,
    column_map: ColumnMap | None,
    about: ImportDefaults,
    dry_run: bool,
    result: _ImportResult,
) -> None:
    """Imports a path; of several, one that cannot be read becomes a complaint. Raises UserError when it is alone."""
    try:
        contents = find_results(path) if path.is_dir() and not _holds_runs(path) else None
        if contents and contents.files:
            result.other_files += contents.other_files
            for file in contents.files:
                _import_path_or_complain(file, False, archive, column_map, about, dry_run, result)
        else:
            _import_path(path, archive, column_map, about, dry_run, result)
    except UserError as reason:
        if alone:
            raise
        result.unreadable_files += 1
        result.complaints.append(str(reason))


def _import_path(
    path: Path,
    archive: Archive,
    column_map: ColumnMap | None,
    about: ImportDefaults,
    dry_run: bool,
    result: _ImportResult,
) -> None:
    if path.is_dir() or is_pack_file_name(path):
        if dry_run:
            raise UserError(f"{path} holds runs; --dry-run is for results of other tools.")
        with open_progress_bar(f"importing {path.name}") as step:
            brought: Brought = (
                copy_runs(archive, _list_run_folders(path), str(path), step)
                if path.is_dir()
                else unpack_runs(archive, path, step)
            )
        result.added += brought.added
        result.duplicates += brought.duplicates
        result.complaints += brought.complaints
        return
    if column_map is None and path.suffix.lower() == ".csv" and not _format_of(path):
        raise UserError(f"What do the columns of {path} mean? {_propose_column_map(path)}")
    rows = column_map is not None
    imported = (
        read_results(path, about) if column_map is None else read_rows(path, column_map, result.complaints.append)
    )
    runs = (_with_default_names(run, about) for run in imported)
    if dry_run:
        _print_preview(runs, result)
        return
    source = {"file": path.name, "sha256": _hash_file(path), "format": "csv" if rows else _format_of(path)}
    with open_progress_bar(f"importing {path.name}") as step:
        added = add_imported_runs(archive, runs, source, None if rows else path, lambda done: step(done, done))
    result.added += added.folders
    result.duplicates += added.duplicates


def _propose_column_map(path: Path) -> str:
    """Returns advice on --map, with options guessed from the names of the columns if possible."""
    settings = guess_column_map(read_header(path))
    if not settings:
        return 'Say it with --map, like --map time=start --map "rate=bw GiB/s", or with --columns map.toml.'
    options = " ".join(f"--map {quote_word(setting)}" for setting in settings)
    return f"By their names, perhaps {options} (see --help; --dry-run shows the result)."


def _with_default_names(run: ImportedRun, about: ImportDefaults) -> ImportedRun:
    """Returns the run with the given names of system and file system if its file lacks them."""
    return replace(run, system=run.system or about.system, file_system=run.file_system or about.file_system)


def _holds_runs(path: Path) -> bool:
    """Whether a folder is a run of Sonde, or an archive with at least one."""
    return any((folder / name).is_file() for folder in _list_run_folders(path) for name in (SUMMARY, RECORD))


def _list_run_folders(path: Path) -> list[Path]:
    """Returns the runs of a folder: the folder itself, or those of an archive."""
    if (path / SUMMARY).is_file() or (path / RECORD).is_file():
        return [path]
    return list(Archive(path).iterate_run_folders())


def _format_of(path: Path) -> str:
    """Returns the name of the format; empty if unknown."""
    chosen = identify_format(read_result_text(path))
    return chosen.name if chosen else ""


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _print_preview(runs: Iterator[ImportedRun], result: _ImportResult) -> None:
    for run in runs:
        result.added.append(Path(run.make_run_id()))
        if len(result.added) <= _MAX_LINES:
            rates = ", ".join(f"{phase.phase} {_format_phase_rate(phase)}" for phase in run.phases)
            get_messages_console().print(
                f"{run.make_run_id()}  {run.started:%Y-%m-%d %H:%M}  {run.tool}  {rates}", soft_wrap=True
            )


def _format_phase_rate(phase: ImportedPhase) -> str:
    if phase.bytes_per_s:
        return format_rate(phase.bytes_per_s)
    return format_ops(phase.ops_per_s) if phase.ops_per_s else "no rate"


def _print_result(result: _ImportResult, archive: Archive, paths: Sequence[Path], dry_run: bool, as_json: bool) -> int:
    for complaint in result.complaints[:_MAX_LINES]:
        get_messages_console().print(f"sonde: {complaint}", soft_wrap=True)
    if len(result.complaints) > _MAX_LINES:
        get_messages_console().print(
            f"sonde: … and {len(result.complaints) - _MAX_LINES:,} more like that.", soft_wrap=True
        )
    added = len(result.added)
    if as_json:
        print_json(
            {
                "added": [folder.name for folder in result.added],
                "known": result.duplicates,
                "complaints": result.complaints,
                "unreadable_files": result.unreadable_files,
                "other_files": result.other_files,
            }
        )
    else:
        verb = "would come into" if dry_run else "came into"
        counts = f"{format_count_with_noun(added, 'run')} {verb} the archive {archive.root}"
        counts += f"; {result.duplicates:,} were there already" if result.duplicates else ""
        counts += (
            f"; {format_count_with_noun(result.unreadable_files, 'file')} could not be read"
            if result.unreadable_files
            else ""
        )
        counts += (
            f"; {format_count_with_noun(result.other_files, 'file')} in folders held no result"
            if result.other_files
            else ""
        )
        get_results_console().print(f"{counts}.", soft_wrap=True)
    if not added and not result.duplicates:
        empty = [path for path in paths if path.is_dir() and not (result.complaints and _list_run_folders(path))]
        folders = ", ".join(map(str, empty))
        reason = f": {folders} holds no run of Sonde's and no result of a known tool" if empty else ""
        raise UserError(f"Nothing was imported{reason}.")
    return EXIT_FAILED if result.unreadable_files else EXIT_OK
