# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: the fixture `sonde_gate` measures with a plan and checks the rates as `sonde gate` does.

It is loaded in every test run where Sonde is installed, so it imports nothing before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sonde.public.arguments import Texts
    from sonde.public.runs import Run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the fixture."""
    group = parser.getgroup("sonde", "storage measurements")
    default = "Default: $SONDE_ARCHIVE, else ./sonde-archive."
    group.addoption("--sonde-archive", metavar="DIR", help=f"Folder of runs. {default}")
    group.addoption("--sonde-on", metavar="DIR", help="Directory to measure. Default: the target of the plan.")
    group.addoption(
        "--sonde-add-to-baseline",
        action="store_true",
        help="Add each measured run to its baseline instead of checking it; five runs are the least.",
    )


@dataclass(frozen=True)
class MeasureAndGate:
    """Callable of the fixture `sonde_gate`."""

    directory: str | None
    archive: str | None
    adds_to_baseline: bool

    def __call__(
        self,
        plan: str | Path | Mapping[str, Any],
        *,
        baseline: str = "",
        at_least: Texts = (),
        retests: int = 2,
        on: str | Path | None = None,
        **options: Any,
    ) -> Run:
        """Measures with `plan` and returns the run. The test fails if a number is too slow in the run and in all of its
        repetitions, or if nothing could be judged.

        `baseline`, `at_least` and `retests` are those of `ArchiveReader.gate`; `on` is the directory to measure, by
        default that of --sonde-on, else the target of the plan; `options` are those of `sonde.run`. A baseline belongs
        to one directory, so the temporary directories of pytest do not fit. Raises UserError.
        """
        import sonde
        from sonde.store.tags import change_tags, check_tag

        tag = f"baseline:{baseline}"
        if self.adds_to_baseline and baseline:
            check_tag(tag)
        run = sonde.run(plan, on=self.directory if on is None else on, archive=self.archive, **options)
        if self.adds_to_baseline and baseline:
            change_tags(run.folder, added_tags=[tag])
            return run
        result = sonde.open(self.archive).gate(run.id, baseline=baseline, at_least=at_least, retests=retests)
        if not result.is_good:
            pytest.fail(f"{result.describe()} Runs: {', '.join(result.runs)}.", pytrace=False)
        return run


@pytest.fixture
def sonde_gate(request: pytest.FixtureRequest) -> MeasureAndGate:
    """Measures with a plan and checks the rates against a baseline or limits (docs/reference/python.md)."""
    option = request.config.getoption
    return MeasureAndGate(option("--sonde-on"), option("--sonde-archive"), bool(option("--sonde-add-to-baseline")))
