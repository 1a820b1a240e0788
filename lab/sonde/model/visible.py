# SPDX-License-Identifier: Apache-2.0
"""Makes text from a record safe to show: what cannot be seen, or would change how the rest is read, becomes visible.

Names of files, hosts and mount points come from the system under test and may hold anything: quotes, markup, newlines,
bytes that are not UTF-8 (kept by JSON as lone surrogates), or characters that reverse the reading direction. Markup is
escaped by the template engine; this module deals with the rest.
"""

from __future__ import annotations

import unicodedata

# Controls, formats (bidi overrides, zero width), surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _shown(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    # Python keeps an undecodable byte 0x80..0xff as U+DC80..U+DCFF.
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: object, limit: int = 2000) -> str:
    """`text` on one line, every hidden character written as an escape; cut after `limit` characters."""
    raw = str(text)
    kept = raw if len(raw) <= limit else raw[:limit] + "\N{HORIZONTAL ELLIPSIS}"
    if kept.isascii() and kept.isprintable():
        return kept
    return "".join(_shown(c) if unicodedata.category(c) in _HIDDEN else c for c in kept)


def block(text: str) -> str:
    """The same for text of several lines: newlines and tabs stay."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _HIDDEN else _shown(c) for c in text)
