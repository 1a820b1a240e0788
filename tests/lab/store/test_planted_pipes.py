# SPDX-License-Identifier: Apache-2.0
"""Named pipes that another user plants in a shared archive hold up no verb of root, and no verb reads or writes through
planted links."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from make_record import write_run
from other_user import as_neighbor, needs_two_users
from record_scene import Scene

from sonde.store.events import EVENTS_FILE
from sonde.store.shards import JOBS_FOLDER, locate_run_folder

RUN, OTHER = "20260101T000000Z-quick-00000000", "20260102T000000Z-quick-11111111"
FILES = (
    "run.json",
    "record.ndjson",
    "plan.json",
    "tags.json",
    "phases.parquet",
    "series.parquet",
    "targets.parquet",
    "telemetry.ndjson",
)
JOB = "20260101T000000Z-quick-22222222"
LIMIT_S = 12  # a verb that opens a pipe waits for ever
Sonde = Callable[..., Any]
pytestmark = needs_two_users

VERBS: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("list", "--json"),
    ("show", RUN),
    ("show", RUN, "--json"),
    ("report", RUN, "-o", "{out}/report.html"),
    ("compare", RUN, OTHER),
    ("trend",),
    ("tag", RUN, "seen"),
    ("query", "SELECT count(*) FROM runs"),
    ("query", "SELECT * FROM series"),
    ("export", "{out}/runs.tar", "--all"),
    ("gate", RUN),
    ("baseline", "set", "accepted", RUN),
    ("baseline", "show", "accepted"),
    ("telemetry", "show", RUN),
    ("event", "list"),
    ("event", "add", "Upgraded the MDS", "--at", "2026-01-02", "--kind", "upgrade"),
    ("import", "{root}"),
    ("clean", "{root}"),
    ("jobs",),
    ("jobs", "last"),
    ("rm", "--yes", RUN),
)


@pytest.fixture(autouse=True)
def _limited_time() -> Iterator[None]:
    def interrupt(number: int, frame: object) -> None:
        raise TimeoutError("the verb waits for a pipe")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def shared_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that everybody may write and that is not sticky, with a run of the caller."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    root = tmp_path / "shared"
    monkeypatch.setenv("SONDE_ARCHIVE", str(root))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_run(locate_run_folder(root, OTHER), Scene())
    for folder in (root, locate_run_folder(root, OTHER).parent):
        folder.chmod(0o777)
    return root


def plant(root: Path, victim_file: Path, pipes: tuple[str, ...], links: tuple[str, ...]) -> None:
    """A run and a job of the neighbor in which these files are pipes or links to the victim."""
    run = write_run(locate_run_folder(root, RUN), Scene())
    job = root / JOBS_FOLDER / JOB
    job.mkdir(parents=True)
    (job / "job.json").write_text(json.dumps({"id": JOB, "scheduler": "slurm", "arguments": ["run"]}))
    (root / EVENTS_FILE).write_text("")
    for folder, names in ((run, FILES), (job, ("job.json", "ended.txt", "output.txt")), (root, (EVENTS_FILE,))):
        for name in names:
            if name in pipes:
                (folder / name).unlink(missing_ok=True)
                os.mkfifo(folder / name, 0o666)
            elif name in links:
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(victim_file)


PLANTED_FILES = {
    "all pipes": ((*FILES, "job.json", EVENTS_FILE), ()),
    "pipes beside run.json": ((*FILES[1:], "ended.txt", "output.txt", EVENTS_FILE), ()),
    "all links": ((), (*FILES, "job.json", EVENTS_FILE)),
    "links beside run.json": ((), (*FILES[1:], "ended.txt", "output.txt", EVENTS_FILE)),
}


@pytest.mark.parametrize("planted", PLANTED_FILES, ids=lambda planted: planted.replace(" ", "-"))
def test_no_verb_waits_or_follows(sonde: Sonde, shared_archive: Path, tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    as_neighbor(lambda: plant(shared_archive, victim, *PLANTED_FILES[planted]))
    for verb in VERBS:
        result = sonde(*(argument.format(out=tmp_path, root=shared_archive) for argument in verb))
        assert result.code in (0, 1, 2, 3), (verb, result.err)
        assert "An error in Sonde itself" not in result.err, (verb, result.err)
        assert "precious" not in result.out + result.err, verb
        assert victim.read_text() == "precious", verb
    assert b"precious" not in (tmp_path / "runs.tar").read_bytes()
    assert (locate_run_folder(shared_archive, OTHER) / "record.ndjson").is_file()
