# SPDX-License-Identifier: Apache-2.0
"""Expected content of a tree, computed by a walk from its root instead of by the engine's numbering."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """The members of meta.tree that decide on names."""

    depth: int = 0
    branching: int = 1
    leaf_only: bool = False
    per_dir: int = 4
    scope: str = "shared"
    copies: int = 1
    home_shift: int = 0

    @property
    def plan(self) -> dict[str, object]:
        """As the plan says it."""
        return {
            "depth": self.depth,
            "branching": self.branching,
            "leaf_only": self.leaf_only,
            "items_per_dir": self.per_dir,
            "scope": self.scope,
            "copies": self.copies,
            "home_shift": self.home_shift,
        }

    def directories(self, branch: str) -> dict[str, tuple[int, bool]]:
        """Path below the top -> (number, is a leaf) of all directories of one tree."""
        sizes: dict[str, tuple[int, bool]] = {}
        level = [(f"{branch}.0", 0)]
        for depth in range(self.depth + 1):
            sizes |= {path: (number, depth == self.depth) for path, number in level}
            level = [
                (f"{path}/{branch}.{number * self.branching + child}", number * self.branching + child)
                for path, number in level
                for child in range(1, self.branching + 1)
            ]
        return sizes

    def branches(self, tasks: int) -> dict[str, list[int]]:
        """Branch -> the tasks whose items lie there; one node."""
        if self.scope == "shared":
            return {"branch": list(range(tasks))}
        if self.scope == "per_node":
            return {"branch.n0": list(range(tasks))}
        return {f"branch.{(task + self.home_shift) % tasks}": [task] for task in range(tasks)}

    def holds(self, tasks: int, item: str = "file") -> tuple[set[str], set[str]]:
        """(directories, items) below the run directory."""
        folders: set[str] = set()
        items: set[str] = set()
        for copy in range(self.copies):
            folders.add(f"items-{copy}")
            for branch, owners in self.branches(tasks).items():
                for path, (number, leaf) in self.directories(branch).items():
                    folders.add(f"items-{copy}/{path}")
                    if self.leaf_only and not leaf:
                        continue
                    first = number * self.per_dir
                    for owner in owners:
                        items |= {f"items-{copy}/{path}/{item}.{owner}.{k}" for k in range(first, first + self.per_dir)}
        return folders, items
