# SPDX-License-Identifier: Apache-2.0
"""``sonde iobuf``: run a program with its small accesses gathered into large ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from sonde.advise.buffers import params_from_ffio, params_from_trace
from sonde.launch.preload import check_program, check_settings, environment, find_library, find_starter
from sonde.model.errors import MachineError, UserError
from sonde.model.trace import read_trace
from sonde.terminal.screen import messages

EVERYTHING = "*"
CHOSEN_WHILE_IT_RUNS = "*:auto"


@click.command("iobuf", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--params", metavar="TEXT", help="What to buffer, as in IOBUF_PARAMS: PATTERN[:OPTION[=VALUE]]...[,...]")
@click.option("--ffio", metavar="SPEC", help='The same as an FFIO specification: "cachea:4096:8:8 -B on p:%.dat"')
@click.option("--settings", metavar="FILE", help="The same in a file, one entry a line.")
@click.option("--auto", is_flag=True, help="Choose buffers for each file from its first calls.")
@click.option("--from", "trace", metavar="TRACE", help="Choose them from an earlier `sonde trace`.")
@click.option("--alone", is_flag=True, help="No other process looks at these files before they are closed: keep pages.")
@click.option("--report", is_flag=True, help="Say for each file at its close what was done (option verbose for all).")
@click.option("--json", "lines", metavar="DIR", help="The same as JSON, one file a process in DIR.")
@click.option(
    "--starter", is_flag=True, help="Print where sonde-iobuf is: the same without Python, for small programs."
)
@click.option("-n", "--dry-run", is_flag=True, help="Print the settings and do not start PROGRAM.")
@click.argument("command_line", nargs=-1, metavar="-- PROGRAM [ARGUMENTS]...")
def command(
    params: str | None,
    ffio: str | None,
    settings: str | None,
    auto: bool,
    trace: str | None,
    alone: bool,
    report: bool,
    lines: str | None,
    starter: bool,
    dry_run: bool,
    command_line: tuple[str, ...],
) -> int:
    """Run PROGRAM with its small accesses gathered into large ones.

    Nothing is recompiled. By default calls are gathered only while the program does nothing else that others could
    notice, so nobody can tell. With --alone whole pages are kept, read ahead and written behind until a file is closed
    or synchronized: you say that no other process looks at these files before. Without settings IOBUF_PARAMS of the
    environment is used, else all files outside of system folders are meant.

    \b
    Examples:
      sonde iobuf --report -- ./solver input.nml
      sonde iobuf --params 'out.dat:size=4M:count=8:prefetch=2' -- ./solver
      sonde iobuf --alone --from job17 -- mpiexec -n 64 ./solver
    """
    if starter:
        click.echo(str(find_starter()))
        return 0
    chosen = [one for one in (params, ffio, trace, auto or None) if one is not None]
    if len(chosen) > 1:
        raise UserError("--params, --ffio, --auto and --from each choose the settings: give one of them.")
    text = _settings(params, ffio, auto, trace, settings)
    if alone:
        text = ",".join(_with_promise(entry) for entry in (text or EVERYTHING).split(","))
    variables = {
        name: value for name, value in (("IOBUF_PARAMS", text), ("SONDE_IOBUF_FILE", _file(settings))) if value
    }
    if report:
        variables["IOBUF_VERBOSE"] = "1"
    if lines is not None:
        variables["SONDE_IOBUF_LINES"] = str(_folder(lines))
    if dry_run:
        click.echo("\n".join(f"{name}={value}" for name, value in variables.items()))
        return 0
    if not command_line:
        raise UserError("Name the program to run after --: sonde iobuf -- ./solver input.nml")
    library = find_library()
    program = check_program(command_line[0], library)
    if params is not None or settings is not None:
        check_settings(library, variables)
    if trace is not None or auto:
        messages().print(f"sonde: IOBUF_PARAMS={text}", soft_wrap=True)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        # In place of us: no process in between that would have to pass on signals and exit codes.
        os.execve(program, list(command_line), environment(library, **variables))
    except OSError as reason:
        raise MachineError(f"{command_line[0]} does not start: {reason.strerror}.") from None


def _settings(params: str | None, ffio: str | None, auto: bool, trace: str | None, file: str | None) -> str:
    if params is not None:
        return params
    if ffio is not None:
        return params_from_ffio(ffio)
    if trace is not None:
        return params_from_trace(read_trace(Path(trace)))
    if auto:
        return CHOSEN_WHILE_IT_RUNS
    return os.environ.get("IOBUF_PARAMS", "" if file else EVERYTHING)


def _with_promise(entry: str) -> str:
    """The entry with option alone; entries that are no files' stay as they are."""
    return entry if entry.strip().startswith("%") else f"{entry}:alone"


def _file(settings: str | None) -> str:
    if settings is None:
        return os.environ.get("SONDE_IOBUF_FILE", "")
    path = Path(settings).absolute()
    if not path.is_file():
        raise UserError(f"The settings file {settings} does not exist.")
    return str(path)


def _folder(lines: str) -> Path:
    folder = Path(lines).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise MachineError(f"The folder {folder} cannot be made: {reason.strerror}.") from None
    return folder
