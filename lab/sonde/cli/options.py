# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs share, and what they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sonde.experiments.where import Where
from sonde.launch.launchers.list import LOCAL, names
from sonde.model.errors import MachineError, UserError
from sonde.model.plan import Plan, read_document
from sonde.store.archive import Archive

Command = TypeVar("Command", bound=Callable[..., Any])
_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


class VerbGroup(click.Group):
    """Verbs of one subject: the first sentence of each whole."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As the overview of all verbs has it."""
        rows = [(name, self.commands[name].get_short_help_str(limit=1000)) for name in sorted(self.commands)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def archive_option(command: Command) -> Command:
    """--archive DIR, handed on as an Archive."""
    return click.option(
        "--archive",
        metavar="DIR",
        callback=lambda ctx, parameter, value: Archive.at(value),
        help="Folder of runs. Default: $SONDE_ARCHIVE, else ./sonde-archive.",
    )(command)


def kept_archive_option(command: Command) -> Command:
    """The same for verbs that only look at what was kept: a folder that was named must be there."""
    return click.option(
        "--archive",
        metavar="DIR",
        callback=lambda ctx, parameter, value: _kept(value),
        help="Folder of runs. Default: $SONDE_ARCHIVE, else ./sonde-archive.",
    )(command)


def _kept(option: str | None) -> Archive:
    archive = Archive.at(option)
    if option and not archive.root.is_dir():
        raise UserError(f"There is no archive {archive.root}; name the folder that holds the runs.")
    return archive


def json_option(command: Command) -> Command:
    """--json, handed on as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on standard output.")(
        command
    )


def report_option(command: Command) -> Command:
    """--report/--no-report, handed on as `report`."""
    return click.option("--report/--no-report", default=True, help="Write the HTML report too (default: yes).")(command)


def mpi_module_option(command: Command) -> Command:
    """--mpi-module FILE."""
    return click.option(
        "--mpi-module",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="MPI module for the engine to load instead of the one it would choose.",
    )(command)


def launcher_options(starts: str) -> Callable[[Command], Command]:
    """--launcher and --launcher-args, for what the launcher `starts`, in words ("the processes")."""

    def decorate(command: Command) -> Command:
        command = click.option(
            "--launcher-args", metavar="ARGS", default="", help='More arguments for it, like "-hosts n1,n2" (quoted).'
        )(command)
        return click.option(
            "--launcher",
            type=click.Choice(names()),
            default=LOCAL,
            show_default=True,
            help=f"What starts {starts}.",
        )(command)

    return decorate


def plan_options(command: Command) -> Command:
    """PLAN, --set, --on: what `load_plan` takes."""
    for decorate in (
        click.option(
            "--on", "target", metavar="DIR", help="Directory on the storage to measure; replaces target.path."
        ),
        click.option(
            "--set",
            "settings",
            metavar="PATH=VALUE",
            multiple=True,
            help="Change one member of the plan, like data.access.transfer=4KiB or phases.read.stop.time=10s."
            " May be given several times; null removes a member.",
        ),
        click.argument("plan"),
    ):
        command = decorate(command)
    return command


def task_options(command: Command) -> Command:
    """--tasks, --processes, --launcher, --launcher-args: what `spread` takes."""
    for decorate in (
        launcher_options("the processes"),
        click.option("--processes", type=click.IntRange(1, 65536), metavar="P", help="Processes that share the tasks."),
        click.option("--tasks", type=click.IntRange(1, 1 << 22), metavar="N", help="Streams of I/O, all together."),
    ):
        command = decorate(command)
    return command


def load_plan(name: str, settings: tuple[str, ...], target: str | None, written: dict[str, Any] | None = None) -> Plan:
    """The plan that the words of the user mean. A directory given with --on must be there. `written`: its document,
    where it was read already."""
    # what experiments are made of takes long to import, and most verbs load no plan
    from sonde.experiments.ready import plan_source

    document = read_document(plan_source(name)) if written is None else written
    if target is not None:
        existing_directory(target)
        place = document.setdefault("target", {})
        if isinstance(place, dict):
            place["path"] = target
    plan = Plan.from_document(document, "standard input" if name == "-" else name, settings)
    if settings and not any(one.startswith("title=") for one in settings):
        # The title says what the plan did before it was changed.
        title = f"{plan.title} (with {', '.join(settings)})"
        plan = plan.with_settings([f"title={json.dumps(title)}"])
    # What is kept must still mean something when it is read from another folder.
    return plan.with_settings([f"target.path={json.dumps(str(plan.target.absolute()))}"])


def existing_directory(name: str) -> Path:
    """The directory of that name. Raises UserError when there is none."""
    path = Path(name)
    if not name or "\0" in name:
        raise UserError("The name of the directory is empty; name the directory to measure.")
    try:
        if not path.exists():
            raise UserError(f"There is no directory {name}; name one on the file system to measure.")
        if not path.is_dir():
            raise UserError(f"{name} is not a directory; Sonde writes files of its own into a directory.")
    except OSError as reason:
        raise MachineError(f"{name} cannot be examined: {reason.strerror}.") from None
    return path


def spread(plan: Plan, launcher: str, tasks: int | None, processes: int | None) -> tuple[Plan, int]:
    """The plan with the tasks divided as asked, and the number of processes a launcher must start.

    Tasks are processes x threads. One machine alone: one process unless asked otherwise. Under a launcher: a process a
    task unless asked otherwise, and the plan says nothing about processes, because the launcher does.
    """
    if tasks is None and processes is None:
        ranks = plan.processes if launcher != LOCAL else 1
        return (_without_processes(plan) if launcher != LOCAL else plan), ranks
    count = processes or ((tasks or 1) if launcher != LOCAL else 1)
    if tasks is None:
        threads = plan.threads
    elif tasks % count:
        raise UserError(f"--tasks {tasks} cannot be divided evenly among --processes {count}.")
    else:
        threads = tasks // count
    if threads > 4096:
        raise UserError(f"{threads} tasks in one process are too many (4096 at most); add --processes.")
    plan = plan.with_settings([f"tasks.threads={threads}"])
    if launcher != LOCAL:
        return _without_processes(plan), count
    return plan.with_settings([f"tasks.processes={count}"]), 1


def _without_processes(plan: Plan) -> Plan:
    return plan.with_settings(["tasks.processes=null"])


def where(on: Sequence[str], pools: Sequence[str], system: str | None, launcher: str, launcher_args: str) -> Where:
    """What --on, --pool and --system say. Every directory must be there. Raises UserError."""
    default, named = "", dict[str, str]()
    for text in on:
        found = None if Path(text).is_dir() else _NAMED.fullmatch(text)
        if found is None:
            if default:
                raise UserError(f"--on is given twice, with {default} and {text}; for several write --on NAME=DIR.")
            default = str(existing_directory(text).absolute())
        else:
            if found[1] in named:
                raise UserError(f"--on {found[1]} is given twice; one directory is enough.")
            named[found[1]] = _there("--on", found[1], found[2])
    pooled: dict[str, tuple[str, ...]] = {}
    for text in pools:
        for one in re.split(r",(?=[A-Za-z0-9][\w.-]*=)", text):
            found = _NAMED.fullmatch(one)
            if found is None:
                raise UserError(f'--pool "{one}" does not say which directory a pool is; write --pool NAME=DIR.')
            if found[1] in pooled:
                raise UserError(f"--pool {found[1]} is given twice; write its directories together: NAME=DIR,DIR.")
            pooled[found[1]] = _pool(found[1], found[2])
    return Where(default, named, pooled, system or "", launcher, launcher_args)


def _pool(name: str, text: str) -> tuple[str, ...]:
    """The directory of a pool, or its directories with commas between them. Raises UserError."""
    told = [text] if Path(text).is_dir() else text.split(",")
    listed = tuple(dict.fromkeys(_there("--pool", name, one) for one in told))
    if len(listed) < len(told):
        raise UserError(f"--pool {name} names a directory twice; each is one target of the pool.")
    return listed


def _there(option: str, name: str, directory: str) -> str:
    """The directory as it is called from anywhere. Raises UserError when there is none."""
    try:
        return str(existing_directory(directory).absolute())
    except UserError as reason:
        raise type(reason)(f"{option} {name}: {reason}") from None
