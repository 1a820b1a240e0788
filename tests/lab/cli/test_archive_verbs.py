# SPDX-License-Identifier: Apache-2.0
"""tag, rm, query, export and import, as a person or a script meets them."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import run_builders

import sonde as sonde_package
from sonde.store.archive import Archive
from sonde.store.catalog import Catalog

A, B, C = "20260102T000000Z-a-0001", "20260103T000000Z-b-0002", "20260204T000000Z-c-0003"


@pytest.fixture
def root(archive: Path) -> Path:
    run_builders.add_run(archive, A)
    run_builders.add_run(archive, B, [run_builders.build_phase(rate=2e9), run_builders.build_phase("read", 3e9)])
    run_builders.add_run(archive, C, status="failed", plan={"id": "weekly", "title": ""})
    return archive


def list_run_names(root: Path) -> list[str]:
    return [str(run_name) for run_name in Catalog(root).read_run_table(["run"])["run"].to_pylist()]


def test_tags_are_added_searched_and_removed(sonde: Any, root: Path) -> None:
    assert sonde("tag", A, "--add", "accepted", "--add", "v2").out.split() == [A, "accepted", "v2"]
    assert sonde("tag", "--plan", "weekly", "--add", "v2").code == 0
    assert [run["id"] for run in sonde("list", "--tag", "v2", "--json").json] == [A, C]
    assert "accepted v2" in sonde("list").out
    assert sonde("tag", "--json").json == {"accepted": 1, "v2": 2}
    assert sonde("tag", "--tag", "v2", "--remove", "v2", "--json").json == {A: ["accepted"], C: []}
    assert sonde("tag", A).out.split() == [A, "accepted"]
    assert sonde("query", "SELECT DISTINCT definition FROM phases", "--json").json == [{"definition": "sonde total"}]


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (("tag", "--add", "x"), "Which runs to tag?"),
        (("tag", A, "--add", "two words"), "cannot be a tag"),
        (("tag", A, "--add", "-x"), "cannot be a tag"),
        (("tag", "nothing", "--add", "x"), 'There is no run "nothing"'),
        (("tag", "--plan", "nothing", "--add", "x"), "No run matches"),
        (("list", "--archive", "nowhere"), "There is no archive nowhere"),
        (("report", A), "there is no report of it"),
        (("rm",), "Which runs to remove?"),
        (("rm", A), "say --yes"),
        (("rm", "2026"), "could mean 3 runs"),
        (("rm", "--since", "tomorrow", "--yes"), "is not a time"),
        (("export", "x.tar"), "Which runs to export?"),
        (("export", "x.docx", A), "does not say its format"),
        (("export", "x.tar", "--tag", "none"), "No run matches"),
        (("query", ""), "The value of '[SQL]' is blank"),
        (("query", "SELECT nonsense FROM runs"), '"nonsense" not found'),
        (("query", "SELEC 1"), "The query failed"),
        (("query", "SELECT 1", "-o", "x.xls"), "does not say its format"),
        (("query", "FROM tasks"), "has a table tasks"),
        (("query", "FROM tasks", "--plan", "none"), "none like that, so no table tasks either"),
        (("query", "FROM nowhere"), "there are runs, phases, series, tasks, targets, phases_full. `sonde query`"),
        (("baseline", "show", "nope"), 'There is no baseline "nope"'),
        (("baseline", "rm", "nope"), 'There is no baseline "nope"'),
        (("list", "--sort", "time"), "'--source'? See `sonde list --help`."),
        (
            ("import", str(Path(run_builders.__file__).parent / "cli")),
            "holds no run of Sonde's and no result of a known tool",
        ),
        (("import", "nowhere.tar"), "There is no file nowhere.tar"),
        (("import", "x", "--zone", "Mars"), "is not a time zone"),
    ],
)
def test_impossible_request_prints_one_sentence(
    sonde: Any,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected_text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = sonde(*arguments)
    assert answer.code == 2
    assert len(answer.sentences) == 1
    assert expected_text in answer.err
    assert list_run_names(root) == [A, B, C]
    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_comparing_run_with_itself_is_reported(sonde: Any, root: Path) -> None:
    assert "! 1 run on both sides" in sonde("compare", A, A).out
    assert "on both sides" not in sonde("compare", A, B).out


def test_run_without_storage_number_is_not_good(sonde: Any, root: Path) -> None:
    null = run_builders.build_phase(backend="null", classification="synthetic")
    run_builders.add_run(root, "20260301T000000Z-null-0004", [null])
    validities = {line.split()[0]: line.rstrip() for line in sonde("list").out.splitlines()[1:]}
    assert validities["20260301T000000Z-null-0004"].endswith("not of storage")
    assert all(validities[run].endswith("good") for run in (A, B, C))


def test_rm_removes_runs(sonde: Any, root: Path) -> None:
    assert "Would remove 2 runs" in sonde("rm", "--plan", "daily", "--dry-run").out
    assert list_run_names(root) == [A, B, C]
    assert sonde("rm", A, C, "--status", "failed", "--yes").code == 0
    assert list_run_names(root) == [A, B], "what is named and found"
    assert "No run matches" in sonde("rm", "--plan", "none", "--yes").out
    assert sonde("rm", "--plan", "daily", "--yes").out.strip() == "Removed 2 runs."
    assert list_run_names(root) == []
    assert not list(root.glob(".removed-*"))


def test_removing_group_removes_calibrations(sonde: Any, root: Path) -> None:
    for number, role in enumerate(("run", "run", "calibration")):
        run_builders.add_run(
            root, f"20260505T00000{number}Z-part-000{number}", role=role, group="20260505T000000Z-check-abcd"
        )
    refused = sonde("rm", "20260505T000000Z-check", "--yes")
    assert refused.code == 2
    assert "means the 3 runs of a group" in refused.err
    assert "means the 3 runs of a group" in sonde("rm", "last", "--yes").err, "of all names the most harmless"
    assert len(list_run_names(root)) == 6
    assert sonde("rm", "20260505T000000Z-check", "--group", "--yes").out.strip() == "Removed 3 runs."
    assert list_run_names(root) == [A, B, C]


def test_query_describes_every_table(sonde: Any, fake_engine: Any, target: Path, archive: Path) -> None:
    fake_engine("good")
    sonde("run", "quick", "--on", target, "--no-report")
    tables = {line.split()[0] for line in sonde("query").out.splitlines()[1:]}
    assert tables == {"runs", "phases", "series", "tasks", "targets", "phases_full"}
    for table in tables:
        described = sonde("query", f"DESCRIBE {table}", "--json")
        assert described.code == 0, described.err
        assert "run" in {row["column_name"] for row in described.json}


def test_baseline_without_numbers_is_rejected(sonde: Any, root: Path) -> None:
    lost = "20260301T000000Z-lost-0004"
    run_builders.add_run(root, lost, [run_builders.build_phase(done=False)], status="lost")
    answer = sonde("baseline", "set", "empty", lost, "--add")
    assert answer.code == 2
    assert len(answer.sentences) == 1
    assert sonde("baseline", "show", "--json").json == []


def test_group_without_verb_prints_help(sonde: Any) -> None:
    answer = sonde("baseline")
    assert answer.code == 2
    assert "Delete the baseline NAME." in answer.err
    assert not answer.sentences


def test_rm_rejects_runs_outside_archive(sonde: Any, root: Path, tmp_path: Path) -> None:
    elsewhere = run_builders.add_run(tmp_path / "elsewhere", A)
    answer = sonde("rm", elsewhere, "--yes")
    assert answer.code == 2
    assert "is not in the archive" in answer.err
    assert elsewhere.is_dir()


def test_query_returns_rows(sonde: Any, root: Path, tmp_path: Path) -> None:
    sql = "SELECT op, count(*) AS n, max(bytes_per_s) AS best FROM phases GROUP BY op ORDER BY op"
    assert sonde("query", sql, "--json").json == [
        {"op": "read", "n": 1, "best": 3e9},
        {"op": "write", "n": 3, "best": 2e9},
    ]
    assert sonde("query", "SELECT count(*) AS n FROM phases", "--plan", "weekly", "--json").json == [{"n": 1}]
    assert sonde("query", "SELECT run FROM runs WHERE status = 'failed'", "--json").json == [{"run": C}]
    assert sonde("query", "FROM runs").out.count("daily") >= 2
    assert "write_bytes_per_s" in sonde("query").out
    rates = sonde("query", "SELECT 1819820.25::DOUBLE AS rate, 0.0000123::DOUBLE AS share").out
    assert rates.split()[-2:] == ["1819820", "1.23e-05"], "rates without an exponent"
    run_builders.age_archive(root)
    Catalog(root)
    run_builders.add_run(root, "20260301T000000Z-d-0004")
    assert sonde("query", "SELECT count(*) AS n FROM runs", "--json").json == [{"n": 4}], "old months and new ones"
    for name in ("x.csv", "x.json", "x.parquet"):
        answer = sonde("query", "SELECT run, tags, write_bytes_per_s FROM runs ORDER BY run", "-o", tmp_path / name)
        assert answer.code == 0
        assert "4 rows" in answer.err
    assert parquet.read_table(tmp_path / "x.parquet")["run"].to_pylist()[:3] == [A, B, C]
    assert json.loads((tmp_path / "x.json").read_text())[1]["write_bytes_per_s"] == 2e9
    assert (tmp_path / "x.csv").read_text().splitlines()[0] == '"run","tags","write_bytes_per_s"'


def test_query_reads_tables_of_runs(sonde: Any, fake_engine: Any, target: Path, archive: Path) -> None:
    for _ in range(2):
        assert sonde("run", "quick", "--on", target, "--no-report", "-q").code == 0
    run_builders.add_run(archive, A)  # has no tables
    slices = sonde("query", "SELECT run, phase, sum(bytes) AS b FROM series GROUP BY ALL", "--json").json
    assert len({row["run"] for row in slices}) == 2
    assert all(int(row["b"]) > 0 for row in slices)
    assert sonde("query", "SELECT count(DISTINCT run) AS n FROM tasks", "--json").json == [{"n": 2}]
    assert "total_bytes_per_s" in sonde("query", "FROM phases_full", "--json").json[0]


def test_damaged_table_is_reported_and_intact_tables_are_read(
    sonde: Any, fake_engine: Any, target: Path, archive: Path
) -> None:
    for _ in range(3):
        assert sonde("run", "quick", "--on", target, "--no-report", "-q").code == 0
    first, second, _ = sorted(archive.glob("2*/*/series.parquet"))
    first.write_bytes(b"no table")
    second.write_bytes(b"")
    answer = sonde("query", "SELECT count(DISTINCT run) AS n FROM series", "--json")
    assert answer.code == 0, answer.err
    assert answer.json == [{"n": 1}]
    assert [str(first) in answer.sentences[0], str(second) in answer.sentences[1]] == [True, True]
    assert sonde("query", "SELECT count(*) AS n FROM runs", "--json").json == [{"n": 3}]


def test_query_repairs_damaged_index(sonde: Any, root: Path) -> None:
    run_builders.age_archive(root)
    Catalog(root)
    for number, file in enumerate(sorted((root / ".index").rglob("*.parquet"))):
        file.write_bytes(file.read_bytes()[: number * 7] + b"damage" + file.read_bytes()[number * 7 + 60 :])
    answer = sonde("query", "SELECT count(*) AS n FROM phases", "--json")
    assert answer.code == 0, answer.err
    assert answer.json == [{"n": 4}]
    assert sonde("query", "SELECT count(*) AS n FROM runs", "--json").json == [{"n": 3}]


def test_interrupted_query_leaves_no_files(root: Path, tmp_path: Path) -> None:
    endless = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b"
    (tmp_path / "here").mkdir()
    (tmp_path / "spill").mkdir()
    source = str(Path(sonde_package.__file__).resolve().parents[1])
    places = {"TMPDIR": str(tmp_path / "spill"), "SONDE_ARCHIVE": str(root), "PYTHONPATH": source}
    process = subprocess.Popen(
        [sys.executable, "-m", "sonde", "query", endless],
        cwd=tmp_path / "here",
        env={**os.environ, **places},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 60
        while not list((tmp_path / "spill").iterdir()) and time.monotonic() < until:  # it has begun
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert "Interrupted." in process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 5
    assert list((tmp_path / "here").iterdir()) == list((tmp_path / "spill").iterdir()) == []


def test_run_removed_during_command_prints_sentence(
    sonde: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sonde.cli import export
    from sonde.store import packing

    honest = packing.pack_runs

    def too_late(folders: list[Path], *arguments: Any) -> Any:
        Archive(root).remove_run(folders[0])
        Archive(root).remove_run(folders[0])  # twice is no error
        return honest(folders, *arguments)

    monkeypatch.setattr(export, "pack_runs", too_late)
    answer = sonde("export", tmp_path / "x.tar", "--all")
    assert answer.code == 0
    assert len(answer.sentences) == 1
    assert A in answer.err
    assert sonde("import", tmp_path / "x.tar", "--archive", tmp_path / "other", "--json").json["complaints"] == []
    assert list_run_names(tmp_path / "other") == [B, C]


@pytest.mark.parametrize("file_name", ["all.tar", "all.tar.gz", "all.tgz", "all.tar.xz", "all.zip"])
def test_exported_runs_are_imported_once(sonde: Any, root: Path, tmp_path: Path, file_name: str) -> None:
    sonde("tag", A, "--add", "kept")
    (root / "2026-01" / A / "report.html").write_text("<p>A report</p>")
    out = tmp_path / file_name
    assert sonde("export", out, "--all").out.strip() == str(out)
    other = tmp_path / "other"
    first = sonde("import", out, "--archive", other)
    assert first.out.strip() == f"3 runs came into the archive {other}."
    assert list_run_names(other) == [A, B, C]
    for path in root.glob("2*/*/*"):
        assert (other / path.relative_to(root)).read_bytes() == path.read_bytes()
    again = sonde("import", out, "--archive", other, "--json").json
    assert again == {"added": [], "known": 3, "complaints": [], "unreadable_files": 0, "other_files": 0}
    assert not list(other.glob(".i[nm]*-*"))


def test_different_run_of_same_name_is_rejected(sonde: Any, root: Path, tmp_path: Path) -> None:
    run_builders.add_run(tmp_path / "one", A, [run_builders.build_phase(rate=5.0)])
    run_builders.add_run(tmp_path / "one", "20260909T000000Z-new-0001")
    answer = sonde("import", tmp_path / "one")
    assert answer.code == 0
    assert answer.sentences == [
        f"sonde: The archive has another run of the name {A} as {tmp_path / 'one'}; the one in the archive stays."
    ]
    assert list_run_names(root) == [A, B, C, "20260909T000000Z-new-0001"]
    assert sonde("query", f"SELECT max(value) AS v FROM phases WHERE run = '{A}'", "--json").json == [{"v": 1e9}]


def test_truncated_pack_imports_complete_runs(sonde: Any, root: Path, tmp_path: Path) -> None:
    sonde("export", tmp_path / "all.tar", "--all")
    content = (tmp_path / "all.tar").read_bytes()
    last = content.rindex(C.encode())
    (tmp_path / "cut.tar").write_bytes(content[: last + 700])
    other = tmp_path / "other"
    answer = sonde("import", tmp_path / "cut.tar", "--archive", other)
    assert answer.code == 0
    assert "breaks off" in answer.err
    assert list_run_names(other) == [A, B]
    assert not list(other.glob(".incoming-*"))
    (tmp_path / "noise.tar").write_bytes(b"no tar at all" * 100)
    assert sonde("import", tmp_path / "noise.tar", "--archive", other).code == 2


def test_pack_cannot_write_outside_archive(sonde: Any, root: Path, tmp_path: Path) -> None:
    """Names with .. or /, links and deeper folders are not ours."""
    document = json.dumps(run_builders.build_run_document(A)).encode()
    names = [
        "../evil/run.json",
        "/tmp/evil/run.json",
        f"{A}/../../evil",
        f"{A}/deep/er",
        "run.json",
        ".hidden/run.json",
    ]
    with tarfile.open(tmp_path / "evil.tar", "w") as tape:
        link = tarfile.TarInfo(f"{A}/run.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tape.addfile(link)
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(document)
            tape.addfile(member, io.BytesIO(document))
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as packed:
        for name in names:
            packed.writestr(name, document)
    before = set(tmp_path.rglob("*"))
    for name in ("evil.tar", "evil.zip"):
        answer = sonde("import", tmp_path / name, "--archive", tmp_path / "new")
        assert answer.code == 2
        assert "Nothing was imported" in answer.err
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "new"}


def test_export_writes_table_of_runs(sonde: Any, root: Path, tmp_path: Path) -> None:
    assert sonde("export", tmp_path / "x.csv", "--plan", "daily").code == 0
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert len(lines) == 1 + 3, "a row a phase"
    assert lines[0].startswith('"run","started_s"')
    assert sonde("export", tmp_path / "x.parquet", B).code == 0
    assert parquet.read_table(tmp_path / "x.parquet")["phase"].to_pylist() == ["write", "read"]


def test_killed_import_leaves_no_files(root: Path) -> None:
    leftover = root / ".importing-abc"
    (leftover / A).mkdir(parents=True)
    (leftover / "owner.json").write_text(json.dumps({"host": __import__("socket").gethostname(), "processes": []}))
    Archive(root).recover_unfinished_runs()
    assert not leftover.exists()
