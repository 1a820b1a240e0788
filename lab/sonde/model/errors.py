# SPDX-License-Identifier: Apache-2.0
"""Errors that the lab raises deliberately.

::

    SondeError                    base class of all deliberate errors
    ├── UserError          2      the request cannot be fulfilled; the message is one sentence for the user
    │   ├── UnitError      2      "4k": not a size, duration or rate
    │   ├── PlanError      2      the plan is wrong; names the member
    │   ├── ReportError    2      a report or page cannot be made
    │   ├── SystemFileError 2     a system file is wrong; names the file and the member
    │   ├── ExperimentError 2     an experiment is wrong; names the file and the member
    │   ├── EventError     2      an event file is wrong; names the file and the line or member
    │   ├── MachineError   3      this machine lacks something: engine, launcher, permission, space
    │   ├── RunFailedError 1      the measurement failed
    │   ├── DataMismatchError 4     data read back was not what was written
    │   ├── StoppedError   5      interrupted by the user or a signal
    │   └── NothingComparedError 6 a check had nothing that it could compare
    └── RecordError               a record line is malformed; the reader skips it and reports it

The number is the exit code of the command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_ENVIRONMENT = 3
EXIT_MISMATCH = 4
EXIT_INTERRUPTED = 5
# A check that found nothing to compare: neither good nor bad.
EXIT_NOTHING_COMPARED = 6


class SondeError(Exception):
    """Base class of all errors that the lab raises deliberately."""


class UserError(SondeError):
    """One sentence for the user: what happened, where, and what to do. Has the exit code of the command."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, message: str) -> None:
        # File and member names are untrusted: control characters must not reach the terminal.
        super().__init__(escape_unprintable(message))


class UnitError(UserError):
    """A text that is not a size, a duration or a rate."""


class PlanError(UserError):
    """A plan that cannot be used."""


class ReportError(UserError):
    """A report or another page that cannot be made."""


class SystemFileError(UserError):
    """A system file that cannot be used."""


class ExperimentError(UserError):
    """An experiment that cannot be used."""


class EventError(UserError):
    """An event file that cannot be used."""


class MachineError(UserError):
    """The machine lacks something: the engine, a launcher, a permission, space."""

    exit_code = EXIT_ENVIRONMENT


class RunFailedError(UserError):
    """A measurement was tried and failed."""

    exit_code = EXIT_FAILED


class DataMismatchError(UserError):
    """Data read back was not what was written."""

    exit_code = EXIT_MISMATCH


class StoppedError(UserError):
    """The user or a signal ended the run."""

    exit_code = EXIT_INTERRUPTED


class NothingComparedError(UserError):
    """A check had nothing that it could compare: the result is neither good nor bad."""

    exit_code = EXIT_NOTHING_COMPARED


class RecordError(SondeError):
    """A record line that cannot be parsed."""


def escape_unprintable(raw_text: str) -> str:
    """Returns `raw_text` on one line, with unprintable characters replaced by escapes."""
    if raw_text.isprintable():
        return raw_text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in raw_text
    )


def format_as_sentence(message_text: str) -> str:
    """Returns `message_text` with a capital first letter and a final period; an empty text stays empty."""
    message_text = message_text.strip()
    message_text = message_text[:1].upper() + message_text[1:]
    return f"{message_text}." if message_text and not message_text.endswith((".", "!", "?")) else message_text


def suggest_close_name(unknown_name: str, candidate_names: Iterable[str]) -> str:
    """Returns ``' Did you mean "direct"?'`` when a candidate is close to `unknown_name`, otherwise an empty text."""
    names = list(candidate_names)
    matches = difflib.get_close_matches(unknown_name, names, n=1, cutoff=0.6)
    if not matches:
        by_folded_name = {candidate.lower().replace("-", "_"): candidate for candidate in names}
        match = by_folded_name.get(unknown_name.lower().replace("-", "_"))
        matches = [match] if match else []
    return f' Did you mean "{matches[0]}"?' if matches else ""
