# SPDX-License-Identifier: Apache-2.0
"""The command as a person or a script meets it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from sonde.cli.main import command, list_verbs

Fake = Callable[..., Path]


@pytest.fixture(autouse=True)
def without_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has tests of its own; here only that it is asked for."""

    def write_report(runs: Any, out: Path, title: str | None = None, before: Any = (), system: Any = None) -> Path:
        out.write_text(f"{title} {len(runs)}")
        return out

    monkeypatch.setattr("sonde.report.write_report", write_report)


@pytest.fixture
def ran(sonde: Any, fake: Fake, target: Path) -> Any:
    result = sonde("run", "quick", "--on", target)
    assert result.code == 0, result.err
    return result


def test_every_verb_has_help_with_examples(sonde: Any) -> None:
    for verb in list_verbs():
        result = sonde(verb, "--help")
        assert result.code == 0
        assert "Examples:" in result.out
        assert f"sonde {verb}" in result.out
        assert result.err == ""


def test_the_command_alone_shows_help(sonde: Any) -> None:
    result = sonde()
    assert result.code == 0
    assert "sonde check /scratch" in result.out
    for verb in list_verbs():
        assert verb in result.out


def test_every_option_has_help() -> None:
    for verb in list_verbs():
        verb_command = command.get_command(click.Context(command), verb)
        assert verb_command is not None
        assert verb_command.name == verb
        for parameter in verb_command.params:
            assert isinstance(parameter, click.Argument) or (isinstance(parameter, click.Option) and parameter.help)


def test_version_option_prints_version(sonde: Any) -> None:
    result = sonde("--version")
    assert result.code == 0
    assert result.out.startswith("sonde ")


def test_run_prints_progress_on_stderr_and_results_on_stdout(ran: Any) -> None:
    assert "write: 500 MB/s" in ran.err
    assert "500 MB/s" in ran.out
    assert "Report" in ran.out
    assert "\x1b" not in ran.out + ran.err, "no terminal, no colors"


def test_json_option_prints_only_json(sonde: Any, fake: Fake, target: Path, archive: Path) -> None:
    for arguments in (
        ["run", "quick", "--on", target],
        ["check", target],
        ["list"],
        ["show", "last"],
        ["report", "last"],
        ["plan", "quick", "--on", target],
        ["doctor", target],
    ):
        result = sonde(*arguments, "--json")
        assert result.code == 0, result.err
        assert result.json


def test_json_of_failed_run_is_valid(sonde: Any, fake: Fake, target: Path) -> None:
    fake("enospc")
    result = sonde("run", "quick", "--on", target, "--json")
    assert result.code == 1
    assert result.json["status"] == "failed"
    assert result.sentences == ["sonde: read: no space left on device."] or "no space left" in result.sentences[0]


def test_quiet_prints_only_run_name(sonde: Any, fake: Fake, target: Path) -> None:
    result = sonde("run", "quick", "--on", target, "--quiet")
    assert (result.code, result.err) == (0, "")
    assert [run["id"] for run in sonde("list", "--json").json] == [result.out.strip()]


@pytest.mark.parametrize(
    ("mode", "code", "text"),
    [
        ("enospc", 1, "no space left"),
        ("crash", 1, "SIGKILL"),
        ("no-end", 1, "without completing"),
        ("mismatch", 4, "not what was written"),
        ("environment", 3, "permission denied"),
        ("silent", 3, "exit code 3"),
    ],
)
def test_failure_prints_one_sentence_and_sets_exit_code(
    sonde: Any, fake: Fake, target: Path, mode: str, code: int, text: str
) -> None:
    fake(mode)
    result = sonde("run", "quick", "--on", target)
    assert result.code == code
    assert len(result.sentences) == 1
    assert text in result.sentences[0]
    assert "Traceback" not in result.err


def test_failed_run_is_listed_and_shown(sonde: Any, fake: Fake, target: Path) -> None:
    fake("enospc")
    sonde("run", "quick", "--on", target)
    assert "failed" in sonde("list").out
    result = sonde("show", "last")
    assert result.code == 0
    assert "write" in result.out
    assert "no space left on device" in result.out


def test_list_prints_runs(sonde: Any, ran: Any, fake: Fake, target: Path, archive: Path) -> None:
    fake("enospc")
    sonde("run", "known-answer", "--on", target)
    assert len(sonde("list", "--json").json) == 2
    assert [run["plan"]["id"] for run in sonde("list", "--json", "--plan", "QUICK").json] == ["quick"]
    assert [run["status"] for run in sonde("list", "--json", "--status", "failed").json] == ["failed"]
    assert len(sonde("list", "--json", "-n", "1").json) == 1
    assert len(sonde("list", "--json", "--on", str(target)).json) == 2
    assert sonde("list", "--json", "--on", "elsewhere").json == []
    assert len(sonde("list", "--json", "--since", "2000-01-01").json) == 2
    assert sonde("list", "--json", "--since", "2999-01-01").json == []
    assert "no run like that" in sonde("list", "--status", "lost").out
    (archive / "junk").mkdir()
    result = sonde("list")
    assert "junk" in result.err
    assert "quick" in result.out


def test_empty_archive_prints_advice(sonde: Any, archive: Path) -> None:
    result = sonde("list")
    assert result.code == 0
    assert "sonde check DIR" in result.out


def test_show_prints_run(sonde: Any, ran: Any, archive: Path) -> None:
    (folder,) = archive.glob("*/2*Z-*")
    for name in ("last", folder.name, folder.name[:20], str(folder)):
        result = sonde("show", name)
        assert result.code == 0
        for text in ("write", "read", "500 MB/s", "99 %", "1.20 µs", str(folder)):
            assert text in result.out
    document = sonde("show", "--json").json[0]
    assert document["phases"][0]["rates"]["total"]["bytes_per_s"] == pytest.approx(5e8)


def test_archive_option_overrides_environment(sonde: Any, ran: Any, tmp_path: Path, target: Path) -> None:
    other = tmp_path / "other"
    assert sonde("run", "quick", "--on", target, "--archive", other).code == 0
    assert len(sonde("list", "--json", "--archive", other).json) == 1


def test_report_covers_one_run_or_several(sonde: Any, ran: Any, archive: Path, target: Path, tmp_path: Path) -> None:
    result = sonde("report")
    (folder,) = archive.glob("*/2*Z-*")
    assert result.out.strip() == str(folder / "report.html")
    sonde("run", "quick", "--on", target)
    both = [path.name for path in archive.glob("*/2*Z-*")]
    page = tmp_path / "both.html"
    assert sonde("report", *both, "-o", page, "--title", "Two").code == 0
    assert page.read_text() == "Two 2"


def test_failed_report_does_not_fail_run(
    sonde: Any, fake: Fake, target: Path, monkeypatch: pytest.MonkeyPatch, archive: Path
) -> None:
    from sonde.model.errors import ReportError

    def refuse(runs: Any, out: Path, title: str | None = None, before: Any = (), system: Any = None) -> Path:
        raise ReportError("no ink")

    monkeypatch.setattr("sonde.report.write_report", refuse)
    result = sonde("run", "quick", "--on", target)
    assert result.code == 0
    assert result.sentences == ["sonde: no report was written: no ink"]
    assert sonde("report").code == 2


def test_tasks_are_divided_over_processes(sonde: Any, fake: Fake, target: Path) -> None:
    def tasks(*arguments: str) -> dict[str, int]:
        result = sonde("plan", "quick", "--on", target, "--json", *arguments)
        tasks = result.json["tasks"]
        return {name: tasks[name] for name in ("processes", "threads")}

    assert tasks() == {"processes": 1, "threads": 2}
    assert tasks("--tasks", "8") == {"processes": 1, "threads": 8}
    assert tasks("--tasks", "8", "--processes", "4") == {"processes": 4, "threads": 2}
    assert tasks("--processes", "3") == {"processes": 3, "threads": 2}


def test_plan_under_launcher_has_no_processes(
    sonde: Any, fake: Fake, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(
        '#!/bin/sh\nwhile [ "$1" != -n ]; do shift; done; export FAKE_PROCESSES=$2; shift 2; exec "$@"\n'
    )
    mpiexec.chmod(0o755)
    monkeypatch.setenv("SONDE_MPIEXEC", str(mpiexec))
    result = sonde("run", "quick", "--on", target, "--launcher", "mpiexec", "--tasks", "6", "--json")
    assert result.code == 0, result.err
    assert result.json["tasks"] == 6
    plan = json.loads((Path(result.json["folder"]) / "plan.json").read_text())
    assert plan["tasks"] == {"threads": 1}
    result = sonde(
        "run", "quick", "--on", target, "--launcher", "mpiexec", "--tasks", "6", "--processes", "3", "--json"
    )
    assert (result.json["tasks"], result.json["threads"]) == (6, 2)


def test_target_is_stored_as_absolute_path(
    sonde: Any, fake: Fake, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(target)
    result = sonde("run", "quick", "--on", ".", "--json")
    assert result.json["target"] == str(target)


def test_plan_prints_explanation(sonde: Any, fake: Fake, target: Path) -> None:
    result = sonde("plan", "quick", "--on", target, "--tasks", "4")
    assert result.code == 0
    for text in ("1 GiB needed", "4 (1 process x 4 threads)", "random_permute", "emptying the page cache", "0.062 x"):
        assert text in result.out
    assert list(target.iterdir()) == []


def test_plan_larger_than_free_space_gets_advice(
    sonde: Any, fake: Fake, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_AVAILABLE", str(300 << 20))
    result = sonde("plan", "quick", "--on", target, "--tasks", "4")
    assert result.code == 3
    assert "does not fit; make it smaller, like --set data.access.volume=59MiB" in result.out
    result = sonde("plan", "quick", "--on", target, "--tasks", "1", "--set", "data.access.volume=280MiB")
    assert result.code == 3
    assert "--set target.min_free=0" in result.out
    assert "(with data.access.volume=280MiB)" in result.out


def test_plan_works_without_an_engine(sonde: Any, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_ENGINE", "/no/such/engine")
    result = sonde("plan", "quick", "--on", target)
    assert result.code == 0
    assert "schema only" in result.err


def test_run_without_engine_is_rejected(
    sonde: Any, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SONDE_ENGINE", "/no/such/engine")
    for arguments in (["run", "quick", "--on", target], ["check", target], ["clean", target]):
        result = sonde(*arguments)
        assert result.code == 3
        assert "SONDE_ENGINE" in result.sentences[0]
    assert sonde("doctor").code == 3


@pytest.mark.parametrize(("load", "state"), [(0.1, "yes"), (2.3, "partly")])
def test_doctor_reports_load_of_others(
    sonde: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch, load: float, state: str
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    (fact,) = [fact_row for fact_row in sonde("doctor", "--json").json["facts"] if fact_row["topic"] == "load"]
    assert fact["state"] == state
    assert f"{load} processes" in fact["text"]
    assert ("doubtful" in fact["remedy"]) == (state == "partly")


def test_doctor_reports_facts(sonde: Any, fake: Fake, target: Path) -> None:
    result = sonde("doctor", target)
    assert result.code == 0
    for topic in ("engine", "clock", "backend posix", "O_DIRECT", "drop caches", "open files", "mpiexec", "archive"):
        assert topic in result.out
    fake(type="iso9660")
    assert sonde("doctor", target).code == 3
    topics = [fact["topic"] for fact in sonde("doctor", "--json").json["facts"]]
    assert "target" not in topics


def test_clean_prints_removed_directories(
    sonde: Any, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = [
        {"directory": f"{target}/sonde-a", "run": "a", "files": 3, "bytes": 4096, "remaining": []},
        {"directory": f"{target}/sonde-b", "not_removed": "its run b is still going on (process 7)"},
    ]
    stuck = [{"directory": f"{target}/sonde-c", "run": "c", "files": 1, "bytes": 1, "remaining": ["sonde-c/mine.txt"]}]
    engine = tmp_path / "engine"
    for entries, code in ((answer, 0), (stuck, 1), ([], 0)):
        engine.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(entries)}\nEND\nexit {code}\n")
        engine.chmod(0o755)
        monkeypatch.setenv("SONDE_ENGINE", str(engine))
        result = sonde("clean", target)
        assert result.code == code
        if entries == answer:
            assert "removed 3 files, 4 KiB" in result.out
            assert "still going on" in result.out
            assert "would remove 3 files" in sonde("clean", target, "--dry-run").out
        elif entries:
            assert "mine.txt" in result.out
            assert "1 file of" in result.sentences[0]
        else:
            assert "Nothing to remove" in result.out


def test_clean_outside_the_directory_needs_yes(
    sonde: Any, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [f"{target}/sonde-a", "/mnt/disk/sonde-a"]
    entry = {"directory": roots[0], "run": "a", "directories": roots, "outside": roots[1:]}
    removed = {**entry, "files": 3, "bytes": 4096, "remaining": []}
    kept_entry = {
        **entry,
        "not_removed": "its run has files outside, in /mnt/disk/sonde-a: add --yes to remove them there too",
    }
    engine = tmp_path / "engine"
    engine.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--yes*|*--dry-run*) echo '{json.dumps([removed])}';;\n"
        f"*) echo '{json.dumps([kept_entry])}'; exit 2;; esac\n"
    )
    engine.chmod(0o755)
    monkeypatch.setenv("SONDE_ENGINE", str(engine))
    refused = sonde("clean", target)
    assert refused.code == 2
    assert "not removed: its run has files outside" in refused.out
    assert f"{roots[0]} is not removed: its run has files outside, in {roots[1]}: add --yes" in refused.sentences[0]
    assert sonde("clean", target, "--json").code == 2
    result = sonde("clean", target, "--dry-run")
    assert (result.code, f"also in {roots[1]}, outside: needs --yes" in result.out) == (0, True)
    done = sonde("clean", target, "--yes")
    assert (done.code, f"also in {roots[1]}\n" in done.out) == (0, True)
    assert "removed 3 files" in done.out


def test_check_prints_figures(sonde: Any, fake: Fake, target: Path, archive: Path) -> None:
    result = sonde("check", target)
    assert result.code == 0
    for text in (
        "into page cache: not a storage number",
        "write, until on storage",
        "from storage",
        "random 4 KiB reads a second",
        "files/s",
        "Report",
    ):
        assert text in result.out
    (document,) = (archive / "reports").glob("*.json")
    group = json.loads(document.read_text())["id"]
    assert (archive / "reports" / f"{group}.html").read_text().startswith("Check of ")
    assert sonde("show", group).code == 0
    runs = sonde("list", "--json").json
    assert all(run["role"] == "check" for run in runs)
    assert len(sonde("list", "--json", "--all").json) > len(runs)


def test_check_prints_duration_and_space_before_start(sonde: Any, fake: Fake, target: Path) -> None:
    result = sonde("check", target)
    assert re.search(r"This takes about \d+ (?:s|min).* and up to [\d.]+ [KMG]iB of space\.", result.err)
    parts = re.findall(r"\((\d) of (\d)\), about (.+) left", result.err)
    assert [int(number) for number, _, _ in parts] == list(range(1, len(parts) + 1))
    assert parts[-1][0] == parts[-1][1]


def test_figures_of_all_cores_name_task_count(sonde: Any, fake: Fake, target: Path) -> None:
    figures = sonde("check", target, "--json").json["figures"]
    for figure in figures:
        if figure["key"].endswith("-all"):
            assert f"{figure['tasks']} tasks" in figure["section"]
        elif figure["key"].endswith("-1"):
            assert figure["tasks"] == 1


def test_internal_error_prints_sentence_and_details_file(
    sonde: Any, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken(self: object) -> None:
        raise RuntimeError("unthinkable")

    monkeypatch.setattr("sonde.store.archive.Archive.recover_unfinished_runs", broken)
    result = sonde("list")
    assert result.code == 1
    assert len(result.err.splitlines()) == 1
    assert "RuntimeError: unthinkable" in result.err
    (file,) = tmp_path.glob("sonde-error-*.txt")
    assert "Traceback" in file.read_text()
    monkeypatch.setenv("SONDE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        sonde("list")


def test_interrupt_outside_run_exits_with_5(sonde: Any, monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sonde.store.archive.Archive.recover_unfinished_runs", interrupted)
    assert sonde("list").code == 5


def start(arguments: list[str], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sonde", *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_finished_phases(fake: Fake, target: Path, archive: Path, number: int) -> None:
    fake(seconds="600")
    process = start(["run", "quick", "--on", str(target), "--no-report"], SONDE_ARCHIVE=str(archive))
    try:
        until = time.monotonic() + 60
        while not any("progress" in path.read_text() for path in archive.glob(".incoming-*/record.ndjson")):
            assert time.monotonic() < until
            time.sleep(0.05)
        os.killpg(process.pid, number)  # as a terminal does: to everybody in the group
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 5
    assert "Traceback" not in err
    assert err.strip().splitlines()[-1] == "sonde: Stopped by a signal."
    (folder,) = archive.glob("*/2*Z-*")
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    assert "interrupted" in out


def test_closed_pipe_is_no_error(ran: Any) -> None:
    with start(["list", "--json"]) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == ""


def test_control_characters_in_names_are_escaped(sonde: Any, fake: Fake, tmp_path: Path) -> None:
    result = sonde("run", "quick", "--on", "no\x1b[31m\nsuch")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert len(result.err.splitlines()) == 1


def test_markup_in_names_is_printed_as_text(sonde: Any, fake: Fake, tmp_path: Path) -> None:
    odd = tmp_path / "[bold]odd[/bold] [/nope]"
    odd.mkdir(parents=True)
    for arguments in (
        ["run", "quick", "--on", odd],
        ["show"],
        ["list"],
        ["plan", "quick", "--on", odd],
        ["doctor", odd],
    ):
        result = sonde(*arguments)
        assert result.code == 0, result.err
    heading, *lines = sonde("list").out.splitlines()
    begin, end = heading.index("target"), heading.index("tasks")  # a long place takes several lines of its column
    assert "[bold]odd[/bold][/nope]" in "".join(line[begin:end] for line in lines).replace(" ", "")
