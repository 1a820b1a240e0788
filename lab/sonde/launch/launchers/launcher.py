# SPDX-License-Identifier: Apache-2.0
"""What a launcher must be able to do. Most need one method: the command line."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from sonde.model.errors import MachineError


@dataclass(frozen=True)
class Mark:
    """Variables that a launcher sets in what it starts: rank, number of ranks, and perhaps one more that is there."""

    rank: str
    size: str
    there: str = ""


class Launcher(ABC):
    """How engine processes come to life.

    A launcher is a frozen dataclass whose first members are `ranks` (processes it starts; None when the engine itself
    starts them) and `extra` (further arguments for it), unless it defines `of`.
    """

    name: ClassVar[str]
    """As --launcher takes it, and the program on PATH where `available` is not defined."""
    marks: ClassVar[tuple[Mark, ...]] = ()
    """How processes that it started know that they were."""
    lost: ClassVar[str] = ""
    """What to try when processes that it started do not find each other, as the end of a sentence."""
    ranks: int | None

    @classmethod
    def available(cls) -> str:
        """Empty when it can be used here, else one sentence that says why not."""
        return "" if shutil.which(cls.name) else f"There is no {cls.name} on PATH."

    @classmethod
    def of(cls, ranks: int, extra: Sequence[str]) -> Self:
        """A launcher of that many processes. Raises MachineError when it cannot be used here."""
        reason = cls.available()
        if reason:
            raise MachineError(reason)
        return cls(ranks, extra)  # type: ignore[call-arg]

    @abstractmethod
    def arguments(self, engine: Sequence[str]) -> list[str]:
        """The command line that runs `engine` (a command line) in every process."""

    def environment(self) -> Mapping[str, str]:
        """Variables to set for it, beside those of this process."""
        return {}

    def relayed(self, number: int) -> int:
        """The signal to send to the launcher when a person sends `number` to us."""
        return number
