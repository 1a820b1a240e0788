# SPDX-License-Identifier: Apache-2.0
"""The encoder of everything that goes to a terminal.

Names of runs, hosts, paths, tags and results of queries come from files that others wrote. A terminal obeys control
characters in them: it sets its title, moves its cursor, answers as if the user had typed. They are shown as escapes.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from sonde.model.escaping import escape_line, escape_text

_UNPRINTABLE_PATTERN = re.compile(r"[^\x20-\x7e\n]")


def escape_control_characters(text: str) -> str:
    """Text of one or more lines without control and format characters besides newline and tab: ``\\x1b`` for ESC."""
    return text if text.isascii() and text.isprintable() else escape_text(text)


def escape_as_line(text: object) -> str:
    """Escapes control characters of text that must stay on one line, for example a cell of a table."""
    return escape_line(text, sys.maxsize)


def encode_json(json_document: Any) -> str:
    """The document as JSON whose text holds no such characters either; it reads back as the same document."""
    text = json.dumps(json_document, indent=2, ensure_ascii=False)
    return _UNPRINTABLE_PATTERN.sub(
        lambda result: result[0] if escape_text(result[0]) == result[0] else _escape_for_json(result[0]), text
    )


def _escape_for_json(character: str) -> str:
    return json.dumps(character, ensure_ascii=True)[1:-1] if character != "\x7f" else "\\u007f"


def print_plain_text(text: str, to_stderr: bool = False, line_end: str = "\n") -> None:
    """Text without layout, like the output of another tool, on standard output or standard error."""
    stream = sys.stderr if to_stderr else sys.stdout
    stream.write(escape_control_characters(text) + line_end)
    stream.flush()
