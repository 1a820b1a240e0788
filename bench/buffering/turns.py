# SPDX-License-Identifier: Apache-2.0
"""The same program several ways, in turns, so that all ways meet the same machine. Only ratios within a round count."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OWN_VARIABLES = ("LD_PRELOAD", "IOBUF_PARAMS", "IOBUF_VERBOSE", "SONDE_IOBUF_FILE", "SONDE_IOBUF_LINES", "SONDE_TRACE")


@dataclass(frozen=True)
class Turn:
    """Seconds of one run of a program, from its start to its end."""

    real_s: float
    user_s: float
    system_s: float


@dataclass
class TurnResults:
    """All rounds of all ways; the first way is the one without the library."""

    turns: dict[str, list[Turn]] = field(default_factory=dict)

    def median(self, variant: str) -> Turn:
        """Each number by itself."""
        turns = self.turns[variant]
        return Turn(
            statistics.median(turn.real_s for turn in turns),
            statistics.median(turn.user_s for turn in turns),
            statistics.median(turn.system_s for turn in turns),
        )

    def ratio(self, variant: str) -> float:
        """How many times faster than the first way, median of the rounds."""
        return statistics.median(self._ratios(variant))

    def interval(self, variant: str) -> tuple[float, float]:
        """Where the median of such ratios lies, with 95 % certainty or more."""
        return compute_ratio_interval(self._ratios(variant))

    def processor_ratios(self, variant: str) -> list[float]:
        """How many times less processor time than the first way, by round."""
        return [
            (a.user_s + a.system_s) / max(b.user_s + b.system_s, 1e-9)
            for a, b in zip(self._first(), self.turns[variant], strict=True)
        ]

    def _ratios(self, variant: str) -> list[float]:
        return [a.real_s / b.real_s for a, b in zip(self._first(), self.turns[variant], strict=True)]

    def _first(self) -> list[Turn]:
        return next(iter(self.turns.values()))


def compute_ratio_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Between which two of them the median lies, with 95 % certainty or more."""
    aside = count_trimmed_rounds(len(ratios))
    return sorted(ratios)[aside], sorted(ratios)[len(ratios) - 1 - aside]


def count_trimmed_rounds(rounds: int) -> int:
    """Number of values at either end outside the 95 % interval of the median. Each round is below the median with
    probability 1/2, whatever the distribution; with fewer than six rounds even the extremes are less than 95 % certain.
    """
    below, aside = 0, -1
    while below + math.comb(rounds, aside + 1) <= 0.025 * 2**rounds:
        aside += 1
        below += math.comb(rounds, aside)
    return max(0, aside)


def run_turn(
    command: Sequence[str | Path],
    variables: Mapping[str, str],
    group: Path | None = None,
    prefix: Sequence[str] = (),
) -> Turn:
    """One run, started by `prefix`; `group` is joined first. A program that fails ends the bench: its time would mean
    nothing.
    """
    plain = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    settings = [f"{name}={value}" for name, value in variables.items()]
    arguments = [*prefix, "env", *settings, *(str(word) for word in command)]
    if group is not None:
        arguments = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group), *arguments]
    began = time.monotonic()
    with subprocess.Popen(arguments, env=plain, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        output = child.stderr.read() if child.stderr is not None else b""
        _, status, used = os.wait4(child.pid, 0)
        ended = time.monotonic()
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(
            f"bench/preload.py: {' '.join(arguments)} ended with {child.returncode}: {output.decode(errors='replace')}"
        )
    return Turn(ended - began, used.ru_utime, used.ru_stime)


def take_turns(
    commands: Mapping[str, Sequence[str | Path]],
    ways: Mapping[str, Mapping[str, str]],
    rounds: int,
    before: Callable[[], None],
    group: Path | None = None,
    prefix: Sequence[str] = (),
) -> TurnResults:
    """Each way once a round, in another order each round: its command, with its variables. `before` is called before
    each run and is not timed.
    """
    result = TurnResults({name: [] for name in ways})
    names = list(ways)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            before()
            result.turns[name].append(run_turn(commands[name], ways[name], group, prefix))
    return result
