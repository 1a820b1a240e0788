# SPDX-License-Identifier: Apache-2.0
"""The group of verbs, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import itertools
import keyword
import os
import pkgutil
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem, get_completion_class

from sonde.cli.output_options import (
    add_output_options,
    check_verb_defaults,
    make_color_option,
    make_quiet_option,
    read_defaults,
    write_requested_export,
)
from sonde.model.configuration import find_verb_setting
from sonde.model.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_INTERRUPTED, UserError, suggest_close_name
from sonde.model.version import __version__
from sonde.store.pandas_discovery import declare_command_process
from sonde.terminal.encoding import print_plain_text
from sonde.terminal.screen import open_output_session

# Modules of this folder that are not verbs.
_SHARED_MODULES = frozenset(
    {
        "main",
        "options",
        "report_writing",
        "run_selection",
        "tool_commands",
        "experiment_runs",
        "advise_runs",
        "replay_runs",
        "run_options",
        "forecast_output",
        "layout_check",
        "layout_file_system",
        "layout_output",
        "layout_verify",
        "route_live",
        "route_output",
        "diagnose_checks",
        "diagnose_output",
        "completion",
        "output_options",
        "tune_runs",
    }
)
# Headings of the help, in the order of use. Verbs that are not listed here follow.
_VERB_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("check", "run", "suite", "plan", "experiments"),
    "Run commands of other tools": (*("ior", "mdtest", "md-workbench", "iozone", "obdfilter-survey", "io500"),),
    "Batch jobs": ("submit", "jobs"),
    "View runs": ("list", "show", "report", "telemetry", "query", "site", "serve"),
    "Manage runs": ("tag", "rm", "export", "import"),
    "Compare": ("compare", "trend", "baseline", "gate", "event"),
    "Watch": ("watch",),
    "Explain": ("diagnose",),
    "Speed up programs": ("trace", "advise", "replay", "tune", "iobuf"),
    "Design storage and networks": ("layout", "route", "system"),
    "Simulated machines": ("simulate", "mount", "unmount", "fault"),
    "This machine": ("doctor", "clean"),
}
_ORDERED_VERBS = tuple(itertools.chain.from_iterable(_VERB_GROUPS.values()))

# What a first day takes.
_FIRST_VERBS = ("doctor", "check", "run", "show", "compare", "report")

_PROGRAM_HELP = """Measures storage and reports how far the numbers can be trusted.

\b
  sonde check /scratch           how fast is the file system under /scratch? (about a minute)
  sonde run quick --on /scratch  run a shipped experiment, or your own plan file
  sonde show last                the numbers of the last run
  sonde trend                    what changed over time, and when
  sonde compare tag:old tag:new  two sides, number by number, with intervals
  sonde report last              the last run as one HTML file
  sonde doctor /scratch          what works on this machine, and what does not

Results are stored as plain files in the folder sonde-archive (or $SONDE_ARCHIVE, or --archive DIR after
the verb).

Exit codes: 0 done, 1 a measurement failed, 2 bad plan or arguments, 3 something on this machine is missing, 4 data read
back was wrong, 5 interrupted, 6 nothing could be compared.

Defaults of options are set in ~/.config/sonde/config.toml (`sonde doctor --config`). `sonde help TOPIC` reads a page of
the documentation; `sonde help topics` lists them.

Completion of verbs, options and names of runs and plans, in ~/.bashrc (zsh_source and fish_source for other shells):

\b
  eval "$(_SONDE_COMPLETE=bash_source sonde)"
"""


# Click's names of option types, and plain names.
_CLICK_TYPE_NAMES = {
    "a valid integer range": "a whole number",
    "a valid integer": "a whole number",
    "a valid float range": "a number",
    "a valid float": "a number",
}


@cache
def list_verbs() -> tuple[str, ...]:
    """Returns the names of all verbs. Each is a module with a `command`; `import_.py` is the verb import."""
    files = (entry.name for entry in pkgutil.iter_modules([str(Path(__file__).parent)]))
    names = {name.rstrip("_").replace("_", "-") for name in files if name not in _SHARED_MODULES}
    return (*(name for name in _ORDERED_VERBS if name in names), *sorted(names - set(_ORDERED_VERBS)))


def _get_module_of_verb(verb: str) -> str:
    return f"{verb.replace('-', '_')}{'_' * keyword.iskeyword(verb)}"


def read_summary(verb: str) -> str:
    """Returns the first sentence of a verb's help.

    It is read from the source of the module, because importing all verbs takes ten times as long.
    """
    path = Path(__file__).with_name(f"{_get_module_of_verb(verb)}.py")
    help_text = None
    for statement in ast.parse(path.read_bytes()).body:
        match statement:
            case ast.FunctionDef(name="command"):
                help_text = ast.get_docstring(statement)
            case ast.Assign([ast.Name("command")], ast.Call(_, [_, ast.Constant(str(text))])):  # make_tool_command
                help_text = inspect.cleandoc(text)
    return click.Command(verb, help=help_text).get_short_help_str(limit=1000)


class MainCommand(click.Group):
    """Loads a verb's module only when the verb is used, to save import time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(list_verbs())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in list_verbs():
            return None
        verb = getattr(importlib.import_module(f"sonde.cli.{_get_module_of_verb(name)}"), "command", None)
        if not isinstance(verb, click.Command):
            return None
        add_output_options(verb)
        return verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Prints the verbs in groups, with the first sentence of each in full."""
        other_verbs = tuple(name for name in list_verbs() if name not in _ORDERED_VERBS)
        for title, names in {**_VERB_GROUPS, "More": other_verbs}.items():
            rows = [(name, read_summary(name)) for name in names if name in list_verbs()]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [name for name in list_verbs() if name.startswith(incomplete)]
        items = [CompletionItem(name, help=read_summary(name)) for name in verbs]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[:1] == ["help"]:  # `sonde help VERB`, as in git
            args = [*args[1:], "--help"]
            if args == ["--help"]:
                print_plain_text(ctx.get_help())
                ctx.exit()
            if args[0] not in list_verbs():
                _print_help_topic(args[0])
                ctx.exit()
        complete = not ctx.resilient_parsing  # during shell completion, a partial word is no error
        if complete and args and not args[0].startswith("-") and args[0] not in list_verbs():
            hint = suggest_close_name(args[0], list_verbs())
            others = "" if hint else f"; there are {', '.join(list_verbs())}"
            raise click.UsageError(f'There is no command "{args[0]}"{others}.{hint}', ctx)
        name, verb, remaining = super().resolve_command(ctx, args)
        defaults = (ctx.default_map or {}).get(str(name))
        if verb is not None and defaults:
            check_verb_defaults(verb, defaults)
        return name, verb, remaining


def _print_help_topic(topic_name: str) -> None:
    from sonde.terminal.topics import find_topic, print_topic, print_topics  # a Markdown parser

    print_topics() if topic_name == "topics" else print_topic(find_topic(topic_name))


@click.group(
    cls=MainCommand,
    help=_PROGRAM_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="sonde", message="%(prog)s %(version)s")
@click.pass_context
def command(ctx: click.Context) -> None:
    """The group of verbs; without a verb it prints a short overview."""
    if ctx.invoked_subcommand is None:
        _print_overview(ctx)


command.params += [make_color_option(), make_quiet_option()]


def _print_overview(ctx: click.Context) -> None:
    """Prints the verbs of the first day with a sentence each, and the names of all others by task."""
    formatter = ctx.make_formatter()
    formatter.write(
        "Measures storage and reports how far the numbers can be trusted. Begin with `sonde check /scratch`.\n"
    )
    with formatter.section("First steps"):
        formatter.write_dl([(name, read_summary(name)) for name in _FIRST_VERBS])
    others = tuple(name for name in list_verbs() if name not in _ORDERED_VERBS)
    rows = [
        (title, ", ".join(name for name in names if name in list_verbs() and name not in _FIRST_VERBS))
        for title, names in {**_VERB_GROUPS, "More": others}.items()
    ]
    with formatter.section("By task"):
        formatter.write_dl([row for row in rows if row[1]])
    formatter.write_paragraph()
    formatter.write(
        "`sonde --help` says what each does. `sonde help TOPIC` reads a page; `sonde help topics` lists them.\n"
    )
    print_plain_text(formatter.getvalue().rstrip("\n"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. Prints a traceback only if SONDE_DEBUG is set. Without `arguments`,
    this is the program of the process, which takes them from its command line."""
    if arguments is None:
        declare_command_process()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal lacks must not cause an error.
            stream.reconfigure(errors="replace")
    try:
        with _treat_signals_as_interrupts(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1), open_output_session():
            _require_completion_shell(os.environ.get("_SONDE_COMPLETE", ""))
            result = command.main(
                args=list(arguments) if arguments is not None else None,
                prog_name="sonde",
                standalone_mode=False,
                default_map=read_defaults(list_verbs()),
            )
            write_requested_export()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        print_plain_text(error.format_message(), to_stderr=True)
        return EXIT_BAD_INPUT
    except click.ClickException as error:
        return _report_error(_make_usage_message(error), EXIT_BAD_INPUT)
    except UserError as error:
        return _report_error(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _report_error("Interrupted.", EXIT_INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # click exits when writing fails
        # The reader of standard output ended (`sonde list | head`): print nothing more, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("SONDE_DEBUG"):
            raise
        return _report_error(_store_internal_error(error), EXIT_FAILED)


def _require_completion_shell(completion_request: str) -> None:
    """Raises UserError for a shell without completion, for which Click prints no message. No request is valid."""
    shell, _, instruction = completion_request.partition("_")
    if completion_request and (get_completion_class(shell) is None or instruction not in ("source", "complete")):
        raise UserError(f'There is no completion "{completion_request}"; use bash_source, zsh_source or fish_source.')


@contextmanager
def _treat_signals_as_interrupts(*signal_numbers: signal.Signals) -> Iterator[None]:
    """Handles these signals like Ctrl-C, also between two runs."""

    def raise_keyboard_interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous_handlers = {number: signal.signal(number, raise_keyboard_interrupt) for number in signal_numbers}
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _report_error(error_sentence: str, exit_code: int) -> int:
    if error_sentence:
        print_plain_text(f"sonde: {error_sentence}", to_stderr=True)
    return exit_code


def _make_usage_message(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "plan":
        from sonde.experiments.shipped_experiments import list_shipped_plans  # reads the folder of experiments

        message = f"PLAN is missing: a file, or a shipped plan like {', '.join(list_shipped_plans())}."
    for click_name, plain_name in _CLICK_TYPE_NAMES.items():
        message = message.replace(click_name, plain_name)
    message = re.sub(r"\. \((Did you mean [^)]*)\)$", r". \1", message)  # same form for one and several suggestions
    message = message if message.endswith((".", "?", "!")) else f"{message}."
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    parameter = getattr(error, "param", None)
    if parameter is not None and context.get_parameter_source(parameter.name) is ParameterSource.DEFAULT_MAP:
        option = max(parameter.opts, key=len).lstrip("-")
        return f"{message} The value is from {find_verb_setting([*context.command_path.split()[1:], option])}."
    return f"{message} See `{context.command_path} --help`."


def _store_internal_error(error: Exception) -> str:
    """Stores the details of an internal error in a file and returns a message with its path."""
    description = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="sonde-error-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(f"sonde {__version__}\n{' '.join(sys.argv)}\n\n{traceback.format_exc()}")
    except OSError:
        return f"An error in Sonde itself ({description}); SONDE_DEBUG=1 shows the details."
    return f"An error in Sonde itself ({description}); the details are in {file.name}."
