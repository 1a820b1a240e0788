# SPDX-License-Identifier: Apache-2.0
"""``sonde iobuf``: run a program with a buffer between its small reads and writes and the file system."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from sonde.advise.buffers import choose_iobuf_params, convert_ffio_specification
from sonde.launch.preload import (
    find_interceptable_program,
    find_iobuf_include_folder,
    find_iobuf_starter,
    find_preload_library,
    make_preload_environment,
    require_interceptable_calls,
    validate_iobuf_settings,
)
from sonde.model.errors import MachineError, UserError
from sonde.model.shell import quote_word
from sonde.model.trace import read_trace
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.screen import get_messages_console

CHOSEN_BY_MEASUREMENT = "*:auto"


@click.command("iobuf", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--params", metavar="TEXT", help="What to buffer, as in IOBUF_PARAMS: PATTERN[:OPTION[=VALUE]]...[,...]")
@click.option("--ffio", metavar="SPEC", help='The same as an FFIO specification: "cachea:4096:8:8 -B on p:%.dat"')
@click.option("--settings", metavar="FILE", help="The same in a file, one entry a line.")
@click.option("--from", "trace", metavar="TRACE", help="Choose buffers from an earlier `sonde trace`.")
@click.option("--alone", is_flag=True, help="No other process uses these files: buffer them without a lease, too.")
@click.option("--report", is_flag=True, help="Say for each file at its close what was done (option verbose for all).")
@click.option("--json", "lines", metavar="DIR", help="The same as JSON, one file a process in DIR.")
@click.option(
    "--starter", is_flag=True, help="Print where sonde-iobuf is: the same without Python, for small programs."
)
@click.option("--cflags", is_flag=True, help="Print the flags with which a C program with FFIO calls is compiled.")
@click.option("--check", is_flag=True, help="Say whether the buffer sees all calls of PROGRAM, and do not start it.")
@click.option("-n", "--dry-run", is_flag=True, help="Print the settings and do not start PROGRAM.")
@click.argument("command_line", nargs=-1, metavar="-- PROGRAM [ARGUMENTS]...")
def command(
    params: str | None,
    ffio: str | None,
    settings: str | None,
    trace: str | None,
    alone: bool,
    report: bool,
    lines: str | None,
    starter: bool,
    cflags: bool,
    check: bool,
    dry_run: bool,
    command_line: tuple[str, ...],
) -> int:
    """Run PROGRAM with a buffer between its small reads and writes and the file system.

    Nothing is recompiled. Without settings the library measures which files gain, and buffers a file only under a
    lease of the kernel: another process that opens the file waits until its data is handed over. Files that you name
    (--params, --ffio, --settings, --from, or IOBUF_PARAMS of the environment) are always buffered, on your word where
    the file system has no leases. With --alone you say that no other process uses the files: a refused lease does not
    count.

    \b
    Examples:
      sonde iobuf --report -- ./solver input.nml
      sonde iobuf --params 'out.dat:size=4M:count=8:prefetch=2' -- ./solver
      sonde iobuf --from job17 -- mpiexec -n 64 ./solver
      sonde iobuf --check -- ./solver

    More: sonde help tasks/small-io
    """
    if starter:
        print_plain_text(str(find_iobuf_starter()))
        return 0
    if cflags:
        print_plain_text(f"-D_GNU_SOURCE -I{quote_word(str(find_iobuf_include_folder()))}")
        return 0
    if sum(source is not None for source in (params, ffio, trace)) > 1:
        raise UserError("--params, --ffio and --from each choose the settings: give one of them.")
    text = _choose_buffer_settings(params, ffio, trace, settings)
    if alone:
        text = ",".join(_add_alone_option(entry) for entry in (text or CHOSEN_BY_MEASUREMENT).split(","))
    variables = {
        name: value
        for name, value in (("IOBUF_PARAMS", text), ("SONDE_IOBUF_FILE", _require_settings_file(settings)))
        if value
    }
    if report:
        variables["IOBUF_VERBOSE"] = "1"
    if lines is not None:
        variables["SONDE_IOBUF_LINES"] = str(_make_lines_folder(lines))
    if dry_run:
        print_plain_text("\n".join(f"{name}={value}" for name, value in variables.items()))
        return 0
    if not command_line:
        raise UserError("Name the program to run after --: sonde iobuf -- ./solver input.nml")
    library = find_preload_library()
    program = find_interceptable_program(command_line[0], library)
    if params is not None or settings is not None:
        validate_iobuf_settings(library, variables)
    if check:
        require_interceptable_calls(program, command_line[0])
        print_plain_text(f"{command_line[0]}: the buffer sees its calls; they go through the C library.")
        return 0
    if trace is not None:
        get_messages_console().print(f"sonde: IOBUF_PARAMS={text}", soft_wrap=True)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        # In place of us: no process in between that would have to pass on signals and exit codes.
        os.execve(program, list(command_line), make_preload_environment(library, **variables))
    except OSError as reason:
        raise MachineError(f"{command_line[0]} does not start: {reason.strerror}.") from None


def _choose_buffer_settings(
    params_option: str | None, ffio_option: str | None, trace_option: str | None, settings_file: str | None
) -> str:
    if params_option is not None:
        return params_option
    if ffio_option is not None:
        return convert_ffio_specification(ffio_option)
    if trace_option is not None:
        return choose_iobuf_params(read_trace(Path(trace_option)))
    return os.environ.get("IOBUF_PARAMS", "" if settings_file else CHOSEN_BY_MEASUREMENT)


def _add_alone_option(params_entry: str) -> str:
    """Return the entry with option alone; entries that name no files (%process) stay as they are."""
    return params_entry if params_entry.strip().startswith("%") else f"{params_entry}:alone"


def _require_settings_file(settings_file: str | None) -> str:
    if settings_file is None:
        return os.environ.get("SONDE_IOBUF_FILE", "")
    path = Path(settings_file).absolute()
    if not path.is_file():
        raise UserError(f"The settings file {settings_file} does not exist.")
    return str(path)


def _make_lines_folder(program_lines: str) -> Path:
    folder = Path(program_lines).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise MachineError(f"The folder {folder} cannot be made: {reason.strerror}.") from None
    return folder
