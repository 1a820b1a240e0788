# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs share, and functions that parse them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sonde.experiments.locations import RunLocations, require_existing_directory
from sonde.launch.launchers.list import LOCAL, list_launcher_names
from sonde.model.errors import UserError
from sonde.model.target_names import is_block_device, is_object_store_target, make_target_absolute
from sonde.store.archive import Archive
from sonde.terminal.screen import get_messages_console

Command = TypeVar("Command", bound=Callable[..., Any])
_HELP_LINK_PATTERN = re.compile(r"^ *More: sonde help \S+$", re.MULTILINE)
_NAME_AND_VALUE_PATTERN = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


class VerbGroup(click.Group):
    """A group of verbs whose help prints the first sentence of each verb in full.

    A verb without a line "More: sonde help TOPIC" in its help gets that of the group.
    """

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a verb, with the group's link to the documentation."""
        link = _HELP_LINK_PATTERN.search(self.help or "")
        if link and not _HELP_LINK_PATTERN.search(cmd.help or ""):
            cmd.help = f"{inspect.cleandoc(cmd.help or '')}\n\n{link[0].strip()}"
        super().add_command(cmd, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Prints the verbs as the overview of all verbs does."""
        rows = [(name, self.commands[name].get_short_help_str(limit=1000)) for name in sorted(self.commands)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class OutputFile(click.Path):
    """A file that the verb writes. Its directory must exist, as for other tools: a mistyped path makes no folders."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises UserError for a file in a directory that does not exist."""
        path = Path(str(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            raise UserError(
                f"{path.parent} is no existing directory, so {path.name} cannot be written there: make it"
                f" (mkdir -p {path.parent}), or name another file."
            )
        return path


def add_archive_option(command: Command) -> Command:
    """Adds --archive DIR, passed as an Archive."""
    return click.option(
        "--archive",
        metavar="DIR",
        callback=lambda ctx, parameter, value: Archive.from_option(value, _print_archive_message),
        help="Folder of runs. Default: $SONDE_ARCHIVE, else ./sonde-archive.",
    )(command)


def _print_archive_message(sentence: str) -> None:
    get_messages_console().print(f"sonde: {sentence}", soft_wrap=True)


def add_existing_archive_option(command: Command) -> Command:
    """Adds --archive for verbs that only read the archive: a folder that the user names must exist."""
    return click.option(
        "--archive",
        metavar="DIR",
        callback=lambda ctx, parameter, value: _open_existing_archive(value),
        help="Folder of runs. Default: $SONDE_ARCHIVE, else ./sonde-archive.",
    )(command)


def _open_existing_archive(archive_option: str | None) -> Archive:
    archive = Archive.from_option(archive_option, _print_archive_message)
    if archive_option and not archive.root.is_dir():
        raise UserError(f"There is no archive {archive.root}; name the folder that holds the runs.")
    return archive


def add_json_option(command: Command) -> Command:
    """Adds --json, passed as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on standard output.")(
        command
    )


def add_report_option(command: Command) -> Command:
    """Adds --report/--no-report, passed as `report`."""
    return click.option("--report/--no-report", default=True, help="Write the HTML report too (default: yes).")(command)


def add_mpi_module_option(command: Command) -> Command:
    """Adds --mpi-module FILE."""
    return click.option(
        "--mpi-module",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="MPI module for the engine, instead of the one that it selects.",
    )(command)


def add_launcher_options(started_programs: str) -> Callable[[Command], Command]:
    """Adds --launcher and --launcher-args; `starts` names what the launcher starts ("the processes")."""

    def add_options(command: Command) -> Command:
        command = click.option(
            "--launcher-args", metavar="ARGS", default="", help='More arguments for it, like "-hosts n1,n2" (quoted).'
        )(command)
        return click.option(
            "--launcher",
            type=click.Choice(list_launcher_names()),
            default=LOCAL,
            show_default=True,
            help=f"What starts {started_programs}.",
        )(command)

    return add_options


def add_plan_options(command: Command) -> Command:
    """Adds PLAN, --set and --on, the arguments of `load_plan`."""
    for decorate in (
        click.option(
            "--on", "target", metavar="DIR", help="Directory on the storage to measure; replaces target.path."
        ),
        click.option(
            "--set",
            "settings",
            metavar="PATH=VALUE",
            multiple=True,
            help="Change one member of the plan, like data.access.transfer=4KiB or phases.read.stop.time=10s. May be"
            " given several times; null removes a member.",
        ),
        click.argument("plan"),
    ):
        command = decorate(command)
    return command


def add_task_options(command: Command) -> Command:
    """Adds --tasks, --processes, --launcher and --launcher-args, the arguments of `divide_tasks_into_processes`."""
    for decorate in (
        add_launcher_options("the processes"),
        click.option("--processes", type=click.IntRange(1, 65536), metavar="P", help="Processes that share the tasks."),
        click.option("--tasks", type=click.IntRange(1, 1 << 22), metavar="N", help="Total number of I/O streams."),
    ):
        command = decorate(command)
    return command


def parse_locations(
    directory_options: Sequence[str],
    pool_options: Sequence[str],
    system_name: str | None,
    launcher: str,
    launcher_args: str,
    is_plan_target: bool = False,
) -> RunLocations:
    """Parses --on, --pool and --system. Raises UserError, also for a missing directory. `is_plan_target`: --on may name
    a block device or a bucket, as the target of a plan may."""
    default, directories_by_name = "", dict[str, str]()
    for text in directory_options:
        match = None if Path(text).is_dir() else _NAME_AND_VALUE_PATTERN.fullmatch(text)
        if match is None:
            if default:
                raise UserError(f"--on is given twice, with {default} and {text}; for several write --on NAME=DIR.")
            has_files = not (is_plan_target and (is_block_device(text) or is_object_store_target(text)))
            default = str(require_existing_directory(text).absolute()) if has_files else make_target_absolute(text)
        else:
            if match[1] in directories_by_name:
                raise UserError(f"--on {match[1]} is given twice; one directory is enough.")
            directories_by_name[match[1]] = _resolve_directory("--on", match[1], match[2])
    pools_by_name: dict[str, tuple[str, ...]] = {}
    for text in pool_options:
        for entry in re.split(r",(?=[A-Za-z0-9][\w.-]*=)", text):
            match = _NAME_AND_VALUE_PATTERN.fullmatch(entry)
            if match is None:
                raise UserError(f'--pool "{entry}" does not say which directory a pool is; write --pool NAME=DIR.')
            if match[1] in pools_by_name:
                raise UserError(f"--pool {match[1]} is given twice; write its directories together: NAME=DIR,DIR.")
            pools_by_name[match[1]] = _parse_pool_directories(match[1], match[2])
    return RunLocations(default, directories_by_name, pools_by_name, system_name or "", launcher, launcher_args)


def _parse_pool_directories(pool_name: str, directories_text: str) -> tuple[str, ...]:
    """Parses one directory of a pool, or several with commas. Raises UserError."""
    texts = [directories_text] if Path(directories_text).is_dir() else directories_text.split(",")
    directories = tuple(
        dict.fromkeys(_resolve_directory("--pool", pool_name, directories_text) for directories_text in texts)
    )
    if len(directories) < len(texts):
        raise UserError(f"--pool {pool_name} names a directory twice; each is one target of the pool.")
    return directories


def _resolve_directory(option_name: str, location_name: str, directory: str) -> str:
    """Returns the absolute path of a directory. Raises UserError if there is none."""
    try:
        return str(require_existing_directory(directory).absolute())
    except UserError as reason:
        raise type(reason)(f"{option_name} {location_name}: {reason}") from None
