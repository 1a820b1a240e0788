# SPDX-License-Identifier: Apache-2.0
"""The two places to write to: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

# Results that go into a file or a pipe are not cut to the width of some terminal.
_WIDE = 200


# Names come from anywhere: no part of them is markup.
_LITERAL = {"highlight": False, "markup": False, "emoji": False}


def results() -> Console:
    """Standard output, for people."""
    return Console(width=None if sys.stdout.isatty() else _WIDE, **_LITERAL)  # type: ignore[arg-type]


def messages() -> Console:
    """Standard error: progress and remarks."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else _WIDE, **_LITERAL)  # type: ignore[arg-type]


def print_json(document: Any) -> None:
    """The machine form, and nothing else, on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def plain_table(**options: Any) -> Table:
    """A table without lines, as terminal programs have them."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", **options)
