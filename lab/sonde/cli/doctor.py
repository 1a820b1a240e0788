# SPDX-License-Identifier: Apache-2.0
"""``sonde doctor``: reports what works on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.text import Text

from sonde.cli.options import add_archive_option, add_json_option
from sonde.experiments.locations import require_existing_directory
from sonde.launch.engine import find_engine
from sonde.launch.machine_facts import NO, PARTLY, YES, collect_machine_facts
from sonde.launch.mpi_module import build_mpi_module
from sonde.model.configuration import (
    GENERAL_SETTINGS,
    SITE_FILE,
    ConfigurationFile,
    locate_user_configuration,
    read_configuration_files,
)
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_OK, UserError
from sonde.model.units import format_count_with_noun
from sonde.store.archive import ARCHIVE_VARIABLE, Archive
from sonde.terminal.screen import (
    get_messages_console,
    get_output_settings,
    get_results_console,
    make_plain_table,
    print_json,
)

_STATE_STYLE = {YES: ("✓", "green"), PARTLY: ("~", "yellow"), NO: ("✗", "red")}
# A part that this machine does not have and need not have.
_ABSENT_STYLE = ("–", "dim")


@click.command("doctor")
@click.argument("directory", required=False)
@add_archive_option
@add_json_option
@click.option("--build-mpi", is_flag=True, help="Build the MPI module for this machine's MPI, next to the engine.")
@click.option(
    "--wrapper",
    type=click.Path(path_type=Path),
    metavar="PROGRAM",
    help="The MPI's compiler wrapper, if it is not the mpicxx on PATH.",
)
@click.option("--config", "show_config", is_flag=True, help="Show configuration files and where each setting is from.")
@click.pass_context
def command(
    ctx: click.Context,
    directory: str | None,
    archive: Archive,
    as_json: bool,
    build_mpi: bool,
    wrapper: Path | None,
    show_config: bool,
) -> int:
    """Report what works on this machine, what does not and why, and what would help.

    With DIRECTORY, also report what its file system supports. The exit code is 3 if something essential is missing.

    If Sonde was installed before the MPI, --build-mpi builds the engine's MPI module; this needs the MPI's compiler
    wrapper.

    \b
    Examples:
      sonde doctor
      sonde doctor /scratch
      sonde doctor /scratch --json
      sonde doctor --config
      sonde doctor --build-mpi
      sonde doctor --build-mpi --wrapper /opt/mpi/bin/mpicxx

    More: sonde help start
    """
    if show_config:
        return _print_configuration(
            archive, ctx.get_parameter_source("archive") is ParameterSource.COMMANDLINE, as_json
        )
    if wrapper is not None and not build_mpi:
        raise UserError("--wrapper says how to build the MPI module: add --build-mpi.")
    if build_mpi:
        built = build_mpi_module(find_engine(), wrapper)
        get_messages_console().print(f"sonde: built {built.path} with {built.wrapper}", soft_wrap=True)
    target = require_existing_directory(directory) if directory is not None else None
    all_facts = collect_machine_facts(target, archive.root)
    lacking = any(fact.essential and fact.state == NO for fact in all_facts)
    if as_json:
        counts = {state: sum(fact.state == state for fact in all_facts) for state in (YES, PARTLY, NO)}
        print_json({"works": not lacking, "counts": counts, "facts": [asdict(fact) for fact in all_facts]})
        return EXIT_ENVIRONMENT if lacking else EXIT_OK
    table = make_plain_table(shows_header=False)
    for title in ("state", "check", "result"):  # of --export
        table.add_column(title)
    for fact in all_facts:
        mark, style = _ABSENT_STYLE if fact.state == NO and not fact.essential else _STATE_STYLE[fact.state]
        text = Text(fact.text)
        if fact.remedy:
            text.append(f"\n{fact.remedy}", style="dim")
        table.add_row(Text(mark, style=style), Text(fact.topic, style="bold"), text)
    get_results_console().print(table)
    works, partly, lacks = (sum(fact.state == state for fact in all_facts) for state in (YES, PARTLY, NO))
    get_results_console().print(
        f"{format_count_with_noun(len(all_facts), 'check')}: {works} good, {partly} partly, {lacks} not.", style="bold"
    )
    return EXIT_ENVIRONMENT if lacking else EXIT_OK


def _print_configuration(archive: Archive, is_stated: bool, as_json: bool) -> int:
    """Prints each setting with its value and where it is from, and the files that are read."""
    files = read_configuration_files()
    rows = [
        (
            "archive",
            str(archive.root),
            "command line" if is_stated else _find_setting_source("archive", ARCHIVE_VARIABLE, files),
        )
    ]
    settings = get_output_settings()
    rows += [
        ("color", settings.color, _find_output_setting_source("color", settings.color, "auto", files)),
        (
            "quiet",
            str(settings.is_quiet).lower(),
            _find_output_setting_source("quiet", settings.is_quiet, False, files),
        ),
    ]
    winning: set[str] = set()
    for file in files:
        for name, value in _flatten_tables(file.values):
            if name not in winning and name not in GENERAL_SETTINGS:
                rows.append((name, str(value), str(file.path)))
            winning.add(name)
    if as_json:
        names = ("setting", "value", "from")
        print_json(
            {
                "files": [str(file.path) for file in files],
                "settings": [dict(zip(names, row, strict=True)) for row in rows],
            }
        )
        return EXIT_OK
    table = make_plain_table()
    for title in ("setting", "value", "from"):
        table.add_column(title)
    for row in rows:
        table.add_row(*row)
    get_results_console().print(table)
    present = {file.path for file in files}
    for path in (locate_user_configuration(), SITE_FILE):
        get_results_console().print(f"{path}: {'read' if path in present else 'absent'}", style="dim", soft_wrap=True)
    get_results_console().print(
        "The first of these wins: command line, environment, user's file, site's file, default."
        " A file overrides NO_COLOR."
    )
    return EXIT_OK


def _find_setting_source(setting_name: str, variable: str, files: Sequence[ConfigurationFile]) -> str:
    if os.environ.get(variable):
        return f"${variable}"
    return next((str(file.path) for file in files if setting_name in file.values), "default")


def _find_output_setting_source(
    setting_name: str, setting_value: Any, default: Any, files: Sequence[ConfigurationFile]
) -> str:
    """Returns where `color` or `quiet` is from. As no-color.org asks, a file overrides $NO_COLOR."""
    file = next((file for file in files if setting_name in file.values), None)
    if setting_value != (file.values[setting_name] if file else default):
        return "command line"
    if file is not None:
        return str(file.path)
    return "$NO_COLOR" if setting_name == "color" and os.environ.get("NO_COLOR") else "default"


def _flatten_tables(configuration_table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (name, value) with names like run.launcher."""
    for name, value in configuration_table.items():
        if isinstance(value, Mapping):
            yield from _flatten_tables(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
