# SPDX-License-Identifier: Apache-2.0
"""The interface of launchers. Most launchers implement one method: the command line."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.model.errors import MachineError


@dataclass(frozen=True)
class RankVariables:
    """Environment variables by which a process knows its rank and the number of ranks. They count only when the
    variable `required` is set too, if it is not empty."""

    rank: str
    size: str
    required: str = ""


class Launcher(ABC):
    """Starts engine processes.

    A launcher is a frozen dataclass whose first members are `ranks` (processes that it starts; None when the engine
    itself starts them) and `extra` (further arguments for the launcher), unless it defines `make_for_ranks`.
    """

    name: ClassVar[str]
    """The value of --launcher, and the program on PATH unless `available` is overridden."""
    rank_variables: ClassVar[tuple[RankVariables, ...]] = ()
    """The variables that it sets in the processes that it starts."""
    missing_rank_hint: ClassVar[str] = ""
    """The end of an error message: what to try when its processes do not find each other."""
    ranks: int | None

    @classmethod
    def describe_unavailability(cls) -> str:
        """Empty when the launcher can be used on this machine, else one sentence with the reason."""
        return "" if shutil.which(cls.name) else f"There is no {cls.name} on PATH."

    @classmethod
    def make_for_ranks(cls, rank_count: int, extra_arguments: Sequence[str]) -> Self:
        """A launcher of `rank_count` processes. Raises MachineError when it cannot be used on this machine."""
        reason = cls.describe_unavailability()
        if reason:
            raise MachineError(reason)
        return cls(rank_count, extra_arguments)  # type: ignore[call-arg]

    @abstractmethod
    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        """The command line that runs `engine_command` (a command line) in every process."""

    def make_environment(self) -> Mapping[str, str]:
        """Variables to set for the launcher, in addition to those of this process."""
        return {}

    def choose_forwarded_signal(self, signal_number: int) -> int:
        """The signal to send to the launcher when this process receives signal `signal_number`."""
        return signal_number
