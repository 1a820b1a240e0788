# SPDX-License-Identifier: Apache-2.0
"""Escapes invisible and direction-changing characters in text from a record, so that it is safe to show.

File, host and mount-point names come from the system under test. They may contain newlines, bytes that are not UTF-8
(lone surrogates in JSON) or characters that reverse the reading direction. The template engine escapes markup.
"""

from __future__ import annotations

import unicodedata

# Controls, formats (bidi overrides, zero width), surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape_character(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    # Python decodes an invalid byte 0x80..0xff as U+DC80..U+DCFF (surrogateescape).
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_printable(text: str) -> bool:
    """Whether no character is hidden. False also for text with rare spaces, which isprintable() takes for hidden."""
    return text.replace("\N{NO-BREAK SPACE}", "").isprintable()


def escape_line(raw_value: object, max_length: int = 2000) -> str:
    """Returns `raw_value` on one line with hidden characters escaped, cut after `max_length` characters."""
    raw = str(raw_value)
    shortened = raw if len(raw) <= max_length else raw[:max_length] + "\N{HORIZONTAL ELLIPSIS}"
    if _is_printable(shortened):
        return shortened
    return "".join(_escape_character(c) if unicodedata.category(c) in _HIDDEN_CATEGORIES else c for c in shortened)


def escape_text(raw_text: str) -> str:
    """Returns `raw_text` with hidden characters escaped; newlines and tabs stay."""
    if _is_printable(raw_text.replace("\n", "").replace("\t", "")):
        return raw_text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _HIDDEN_CATEGORIES else _escape_character(c)
        for c in raw_text
    )
