# SPDX-License-Identifier: Apache-2.0
"""Every error the lab raises on purpose.

::

    SondeError                    anything we raise on purpose
    ├── UserError          2      what was asked for cannot be done; the text is one sentence for the user
    │   ├── UnitError      2      "4k": not a size, duration or rate
    │   ├── PlanError      2      the plan is wrong; names the place in it
    │   ├── ReportError    2      a report or page cannot be made
    │   ├── SystemFileError 2     a system file is wrong; names the file and the place in it
    │   ├── ExperimentError 2     an experiment is wrong; names the file and the place in it
    │   ├── EventError     2      a file of events is wrong; names the file, the line or the place in it
    │   ├── MachineError   3      something on this machine is missing or refused: engine, launcher, permission, space
    │   ├── RunFailedError 1      the measurement failed
    │   ├── DataMismatchError 4     data read back was not what was written
    │   └── StoppedError   5      interrupted by the user or a signal
    └── RecordError               a line of a record does not mean anything; the reader skips it and says so

The number is the exit code of the command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

DONE = 0
FAILED = 1
BAD_INPUT = 2
ENVIRONMENT = 3
MISMATCH = 4
INTERRUPTED = 5


class SondeError(Exception):
    """Base of all errors that we raise on purpose."""


class UserError(SondeError):
    """A sentence for the user: what happened, where, and what to do. Carries the exit code of the command."""

    exit_code = BAD_INPUT

    def __init__(self, sentence: str) -> None:
        # Names of files and members come from anywhere; none of them may break the line or the terminal.
        super().__init__(visible(sentence))


class UnitError(UserError):
    """A text that is not a size, a duration or a rate."""


class PlanError(UserError):
    """A plan that cannot be used."""


class ReportError(UserError):
    """A report or another page that cannot be made."""


class SystemFileError(UserError):
    """A description of a system that cannot be used."""


class ExperimentError(UserError):
    """An experiment that cannot be used."""


class EventError(UserError):
    """A file of events that cannot be used."""


class MachineError(UserError):
    """The machine lacks something: the engine, a launcher, a permission, space."""

    exit_code = ENVIRONMENT


class RunFailedError(UserError):
    """A measurement was tried and failed."""

    exit_code = FAILED


class DataMismatchError(UserError):
    """Data read back was not what was written."""

    exit_code = MISMATCH


class StoppedError(UserError):
    """The user or a signal ended the run."""

    exit_code = INTERRUPTED


class RecordError(SondeError):
    """A line of a record that has no meaning for us."""


def visible(text: str) -> str:
    """`text` on one line, with every sign that a terminal would obey instead of show written as an escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def sentence(text: str) -> str:
    """`text` with a capital at its start and a period at its end; empty stays empty."""
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return f"{text}." if text and not text.endswith((".", "!", "?")) else text


def suggestion(word: str, known: Iterable[str]) -> str:
    """``' Did you mean "direct"?'`` when a known word is close to `word`, else an empty text."""
    candidates = list(known)
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if not near:
        folded = {candidate.lower().replace("-", "_"): candidate for candidate in candidates}
        exact = folded.get(word.lower().replace("-", "_"))
        near = [exact] if exact else []
    return f' Did you mean "{near[0]}"?' if near else ""
