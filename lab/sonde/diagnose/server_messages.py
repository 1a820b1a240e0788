# SPDX-License-Identifier: Apache-2.0
"""Messages of servers as evidence: which kinds of messages the logs of the slow time have.

The simulator writes the messages of a real server, so what a fault logs is simulated as its rates are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sonde.diagnose.library import list_experiments
from sonde.logs.log_file import READ_ERRORS, open_logs
from sonde.model.errors import UserError

# The experiment during whose simulation messages are collected, and the one that asks for them.
SIMULATED_WITH, MESSAGE_EXPERIMENT = "every-target", "server-messages"
# Assumptions: the logs have the message of a cause that logs one this often; they have it for other reasons this often.
LOGGED_WITH_CAUSE, LOGGED_BY_CHANCE = 0.95, 0.05


@cache
def compile_message_patterns() -> dict[str, re.Pattern[bytes]]:
    """Patterns of the kinds of messages that experiments of the library ask for."""
    return {
        phase.id: re.compile("|".join(phase.messages).encode())
        for experiment in list_experiments()
        for phase in experiment.message_phases
    }


def find_messages(logs: Sequence[Path]) -> dict[str, bool]:
    """Returns for each kind whether a line of the logs is such a message. Raises UserError for an unreadable file."""
    patterns = compile_message_patterns()
    messages = dict.fromkeys(patterns, False)
    for path in logs:
        try:
            (opened,) = open_logs([path])
            if isinstance(opened, OSError):
                raise opened
            with opened:
                for line in opened:
                    for kind, pattern in patterns.items():
                        messages[kind] = messages[kind] or pattern.search(line) is not None
        except READ_ERRORS as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserError(f"{path} cannot be read as a log: {reason}.") from None
    return messages
