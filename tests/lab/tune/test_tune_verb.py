# SPDX-License-Identifier: Apache-2.0
"""`sonde tune`: wrong inputs are one sentence, and real runs of engine and simulator are tuned."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from built_programs import needs_programs
from rich.console import Console

from sonde.model.errors import EXIT_BAD_INPUT, EXIT_ENVIRONMENT
from sonde.store.archive import Archive
from sonde.tune.description import TUNABLES_FORMAT, read_tunables
from sonde.tune.journal import find_journal_file
from sonde.tune.search import BETTER_VERDICT, SearchResult
from sonde.tune.tuning import TunedSetting, TuneOutcome
from sonde.tune.tuning_text import describe_how_to_keep_value, print_tunables

HEAD = f'schema = "{TUNABLES_FORMAT}"\ntitle = "t"\n[[tunables]]\nid = "x"\ntitle = "x"\n'
PLAN = """
schema = "sonde-plan/2"
[data]
backend = "paced"
access = { transfer = "64KiB", volume = "8MiB" }
paced = { latency = "1ms", schedule = [{ at = "0s", rate = "1GB/s" }] }
[[phases]]
id = "write"
op = "write"
"""


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "expected_sentence"),
    [
        ([], "Name a plan and a setting"),
        (["quick"], "Say which setting to tune: --try NAME"),
        (["quick", "--try", "transfer"], "Say what to tune: --on DIR"),
        (["quick", "--on", ".", "--try", "transfr"], 'There is no tunable "transfr". Did you mean "transfer"?'),
        (["quick", "--on", ".", "--try", "transfer=4KiB,,1MiB"], "holds an empty value"),
        (["quick", "--on", ".", "--try", "nr-requests=2"], "2 is outside of the safe range, 4 to 4096"),
        (["quick", "--on", ".", "--try", "nr-requests=many"], '"many" is no number'),
        (["quick", "--on", ".", "--try", "io-scheduler=fast"], "fast is not one of none, mq-deadline, bfq, kyber"),
        (["quick", "--on", ".", "--try", "transfer", "--try", "transfer"], "--try transfer is given twice"),
        (["quick", "--on", "missing", "--try", "transfer"], "There is no directory missing"),
        (["missing.toml", "--on", ".", "--try", "transfer"], "missing.toml"),
        (["quick", "--on", ".", "--try", "transfer", "--phase", "writes"], 'the plan has no phase "writes"'),
        (["quick", "--on", ".", "--try", "transfer", "--device", "sdzz"], "there is no block device sdzz"),
        (["quick", "--on", ".", "--try", "transfer", "--worth", "0"], "--worth"),
        (["quick", "--on", ".", "--try", "transfer", "--blocks", "6"], "--blocks"),
        (["quick", "--on", ".", "--try", "transfer", "--mount", "fs1"], "--mount belongs to --system"),
        (["quick", "--system", "edison", "--on", ".", "--try", "transfer"], "leave out --on"),
        (["quick", "--system", "edison", "--apply", "--try", "transfer"], "leave out --on"),
        (["quick", "--system", "nowhere", "--try", "transfer"], "nowhere"),
        (["quick", "--system", "edison", "--mount", "fs9", "--try", "transfer"], 'The system has no mount "fs9"'),
        (["quick", "--restore"], "--restore takes no plan"),
        (["--list", "--tunables", "missing.toml"], "There is no file of tunables missing.toml"),
    ],
)
def test_wrong_input_is_one_sentence(sonde: Any, archive: Path, arguments: list[str], expected_sentence: str) -> None:
    answer = sonde("tune", *arguments)
    assert answer.code == EXIT_BAD_INPUT
    assert len(answer.sentences) == 1
    assert expected_sentence in answer.sentences[0]


@pytest.mark.parametrize(
    ("text", "expected_sentence"),
    [
        ("schema = ", "is not valid TOML"),
        (HEAD + 'kind = "file"\nvalues = ["1"]\n', "lacks name"),
        (HEAD + 'kind = "file"\nname = "/etc/passwd"\nvalues = ["1"]\n', "/etc/passwd is not below /proc or /sys"),
        (HEAD + 'kind = "file"\nname = "/proc/../etc/x"\nvalues = ["1"]\n', "is not below /proc or /sys"),
        (HEAD + 'kind = "command"\nread = ["cat"]\nvalues = ["1"]\n', "x lacks write, so it has no undo"),
        (HEAD + 'kind = "command"\nwrite = ["a", "{value}"]\nvalues = ["1"]\n', "x lacks read, so it has no undo"),
        (HEAD + 'kind = "command"\nread = ["a"]\nwrite = ["b"]\nvalues = ["1"]\n', "write has no {value}"),
        (HEAD + 'kind = "plan"\nname = "data"\n', "x lacks values"),
        (HEAD + 'kind = "magic"\nvalues = ["1"]\n', "magic"),
        (HEAD.replace('"x"', '"transfer"', 1) + 'kind = "plan"\nname = "a"\nvalues = ["1"]\n', "two tunables"),
    ],
)
def test_wrong_file_of_tunables_is_one_sentence(sonde: Any, text: str, expected_sentence: str) -> None:
    Path("mine.toml").write_text(text, encoding="utf-8")
    answer = sonde("tune", "--list", "--tunables", "mine.toml")
    assert (answer.code, len(answer.sentences)) == (EXIT_BAD_INPUT, 1)
    assert expected_sentence in answer.sentences[0]


def test_world_writable_tunables_file_is_rejected(sonde: Any) -> None:
    Path("mine.toml").write_text(HEAD + 'kind = "plan"\nname = "a"\nvalues = ["1"]\n', encoding="utf-8")
    Path("mine.toml").chmod(0o666)
    assert "can be written by other users" in sonde("tune", "--list", "--tunables", "mine.toml").err


def test_shipped_tunables_have_safe_values(sonde: Any) -> None:
    tunables = read_tunables()
    assert len(tunables) > 20
    for tunable in tunables.values():
        if tunable.least is not None and tunable.most is not None:
            assert all(tunable.least <= float(value) <= tunable.most for value in tunable.values), tunable.id
        assert tunable.permanent, tunable.id
    rows = sonde("tune", "--list", "--json").json["tunables"]
    assert [item["id"] for item in rows] == list(tunables)


def test_restore_without_journal_changes_nothing(sonde: Any) -> None:
    assert "nothing to restore" in sonde("tune", "--restore").out
    assert sonde("tune", "--restore", "--json").json == {"restored": [], "failures": []}


@needs_programs
def test_real_runs_find_the_larger_transfer(sonde: Any, target: Path, archive: Path) -> None:
    """Each operation takes 1 ms, so that transfers of 1 MiB are several times as fast as 64 KiB."""
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    answer = sonde("tune", "plan.toml", "--on", target, "--try", "transfer=16KiB,1MiB", "--json")
    (setting,) = answer.json["settings"]
    assert (setting["best"], setting["verdict"], setting["present"]) == ("1MiB", "better", "64KiB")
    expected = 128 * (1 + 0.065536) / (8 * (1 + 1.048576))  # ms of 8 MiB in operations of 64 KiB and of 1 MiB
    assert setting["ratio"] == pytest.approx(expected, rel=0.05)
    runs, _ = Archive(archive).read_all_summaries()
    assert [run.role for run in runs] == ["tune"] * (3 * 2 + 2 * 7)
    assert not find_journal_file().exists()


@needs_programs
def test_killed_tuning_of_verb_is_restored_by_verb(sonde: Any, target: Path, archive: Path) -> None:
    knob = Path("knob")
    knob.write_text("9\n", encoding="utf-8")
    find_journal_file().parent.mkdir(parents=True)
    setting = {
        "kind": "command",
        "read_command": ["sh", "-c", f"echo k=$(cat {knob.absolute()})"],
        "write_command": ["sh", "-c", f"echo {{value}} > {knob.absolute()}"],
    }
    entry = {"tunable": "k", "setting": setting, "state": {"k": "4"}}
    journal = {"schema": "sonde-tune-journal/1", "pending": [entry], "applied": []}
    find_journal_file().write_text(json.dumps(journal), encoding="utf-8")
    refused = sonde("tune", "quick", "--on", target, "--try", "transfer")
    assert refused.code == EXIT_BAD_INPUT
    assert "`sonde tune --restore` restores what was there before" in refused.err
    assert sonde("tune", "--restore").out.strip() == "Restored: k."
    assert knob.read_text(encoding="utf-8") == "4\n"


@needs_programs
def test_setting_that_models_lack_is_refused(sonde: Any, archive: Path) -> None:
    answer = sonde("tune", "quick", "--system", "hpcs-demo", "--try", "tcp-rmem")
    assert (answer.code, len(answer.sentences)) == (EXIT_BAD_INPUT, 1)
    assert "tcp-rmem is no setting of simulated machines" in answer.sentences[0]


@needs_programs
def test_setting_that_this_machine_lacks_is_refused(sonde: Any, target: Path, archive: Path) -> None:
    answer = sonde("tune", "quick", "--on", target, "--try", "lustre-checksums")
    assert answer.code == EXIT_ENVIRONMENT
    assert "lustre-checksums cannot be tuned here" in answer.err


def test_caution_about_dirty_memory_is_in_list_and_result() -> None:
    """The settings that bound dirty memory can make a node hang; the list and the result of a better value say so."""
    tunables = read_tunables()
    console = Console(width=400, record=True, file=StringIO())
    print_tunables(console, tunables)
    output = console.export_text()
    assert "dirty-ratio, dirty-background-ratio: Memory settings of the kernel generally need no change" in output
    for name, is_told in (("dirty-ratio", True), ("read-ahead", False)):
        setting = TunedSetting(tunables[name], "20", SearchResult("5", None, BETTER_VERDICT))
        assert ("Caution:" in describe_how_to_keep_value(setting, TuneOutcome((setting,)))) is is_told
