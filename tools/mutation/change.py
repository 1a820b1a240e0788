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
        """What stays the same when other lines of the file come and go."""
        return self.file, self.before, self.after

    def apply_to(self, source: str) -> str:
        return source[: self.begin] + self.text + source[self.end :]


def make_source_change(file: str, source: str, begin: int, end: int, text: str, operator: str) -> SourceChange:
    """A change with the lines that it touches."""
    first = source.rfind("\n", 0, begin) + 1
    last = source.find("\n", end)
    last = len(source) if last < 0 else last
    lines = source[first:last], source[first:begin] + text + source[end:last]
    before, after = (" ".join(line.split()) for line in lines)
    return SourceChange(file, begin, end, text, operator, source.count("\n", 0, begin) + 1, before, after)
