# SPDX-License-Identifier: Apache-2.0
"""The shipped plan `every-target`: a localizing run of a watch names the slow target of a mounted machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_machine import resolved, small_machine

from sonde.conduct.run import RunSetup
from sonde.launch.engine import find_engine
from sonde.model.errors import UserError
from sonde.store.archive import Archive
from sonde.watch.archive_runner import ArchiveRunner
from sonde.watch.description import ProbeEntry


def report_localizing_round(directory: Path, archive: Path) -> str:
    """The report of a round about a plan of 48 MiB per target."""
    probe = ProbeEntry(
        id="p",
        plan="quick",
        on=str(directory),
        every=86400.0,
        localize="every-target",
        set=("data.access.volume=96MiB", "target.min_free=0"),
    )
    store = Archive(archive)
    runner = ArchiveRunner(store, lambda: RunSetup(find_engine(), store), lambda text, line: None)
    return runner.localize_slow_part(probe, "watch-localize-1")


@pytest.fixture(scope="module")
def small_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine that `mounted` mounts: eight equal targets."""
    return resolved(tmp_path_factory.mktemp("eight"), small_machine(targets=8, nodes=2, server_threads=4))


@pytest.fixture
def archive(tmp_path: Path, engine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SONDE_ENGINE", str(engine))
    return tmp_path / "archive"


@pytest.mark.serial  # other programs slow the operations of some targets, which is then named
def test_localizing_run_names_the_slow_target(mount_model: Callable[..., Path], archive: Path) -> None:
    directory = mount_model("--speed", "4")
    (directory / ".sonde" / "faults").write_text("slow-target 5 20x\n", encoding="utf-8")
    for _ in range(3):  # what another program slows for a moment is another target each time
        text = report_localizing_round(directory, archive)
        assert "OST0005" in text
        if not any(f"OST000{number}" in text for number in (0, 1, 2, 3, 4, 6, 7)):
            return
    pytest.fail(text)


def test_localizing_run_names_nothing_without_fault(mount_model: Callable[..., Path], archive: Path) -> None:
    assert "OST000" not in report_localizing_round(mount_model("--speed", "4"), archive)


def test_every_target_is_refused_without_stripes(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="which is not told how to stripe files"):
        report_localizing_round(tmp_path, archive)
