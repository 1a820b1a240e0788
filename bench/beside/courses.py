# SPDX-License-Identifier: Apache-2.0
"""What is to be done: a course is a list of steps that one tool does after the other on its own files."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

Rates = dict[str, float]  #: by step: operations per second of all tasks together, first start to last end


@dataclass(frozen=True)
class WorkloadCourse:
    """One piece of work. Sizes in bytes."""

    name: str
    steps: tuple[str, ...]
    transfer: int = 0  #: of data
    size: int = 0  #: data: of what each task writes; names: of each file
    shared: bool = False  #: data: one file, the tasks' transfers in turn
    items: int = 0  #: names: files of each task

    @property
    def operations(self) -> int:
        """Transfers of a task."""
        return self.size // self.transfer

    def smaller(self, factor: float) -> WorkloadCourse:
        """The same with less work."""
        if self.items:
            return WorkloadCourse(self.name, self.steps, size=self.size, items=max(1, int(self.items * factor)))
        size = max(1, int(self.operations * factor)) * self.transfer
        return WorkloadCourse(self.name, self.steps, self.transfer, size, self.shared)


DATA_STEPS = ("write", "read", "random_write", "random_read")  # random writes are of the file that is there
NAME_STEPS = ("create", "stat", "open", "remove")

COURSES = (
    WorkloadCourse("data_4k", DATA_STEPS, 4 * KIB, 768 * MIB),
    WorkloadCourse("data_1m", DATA_STEPS, MIB, 1024 * MIB),
    WorkloadCourse("strided_10000", DATA_STEPS[:2], 10_000, 500_000_000, shared=True),
    WorkloadCourse("names_0", NAME_STEPS, items=40_000),
    WorkloadCourse("names_4k", NAME_STEPS, size=4 * KIB, items=20_000),
)
