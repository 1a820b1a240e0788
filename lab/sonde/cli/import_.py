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
from sonde.sources.csv_rows import read_csv_header, read_csv_runs
from sonde.sources.formats import identify_result_format, read_result_file, read_result_text
from sonde.sources.import_defaults import ImportDefaults
from sonde.sources.result_folders import find_result_files
from sonde.store.archive import RECORD, Archive
from sonde.store.imports import add_imported_runs
from sonde.store.packing import UnpackResult, copy_runs, is_pack_file_name, unpack_runs
from sonde.store.summary import SUMMARY_FILE
from sonde.store.tags import change_tags, check_tag
from sonde.terminal.screen import get_messages_console, get_results_console, print_json

_MAX_LISTED_MESSAGES = 10


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
    return _print_import_result(result, archive, paths, dry_run, as_json)


def _find_time_zone(zone_name: str) -> tzinfo:
    try:
        return ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UserError(
            f'--zone "{zone_name}" is not a time zone that is known here; write one like Europe/Berlin.'
        ) from None


def _import_path_or_complain(
    imported_path: Path,
    is_only_path: bool,
    archive: Archive,
    column_map: ColumnMap | None,
    import_defaults: ImportDefaults,
    dry_run: bool,
    import_result: _ImportResult,
) -> None:
    """Imports a path; of several, one that cannot be read becomes a complaint. Raises UserError when it is alone."""
    try:
        contents = (
            find_result_files(imported_path)
            if imported_path.is_dir() and not _is_run_or_archive(imported_path)
            else None
        )
        if contents and contents.files:
            import_result.other_files += contents.other_files
            for file in contents.files:
                _import_path_or_complain(file, False, archive, column_map, import_defaults, dry_run, import_result)
        else:
            _import_path(imported_path, archive, column_map, import_defaults, dry_run, import_result)
    except UserError as reason:
        if is_only_path:
            raise
        import_result.unreadable_files += 1
        import_result.complaints.append(str(reason))


def _import_path(
    imported_path: Path,
    archive: Archive,
    column_map: ColumnMap | None,
    import_defaults: ImportDefaults,
    dry_run: bool,
    import_result: _ImportResult,
) -> None:
    if imported_path.is_dir() or is_pack_file_name(imported_path):
        if dry_run:
            raise UserError(f"{imported_path} holds runs; --dry-run is for results of other tools.")
        with open_progress_bar(f"importing {imported_path.name}") as step:
            brought: UnpackResult = (
                copy_runs(archive, _list_run_folders(imported_path), str(imported_path), step)
                if imported_path.is_dir()
                else unpack_runs(archive, imported_path, step)
            )
        import_result.added += brought.added
        import_result.duplicates += brought.duplicates
        import_result.complaints += brought.complaints
        return
    if column_map is None and imported_path.suffix.lower() == ".csv" and not _identify_format_name(imported_path):
        raise UserError(f"What do the columns of {imported_path} mean? {_propose_column_map(imported_path)}")
    rows = column_map is not None
    imported = (
        read_result_file(imported_path, import_defaults)
        if column_map is None
        else read_csv_runs(imported_path, column_map, import_result.complaints.append)
    )
    runs = (_add_default_names(run, import_defaults) for run in imported)
    if dry_run:
        _print_import_preview(runs, import_result)
        return
    source = {
        "file": imported_path.name,
        "sha256": _hash_file_content(imported_path),
        "format": "csv" if rows else _identify_format_name(imported_path),
    }
    with open_progress_bar(f"importing {imported_path.name}") as step:
        added = add_imported_runs(archive, runs, source, None if rows else imported_path, lambda done: step(done, done))
    import_result.added += added.folders
    import_result.duplicates += added.duplicates


def _propose_column_map(csv_file: Path) -> str:
    """Returns advice on --map, with options guessed from the names of the columns if possible."""
    settings = guess_column_map(read_csv_header(csv_file))
    if not settings:
        return 'Say it with --map, like --map time=start --map "rate=bw GiB/s", or with --columns map.toml.'
    options = " ".join(f"--map {quote_word(setting)}" for setting in settings)
    return f"By their names, perhaps {options} (see --help; --dry-run shows the result)."


def _add_default_names(imported_run: ImportedRun, import_defaults: ImportDefaults) -> ImportedRun:
    """Returns the run with the given names of system and file system if its file lacks them."""
    return replace(
        imported_run,
        system=imported_run.system or import_defaults.system,
        file_system=imported_run.file_system or import_defaults.file_system,
    )


def _is_run_or_archive(directory: Path) -> bool:
    """Whether a folder is a run of Sonde, or an archive with at least one."""
    return any((folder / name).is_file() for folder in _list_run_folders(directory) for name in (SUMMARY_FILE, RECORD))


def _list_run_folders(run_or_archive: Path) -> list[Path]:
    """Returns the runs of a folder: the folder itself, or those of an archive."""
    if (run_or_archive / SUMMARY_FILE).is_file() or (run_or_archive / RECORD).is_file():
        return [run_or_archive]
    return list(Archive(run_or_archive).iterate_run_folders())


def _identify_format_name(result_file: Path) -> str:
    """Returns the name of the format; empty if unknown."""
    chosen = identify_result_format(read_result_text(result_file))
    return chosen.name if chosen else ""


def _hash_file_content(file_path: Path) -> str:
    with file_path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _print_import_preview(runs: Iterator[ImportedRun], import_result: _ImportResult) -> None:
    for run in runs:
        import_result.added.append(Path(run.make_run_id()))
        if len(import_result.added) <= _MAX_LISTED_MESSAGES:
            rates = ", ".join(f"{phase.phase} {_format_phase_rate(phase)}" for phase in run.phases)
            get_messages_console().print(
                f"{run.make_run_id()}  {run.started:%Y-%m-%d %H:%M}  {run.tool}  {rates}", soft_wrap=True
            )


def _format_phase_rate(phase: ImportedPhase) -> str:
    if phase.bytes_per_s:
        return format_rate(phase.bytes_per_s)
    return format_ops(phase.ops_per_s) if phase.ops_per_s else "no rate"


def _print_import_result(
    import_result: _ImportResult, archive: Archive, paths: Sequence[Path], dry_run: bool, as_json: bool
) -> int:
    for complaint in import_result.complaints[:_MAX_LISTED_MESSAGES]:
        get_messages_console().print(f"sonde: {complaint}", soft_wrap=True)
    if len(import_result.complaints) > _MAX_LISTED_MESSAGES:
        get_messages_console().print(
            f"sonde: … and {len(import_result.complaints) - _MAX_LISTED_MESSAGES:,} more like that.", soft_wrap=True
        )
    added = len(import_result.added)
    if as_json:
        print_json(
            {
                "added": [folder.name for folder in import_result.added],
                "known": import_result.duplicates,
                "complaints": import_result.complaints,
                "unreadable_files": import_result.unreadable_files,
                "other_files": import_result.other_files,
            }
        )
    else:
        verb = "would come into" if dry_run else "came into"
        counts = f"{format_count_with_noun(added, 'run')} {verb} the archive {archive.root}"
        counts += f"; {import_result.duplicates:,} were there already" if import_result.duplicates else ""
        counts += (
            f"; {format_count_with_noun(import_result.unreadable_files, 'file')} could not be read"
            if import_result.unreadable_files
            else ""
        )
        counts += (
            f"; {format_count_with_noun(import_result.other_files, 'file')} in folders held no result"
            if import_result.other_files
            else ""
        )
        get_results_console().print(f"{counts}.", soft_wrap=True)
    if not added and not import_result.duplicates:
        empty = [path for path in paths if path.is_dir() and not (import_result.complaints and _list_run_folders(path))]
        folders = ", ".join(map(str, empty))
        reason = f": {folders} holds no run of Sonde's and no result of a known tool" if empty else ""
        raise UserError(f"Nothing was imported{reason}.")
    return EXIT_FAILED if import_result.unreadable_files else EXIT_OK
