# SPDX-License-Identifier: Apache-2.0
"""The two places to write to: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from sonde.terminal.fitting import FittingTable

# Results that go into a file or a pipe are not cut to the width of some terminal.
_WIDE = 200
_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)


# Names come from anywhere: no part of them is markup.
_LITERAL = {"highlight": False, "markup": False, "emoji": False}


class _Surface(Console):
    """A console that cuts no line: what is longer than the terminal goes on in its next line. In a file or a pipe no
    line ends in blanks."""

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        super().print(*objects, crop=crop, **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else _TRAILING.sub("", text)


def results() -> Console:
    """Standard output, for people."""
    return _Surface(width=None if sys.stdout.isatty() else _WIDE, **_LITERAL)  # type: ignore[arg-type]


def messages() -> Console:
    """Standard error: progress and remarks."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else _WIDE, **_LITERAL)  # type: ignore[arg-type]


def print_json(document: Any) -> None:
    """The machine form, and nothing else, on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def plain_table(show_header: bool = True) -> FittingTable:
    """A table without lines, as terminal programs have them."""
    return FittingTable(show_header=show_header, header_style="dim")
