# SPDX-License-Identifier: Apache-2.0
"""Stores the outcome of each change as a line of a file, reads the list of equivalent changes, and formats the
table."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mutation.change import BROKEN, EQUIVALENT, KILLED, SURVIVED, TIMEOUT, SourceChange
from mutation.modules import ROOT

EQUIVALENT_CHANGES_FILE = ROOT / "tests" / "mutants" / "equivalent.toml"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class ChangeOutcome:
    """One change of a module and what its tests made of it."""

    module: str
    change: SourceChange
    became: str
    seconds: float

    def format_json_line(self) -> str:
        return json.dumps(
            {"module": self.module, **asdict(self.change), "became": self.became, "seconds": self.seconds}
        )


def read_outcomes(results_file: Path) -> dict[Key, ChangeOutcome]:
    """The newest outcome of each change in a results file; {} when there is none."""
    if not results_file.is_file():
        return {}
    outcomes = {}
    for format_json_line in results_file.read_text(encoding="utf-8").splitlines():
        document = json.loads(format_json_line)
        module, became, seconds = (document.pop(name) for name in ("module", "became", "seconds"))
        outcome = ChangeOutcome(module, SourceChange(**document), became, seconds)
        outcomes[outcome.change.key] = outcome
    return outcomes


def read_equivalent_changes() -> dict[Key, str]:
    """Changes that no test can notice, with the reason. Kept by the text of the line, so they survive its moves."""
    document = tomllib.loads(EQUIVALENT_CHANGES_FILE.read_text(encoding="utf-8"))
    return {(entry["file"], entry["before"], entry["after"]): entry["reason"] for entry in document["equivalent"]}


def compute_killed_share(outcomes: Iterable[ChangeOutcome]) -> tuple[Counter[str], float]:
    """How many of each kind, and the share that tests noticed of those that they could notice."""
    counts = Counter(outcome.became for outcome in outcomes)
    noticed = counts[KILLED] + counts[TIMEOUT]
    return counts, noticed / max(1, noticed + counts[SURVIVED])


def format_outcome_table(of_all: Mapping[str, int], outcomes: Iterable[ChangeOutcome]) -> list[str]:
    """A line for each module that has outcomes."""
    tried = [outcome for outcome in outcomes if outcome.became != BROKEN]
    lines = ["| module | changes there are | tried | by a test | by time limit | survived | equivalent | noticed |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for module, every in of_all.items():
        of_module = [outcome for outcome in tried if outcome.module == module]
        if of_module:
            counts, share = compute_killed_share(of_module)
            numbers = [len(of_module), *(counts[kind] for kind in (KILLED, TIMEOUT, SURVIVED, EQUIVALENT))]
            lines.append(f"| {module} | {every} | {' | '.join(map(str, numbers))} | {100 * share:.0f} % |")
    return lines
