# SPDX-License-Identifier: Apache-2.0
"""The group of verbs, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import importlib
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
from types import FrameType

import click

import sonde.cli
from sonde.model.errors import BAD_INPUT, FAILED, INTERRUPTED, UserError, suggestion

# Files here that are no verbs: what several verbs need.
_NO_VERBS = frozenset(
    {"main", "options", "present", "selecting", "tool_verb", "experimenting", "asking", "forecasting"}
)
# What help shows them under, in the order in which people need them. Verbs that are not named here follow.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("check", "run", "suite", "plan"),
    "Measure with the words of other tools": (
        *("ior", "mdtest", "md-workbench", "iozone", "obdfilter-survey", "io500"),
    ),
    "Batch jobs": ("submit", "jobs"),
    "Look at runs": ("list", "show", "report", "query"),
    "Keep runs": ("tag", "rm", "export", "import"),
    "Judge": ("compare", "trend", "baseline", "gate"),
    "Speed up programs": ("trace", "iobuf"),
    "Design storage and networks": ("layout", "route"),
    "Described machines": ("simulate", "mount", "unmount", "fault"),
    "This machine": ("doctor", "clean"),
}
_FIRST = tuple(itertools.chain.from_iterable(_GROUPS.values()))

_HELP = """Measures storage, and says how far the numbers can be trusted.

\b
  sonde check /scratch           how fast is the file system under /scratch? (about a minute)
  sonde run quick --on /scratch  run a ready-made experiment, or a plan file of your own
  sonde show last                the numbers of the last run again
  sonde trend                    what changed over time, and since when
  sonde compare tag:old tag:new  two sides, number by number, with intervals
  sonde report last              the last run as one HTML file
  sonde doctor /scratch          what works on this machine, and why not

Results are kept as plain files in the folder sonde-archive (or $SONDE_ARCHIVE, or --archive DIR).

Exit codes: 0 done, 1 a measurement failed, 2 bad plan or arguments, 3 something on this machine is missing, 4 data read
back was wrong, 5 interrupted.

Completion of verbs and options, in ~/.bashrc (zsh_source and fish_source for other shells):

\b
  eval "$(_SONDE_COMPLETE=bash_source sonde)"
"""


# What click calls the types of options, and what people call them.
_CLICKS_WORDS = {
    "a valid integer range": "a whole number",
    "a valid integer": "a whole number",
    "a valid float range": "a number",
    "a valid float": "a number",
}


@cache
def verbs() -> tuple[str, ...]:
    """The names of all verbs. Each is a file here with a `command`; `import_.py` is the verb import."""
    files = (entry.name for entry in pkgutil.iter_modules(sonde.cli.__path__))
    known = {name.rstrip("_").replace("_", "-") for name in files if name not in _NO_VERBS}
    return (*(name for name in _FIRST if name in known), *sorted(known - set(_FIRST)))


class Verbs(click.Group):
    """Loads a verb when it is used, so that none pays for what the others import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(verbs())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in verbs():
            return None
        module = f"sonde.cli.{name.replace('-', '_')}{'_' * keyword.iskeyword(name)}"
        verb = getattr(importlib.import_module(module), "command", None)
        return verb if isinstance(verb, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs in groups, the first sentence of each whole."""
        others = tuple(name for name in verbs() if name not in _FIRST)
        for title, names in {**_GROUPS, "More": others}.items():
            known = [(name, self.get_command(ctx, name)) for name in names if name in verbs()]
            rows = [(name, verb.get_short_help_str(limit=1000)) for name, verb in known if verb is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[:1] == ["help"]:  # `sonde help VERB`, as git and others have it
            args = [*args[1:], "--help"]
            if args == ["--help"]:
                click.echo(ctx.get_help())
                ctx.exit()
        complete = not ctx.resilient_parsing  # while a shell completes words, half of one is no mistake
        if complete and args and not args[0].startswith("-") and args[0] not in verbs():
            known = ", ".join(verbs())
            near = suggestion(args[0], verbs())
            raise click.UsageError(f'There is no command "{args[0]}"; there are {known}.{near}', ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(sonde.__version__, "-V", "--version", prog_name="sonde", message="%(prog)s %(version)s")
@click.pass_context
def command(ctx: click.Context) -> None:
    """The group; alone it shows its help."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code. Never shows a traceback unless SONDE_DEBUG is set."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a sign shows another one; it is no reason to fail.
            stream.reconfigure(errors="replace")
    try:
        with _as_interrupts(signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            result = command.main(
                args=list(arguments) if arguments is not None else None, prog_name="sonde", standalone_mode=False
            )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    except click.ClickException as error:
        return _say(_usage(error), BAD_INPUT)
    except UserError as error:
        return _say(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say("Interrupted.", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # click exits when writing fails
        # The reader of our output has gone (`sonde list | head`); nothing is left to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("SONDE_DEBUG"):
            raise
        return _say(_unexpected(error), FAILED)


@contextmanager
def _as_interrupts(*numbers: signal.Signals) -> Iterator[None]:
    """Whoever ends us politely gets the same good order as Ctrl-C, also between two runs."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _say(sentence: str, code: int) -> int:
    if sentence:
        click.echo(f"sonde: {sentence}", err=True)
    return code


def _usage(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "plan":
        from sonde.experiments.ready import ready_made  # reads the folder of experiments

        message = f"PLAN is missing: a file, or what comes with Sonde, like {', '.join(ready_made())}."
    for theirs, ours in _CLICKS_WORDS.items():
        message = message.replace(theirs, ours)
    message = re.sub(r"\. \((Did you mean [^)]*)\)$", r". \1", message)  # one or several: told alike
    message = message if message.endswith((".", "?", "!")) else f"{message}."
    context = getattr(error, "ctx", None)
    if context is not None:
        message += f" See `{context.command_path} --help`."
    return message


def _unexpected(error: Exception) -> str:
    """Keeps the details for the people who can mend it, and says where."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="sonde-error-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(f"sonde {sonde.__version__}\n{' '.join(sys.argv)}\n\n{traceback.format_exc()}")
    except OSError:
        return f"An error in Sonde itself ({what}); SONDE_DEBUG=1 shows the details."
    return f"An error in Sonde itself ({what}); the details are in {file.name}."
