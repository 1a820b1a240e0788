# SPDX-License-Identifier: Apache-2.0
"""One change of one source file, as a value, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

KILLED, SURVIVED, TIMEOUT, EQUIVALENT, BROKEN = "killed", "survived", "timeout", "equivalent", "does not compile"


@dataclass(frozen=True, order=True)
class SourceChange:
    """Characters `begin` to `end` of a file become `text`."""

    file: str
    """Path below the root of the sources."""
    begin: int
    end: int
    text: str
    operator: str
    """What kind of change it is, in a word or two."""
    line: int
    """Counted from 1; for people, not for telling changes apart."""
    before: str
    after: str
    """The lines that it touches as they were and as they are, without space around them."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identifies the change independently of line numbers, so that edits elsewhere in the file do not matter."""
        return self.file, self.before, self.after

    def apply_to(self, source_text: str) -> str:
        return source_text[: self.begin] + self.text + source_text[self.end :]


def make_source_change(
    source_file: str, source_text: str, begin_offset: int, end_offset: int, new_text: str, change_kind: str
) -> SourceChange:
    """A change with the lines that it touches."""
    first = source_text.rfind("\n", 0, begin_offset) + 1
    last = source_text.find("\n", end_offset)
    last = len(source_text) if last < 0 else last
    lines = source_text[first:last], source_text[first:begin_offset] + new_text + source_text[end_offset:last]
    before, after = (" ".join(line.split()) for line in lines)
    return SourceChange(
        source_file,
        begin_offset,
        end_offset,
        new_text,
        change_kind,
        source_text.count("\n", 0, begin_offset) + 1,
        before,
        after,
    )
