# SPDX-License-Identifier: Apache-2.0
"""The two consoles: results are printed to standard output, all other texts to standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.segment import Segment

from sonde.model.errors import UserError
from sonde.terminal.encoding import encode_json, escape_control_characters, print_plain_text
from sonde.terminal.fitting_table import FittingTable

# Results that go into a file or a pipe are not cut to the width of some terminal.
_FILE_OUTPUT_COLUMNS = 200
_TRAILING_BLANKS_PATTERN = re.compile(r"[ \t]+$", re.MULTILINE)


# Names come from anywhere: no part of them is markup.
_LITERAL_PRINT_OPTIONS: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


@dataclass
class OutputSettings:
    """Output settings of this command; they are set once, before its first line of output."""

    color: str = "auto"  # or always, never
    is_quiet: bool = False  # no messages, only results and errors
    export_format: str = ""  # tables are collected and written in this format instead of being printed
    tables: list[FittingTable] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # printed next to the tables, and left out of an export


_settings = OutputSettings()


@contextmanager
def open_output_session() -> Iterator[OutputSettings]:
    """Yields the settings of one command; afterwards the defaults hold again."""
    global _settings
    previous, _settings = _settings, OutputSettings()
    try:
        yield _settings
    finally:
        _settings = previous


def get_output_settings() -> OutputSettings:
    """Returns the settings of the current command."""
    return _settings


class _EscapingConsole(Console):
    """A console that prints control characters as escapes. Its own codes for styles, cursor and progress are not
    touched: rich marks the latter, and renders the former after this."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Escapes texts before layout, so that their computed width is the printed width."""
        super().print(
            *(escape_control_characters(item) if isinstance(item, str) else item for item in objects), **options
        )

    def _render_buffer(self, segments: Iterable[Segment]) -> str:
        return super()._render_buffer(
            part if part.control else Segment(escape_control_characters(part.text), part.style) for part in segments
        )


class _NonCroppingConsole(_EscapingConsole):
    """A console that cuts no line: text wider than the terminal continues in the next line. In a file or a pipe no
    line ends in blanks."""

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        if _settings.export_format:
            _settings.tables += [item for item in objects if isinstance(item, FittingTable)]
            _settings.texts += [str(item) for item in objects if not isinstance(item, FittingTable)]
            return
        super().print(*objects, crop=crop, **options)

    def _render_buffer(self, segments: Iterable[Segment]) -> str:
        text = super()._render_buffer(segments)
        return text if self.is_terminal else _TRAILING_BLANKS_PATTERN.sub("", text)


def get_results_console() -> Console:
    """Standard output, for people."""
    return _NonCroppingConsole(
        width=None if sys.stdout.isatty() else _FILE_OUTPUT_COLUMNS, **_make_color_options(), **_LITERAL_PRINT_OPTIONS
    )


def do_messages_share_output() -> bool:
    """Whether messages and results go to the same file or pipe, as with `> log 2>&1`, and not to a terminal."""
    try:
        results, messages = os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):  # one of them is closed, or is no file
        return False
    return (results.st_dev, results.st_ino) == (messages.st_dev, messages.st_ino) and not sys.stdout.isatty()


def get_messages_console() -> Console:
    """Standard error: progress and remarks."""
    width = None if sys.stderr.isatty() else _FILE_OUTPUT_COLUMNS
    options = _make_color_options() if _settings.color == "never" else {}
    return _EscapingConsole(stderr=True, width=width, quiet=_settings.is_quiet, **options, **_LITERAL_PRINT_OPTIONS)


def _make_color_options() -> dict[str, Any]:
    """Returns options of a console for --color. By default a terminal has colors unless NO_COLOR is set."""
    if _settings.color == "never":
        return {"color_system": None}
    return (
        {"force_terminal": True, "color_system": "standard", "no_color": False} if _settings.color == "always" else {}
    )


def print_json(json_document: Any) -> None:
    """The machine form, and nothing else, on standard output."""
    if _settings.export_format:
        raise UserError("--json and --export exclude each other; give one of them.")
    print_plain_text(encode_json(json_document))


def make_plain_table(shows_header: bool = True) -> FittingTable:
    """A table without lines, as terminal programs have them."""
    return FittingTable(show_header=shows_header, header_style="dim")
