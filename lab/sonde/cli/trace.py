# SPDX-License-Identifier: Apache-2.0
"""``sonde trace``: what a program does to its files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from sonde.advise.buffer_gains import BufferForecast, BufferGain, predict_buffering
from sonde.cli.options import add_json_option
from sonde.launch.preload import find_interceptable_program, find_preload_library, make_preload_environment
from sonde.model.errors import MachineError
from sonde.model.shell import quote_command, quote_word
from sonde.model.trace import is_trace, read_trace
from sonde.model.units import format_count_with_noun, format_seconds
from sonde.terminal.screen import get_messages_console, print_json
from sonde.terminal.trace_tables import build_trace_document, print_trace


@click.command("trace", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o", "--output", "--out", "out", metavar="DIR", help="Folder for the trace. Default: a new sonde-trace-TIME here."
)
@click.option("--events", default=65536, show_default=True, help="Single calls to keep for each process.")
@add_json_option
@click.argument("command_line", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENTS]...")
def command(out: str | None, events: int, as_json: bool, command_line: tuple[str, ...]) -> int:
    """Run PROGRAM and count what it does to its files, without changing anything.

    All processes that it starts are traced too, so a launcher can stand in front: each rank leaves a trace of its own.
    The exit code is that of PROGRAM.

    \b
    Examples:
      sonde trace -- ./solver input.nml
      sonde trace --out job17 -- mpiexec -n 64 ./solver
      sonde show job17
      sonde iobuf --from job17 -- ./solver input.nml

    More: sonde help tasks/small-io
    """
    library = find_preload_library()
    find_interceptable_program(command_line[0], library)
    folder = Path(out or f"sonde-trace-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}").absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise MachineError(f"The folder {folder} for the trace cannot be made: {reason.strerror}.") from None
    before = is_trace(folder)
    variables = {"SONDE_TRACE": str(folder), "SONDE_TRACE_EVENTS": str(max(0, events))}
    code = run_traced_program(command_line, make_preload_environment(library, **variables))
    if not is_trace(folder):
        get_messages_console().print(
            "sonde: the program touched no regular file, or was killed before it could say so."
        )
        with contextlib.suppress(OSError):
            folder.rmdir()  # only when it is empty
        return code
    trace = read_trace(folder)
    forecast = predict_buffering(trace, folder)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "exit_code": code,
                **build_trace_document(trace),
                "buffering": forecast.build_document(),
            }
        )
    else:
        # Not into what the program itself prints: somebody may read that.
        print_trace(get_messages_console(), trace)
        if before:
            get_messages_console().print(
                f"{folder} held traces before; they are counted here too.", style="yellow", soft_wrap=True
            )
        get_messages_console().print(_describe_buffering_benefit(forecast, folder, command_line), soft_wrap=True)
        get_messages_console().print(f"Files  {folder}", soft_wrap=True, style="dim")
    return code


def _describe_buffering_benefit(forecast: BufferForecast, folder: Path, command_line: tuple[str, ...]) -> str:
    """Whether gathering small accesses would help, how, and by how much."""
    if not forecast.files:
        return "Gathering small accesses (sonde iobuf) would not help: no file has many that follow each other."
    program = quote_command(command_line)
    files = "one file has" if forecast.files == 1 else f"{forecast.files} files have"
    bound = "" if forecast.chosen else ", which is the most that can be gained"
    return (
        f"Gathering small accesses may help: {files} many that follow each other. Their {forecast.calls:,} calls took"
        f" {format_seconds(forecast.seconds)} of all processes{bound}.\n"
        f"Safe for any program{_describe_gain(forecast.automatic, forecast)}: sonde iobuf -- {program}\n"
        f"When no other process looks at the files before they are closed{_describe_gain(forecast.chosen, forecast)}:"
        f" sonde iobuf --from {quote_word(str(folder))} -- {program}"
    )


def _describe_gain(gain: BufferGain | None, forecast: BufferForecast) -> str:
    if gain is None:
        return ""
    if gain.storage_calls >= gain.calls:
        return " (predicted: not buffered)"
    share = 100 * gain.saved_s / max(forecast.run_seconds, 1e-9)
    verb = "saved" if gain.saved_s >= 0 else "lost"
    return (
        f" (predicted: {format_count_with_noun(round(gain.storage_calls), 'call')},"
        f" {format_seconds(abs(gain.saved_s))} {verb}, {abs(share):.0f} % of the run)"
    )


def run_traced_program(command_line: tuple[str, ...], extra_variables: dict[str, str]) -> int:
    """Runs a program with our streams. Signals of the terminal reach it directly; this process stays and reports the
    outcome."""
    with _ignore_interrupts():
        try:
            done = subprocess.run(command_line, env=extra_variables, check=False)
        except OSError as reason:
            raise MachineError(f"{command_line[0]} does not start: {reason.strerror}.") from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


@contextlib.contextmanager
def _ignore_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
