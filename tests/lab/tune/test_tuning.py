# SPDX-License-Identifier: Apache-2.0
"""Settings are found, applied on request only, and restored after errors, signals and kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tune_builders import PRESENT, FileRunner, make_file_tunable, make_plan

from sonde.model.errors import MachineError, UserError
from sonde.tune.description import Tunable, TuneRequest
from sonde.tune.journal import JournalEntry, find_journal_file, open_journal
from sonde.tune.search import SearchRule
from sonde.tune.system_settings import resolve_setting
from sonde.tune.tuning import TuneOutcome, TuneVariant, TuningSession, require_clean_journal

RATES = {"1": 0.5, PRESENT: 1.0, "16": 1.4, "64": 1.1}


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def setting_file(tmp_path: Path) -> Path:
    file = tmp_path / "knob"
    file.write_text(f"{PRESENT}\n", encoding="utf-8")
    return file


def read_value(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


def tune(folder: Path, runner: FileRunner, *tunables: Tunable, apply: bool = False) -> TuneOutcome:
    with open_journal() as journal:
        tuning = TuningSession(make_plan(folder), folder, runner, journal, SearchRule())
        return tuning.tune_all_settings([TuneRequest(tunable, tunable.values) for tunable in tunables], apply)


def test_best_value_is_identified_and_the_system_restored(tmp_path: Path, setting_file: Path) -> None:
    runner = FileRunner(setting_file, RATES)
    outcome = tune(tmp_path, runner, make_file_tunable(setting_file))
    result = outcome.settings[0].result
    assert (outcome.settings[0].present, result.best, result.verdict) == (PRESENT, "16", "better")
    assert result.ratio is not None
    assert result.ratio.value == pytest.approx(1.4, rel=0.05)
    assert {value for value, _ in runner.measured} == {"1", PRESENT, "16", "64"}
    assert read_value(setting_file) == PRESENT
    assert not find_journal_file().exists()


def test_applied_value_stays_until_restore(tmp_path: Path, setting_file: Path) -> None:
    outcome = tune(tmp_path, FileRunner(setting_file, RATES), make_file_tunable(setting_file), apply=True)
    assert outcome.applied == ("knob",)
    assert read_value(setting_file) == "16"
    # A second tuning starts from the applied value, and the first value from before stays in the journal.
    outcome = tune(tmp_path, FileRunner(setting_file, RATES), make_file_tunable(setting_file))
    assert (outcome.settings[0].present, read_value(setting_file)) == ("16", "16")
    with open_journal() as journal:
        assert journal.restore_all() == []
    assert read_value(setting_file) == PRESENT
    assert not find_journal_file().exists()


def test_nothing_is_applied_where_nothing_helps(tmp_path: Path, setting_file: Path) -> None:
    outcome = tune(tmp_path, FileRunner(setting_file, {}), make_file_tunable(setting_file), apply=True)
    assert not outcome.settings[0].result.is_better
    assert (outcome.applied, read_value(setting_file)) == ((), PRESENT)


def test_later_setting_is_tuned_with_earlier_best_values(tmp_path: Path, setting_file: Path) -> None:
    transfer = Tunable(
        id="transfer", title="t", kind="plan", name="data.access.transfer", values=("4 KiB", "128KiB"), privilege="user"
    )
    runner = FileRunner(setting_file, RATES, {"128KiB": 1.3, "4 KiB": 0.2})
    outcome = tune(tmp_path, runner, make_file_tunable(setting_file), transfer)
    assert [setting.result.best for setting in outcome.settings] == ["16", "128KiB"]
    assert ("16", "64KiB") in runner.measured
    assert outcome.together is not None
    assert outcome.together.ratio is not None
    assert outcome.together.ratio.value == pytest.approx(1.4 * 1.3, rel=0.05)
    assert read_value(setting_file) == PRESENT


def test_value_that_plan_refuses_is_reported(tmp_path: Path, setting_file: Path) -> None:
    transfer = Tunable(id="t", title="t", kind="plan", name="data.access.transfer", values=("3 XB", "1 MiB"))
    outcome = tune(tmp_path, FileRunner(setting_file, {}, {"1 MiB": 1.5}), transfer)
    result = outcome.settings[0].result
    assert result.best == "1 MiB"
    assert "3 XB" in result.rejected["3 XB"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_system_is_restored_after_error(tmp_path: Path, setting_file: Path, error: type[BaseException]) -> None:
    class FailingRunner(FileRunner):
        def measure_variant(self, variant: TuneVariant) -> float:
            if read_value(self.file) == "64":
                raise error
            return super().measure_variant(variant)

    with pytest.raises(error):
        tune(tmp_path, FailingRunner(setting_file, RATES), make_file_tunable(setting_file))
    assert read_value(setting_file) == PRESENT
    assert not find_journal_file().exists()


def test_setting_that_cannot_be_undone_is_not_changed(tmp_path: Path, setting_file: Path) -> None:
    tunable = make_file_tunable(setting_file)
    stuck = Tunable(**{**vars(tunable), "write": ("sh", "-c", "exit 1 # {value}")})
    with pytest.raises(MachineError, match="could not be undone, so it is not tried"):
        tune(tmp_path, FileRunner(setting_file, RATES), stuck)
    silent = Tunable(**{**vars(tunable), "write": ("sh", "-c", f"echo 9 > {setting_file} # {{value}}")})
    with pytest.raises(MachineError, match="was set to 8 and reads 9"):
        tune(tmp_path, FileRunner(setting_file, RATES), silent)


def test_missing_setting_is_one_sentence(tmp_path: Path, setting_file: Path) -> None:
    tunable = Tunable(id="none", title="n", kind="command", read=("no-such-program",), write=("x", "{value}"))
    with pytest.raises(
        MachineError, match=r"none cannot be tuned here: `no-such-program`: No such file or directory\."
    ):
        tune(tmp_path, FileRunner(setting_file, RATES), tunable)


def test_journal_is_written_before_the_first_change(tmp_path: Path, setting_file: Path) -> None:
    journals = []

    class WatchingRunner(FileRunner):
        def measure_variant(self, variant: TuneVariant) -> float:
            journals.append(json.loads(find_journal_file().read_text(encoding="utf-8")))
            return super().measure_variant(variant)

    tune(tmp_path, WatchingRunner(setting_file, RATES), make_file_tunable(setting_file))
    assert all(journal["pending"][0]["state"] == {"knob": PRESENT} for journal in journals)


def test_second_tuning_at_the_same_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.tune.journal.LOCK_WAIT_S", 0.1)
    with open_journal(), pytest.raises(MachineError, match="Another `sonde tune`"), open_journal():
        pass


def test_damaged_journal_is_refused(state_folder: Path) -> None:
    (state_folder / "sonde").mkdir(parents=True)
    find_journal_file().write_text('{"schema": "x"}', encoding="utf-8")
    with pytest.raises(UserError, match="is no journal"), open_journal():
        pass


KILLED_TUNING = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from test_tuning import RATES, tune
from tune_builders import FileRunner, make_file_tunable
folder, knob = Path(sys.argv[2]), Path(sys.argv[3])
tune(folder, FileRunner(knob, RATES, delay_s=0.002), make_file_tunable(knob))
"""


def kill_and_restore(folder: Path, knob: Path, delay_s: float) -> bool:
    """Kills a tuning after its first change; restores. Returns whether the value was changed when it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_TUNING, str(Path(__file__).parent), str(folder), str(knob)]
    )
    limit = time.monotonic() + 60
    while not find_journal_file().exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.001)
    time.sleep(delay_s)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    was_changed = read_value(knob) != PRESENT
    with open_journal() as journal:
        if journal.pending:
            with pytest.raises(UserError, match="--restore"):
                require_clean_journal(journal)
        assert journal.restore_all() == []
    assert read_value(knob) == PRESENT
    assert not find_journal_file().exists()
    return was_changed


def kill_often(folder: Path, knob: Path, times: int) -> None:
    delays = random.Random(1)
    changed = [kill_and_restore(folder, knob, delays.uniform(0.02, 0.25)) for _ in range(times)]
    assert times < 5 or any(changed)  # else no kill met a change


def test_killed_tuning_is_restored(tmp_path: Path, setting_file: Path) -> None:
    kill_often(tmp_path, setting_file, 2)


@pytest.mark.nightly
def test_tuning_killed_30_times_is_restored(tmp_path: Path, setting_file: Path) -> None:
    kill_often(tmp_path, setting_file, 30)


def test_restore_waits_for_command_of_killed_tuning(tmp_path: Path, setting_file: Path) -> None:
    """A command that sets a value can outlive the tuning that was killed; it must not undo the restore."""
    slow = ("sh", "-c", f"sleep 0.5; echo {{value}} > {setting_file}")
    with open_journal() as journal:
        tunable = Tunable(**{**vars(make_file_tunable(setting_file)), "write": slow})
        setting = resolve_setting(tunable, tmp_path)
        journal.add_pending_change(JournalEntry("knob", setting, setting.read_state()))
        process_id = os.fork()
        if process_id == 0:  # the tuning, which ends without a restore while its command sleeps
            command = [part.replace("{value}", "64") for part in slow]
            subprocess.Popen(command, close_fds=False, start_new_session=True)
            os._exit(0)
        os.waitpid(process_id, 0)
    with open_journal() as journal:
        assert read_value(setting_file) == "64"
        assert journal.restore_all() == []
    assert read_value(setting_file) == PRESENT


def test_kernel_file_is_restored_with_its_related_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like vm.dirty_ratio and vm.dirty_bytes: a write to one of two related files clears the other."""
    ratio, absolute = tmp_path / "ratio", tmp_path / "bytes"
    ratio.write_text("0\n", encoding="utf-8")
    absolute.write_text("4096\n", encoding="utf-8")
    write_text: Callable[..., int] = Path.write_text

    def write(path: Path, text: str, **options: str) -> int:
        other = absolute if path == ratio else ratio
        if read_value(path) != text:
            write_text(other, "0\n", encoding="utf-8")
        return write_text(path, f"{text}\n", encoding="utf-8")

    tunable = Tunable(id="r", title="r", kind="file", name=str(ratio), related=(str(absolute),), values=("10",))
    setting = resolve_setting(tunable, tmp_path)
    state = setting.read_state()
    monkeypatch.setattr(Path, "write_text", write)
    setting.write_value("10")
    assert setting.read_state() == {str(ratio): "10", str(absolute): "0"}
    setting.write_state(state)
    assert setting.read_state() == state == {str(ratio): "0", str(absolute): "4096"}


def test_chosen_value_of_a_list_is_read(tmp_path: Path) -> None:
    file = tmp_path / "scheduler"
    file.write_text("none [mq-deadline] kyber\n", encoding="utf-8")
    setting = resolve_setting(Tunable(id="s", title="s", kind="file", name=str(file), values=("none",)), tmp_path)
    assert setting.describe_state(setting.read_state()) == "mq-deadline"


def test_remount_preserves_all_remaining_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mount` and `umount` are programs of the test that write down how they were called."""
    calls, table = tmp_path / "calls", tmp_path / "mountinfo"
    for name in ("mount", "umount"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {calls}\n', encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    line = f"1 2 0:50 / {tmp_path} rw,relatime - nfs4 server:/export rw,vers=4.2,rsize=65536,nconnect={{}}\n"
    table.write_text(line.format(2), encoding="utf-8")
    monkeypatch.setattr("sonde.model.mounts.MOUNTINFO_FILE", table)
    monkeypatch.setattr(Path, "is_mount", lambda path: True)
    tunable = Tunable(id="nconnect", title="n", kind="mount", name="nconnect", values=("8",))
    setting = resolve_setting(tunable, tmp_path)
    assert setting.read_state() == {str(tmp_path): "2"}
    setting._write_key(str(tmp_path), "8")
    assert calls.read_text(encoding="utf-8").splitlines() == [
        f"umount {tmp_path}",
        f"mount -t nfs4 -o rw,relatime,vers=4.2,rsize=65536,nconnect=8 server:/export {tmp_path}",
    ]
