# SPDX-License-Identifier: Apache-2.0
"""HTML that escapes what is put into it: markup, and characters that would hide or reorder other text.

Names of files, hosts and mount points come from the system under test. Pages and charts put them in as they are, by
`Markup.format`, `Markup.join` or a template; nothing else escapes text of a page.
"""

from __future__ import annotations

from typing import Self

import markupsafe  # noqa: TID251

from sonde.model.escaping import escape_line

_MAX_TEXT_CHARACTERS = 20_000


class Markup(markupsafe.Markup):
    """HTML of this program. Other text that is formatted or joined into it is escaped, shown on one line and cut after
    20,000 characters."""

    __slots__ = ()

    @classmethod
    def escape(cls, inserted: object, /) -> Self:
        """Returns HTML that shows `inserted`; HTML stays as it is."""
        return super().escape(
            inserted if hasattr(inserted, "__html__") else escape_line(inserted, _MAX_TEXT_CHARACTERS)
        )

    @classmethod
    def escape_lines(cls, text: str) -> Self:
        """Returns HTML that shows the lines of `text`."""
        return cls("\n").join(text.split("\n"))
