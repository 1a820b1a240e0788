# SPDX-License-Identifier: Apache-2.0
"""The command line is one language: the same option has the same letter everywhere, and help leads to every verb."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from sonde.cli.main import command, list_verbs, read_summary
from sonde.model import errors
from sonde.terminal.topics import list_topics

# Command lines of other tools keep their letters.
TOOLS = {"ior", "mdtest", "md-workbench", "iozone", "obdfilter-survey", "io500"}
LETTERS = {"--dry-run": "-n", "--quiet": "-q", "--output": "-o", "--yes": "-y", "--all": "-a"}


def iterate_commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from iterate_commands(command, f"{path} {name}".strip())
        elif command is not None:
            yield f"{path} {name}".strip(), command


def test_option_has_same_letter_in_all_verbs() -> None:
    wrong = [
        (verb, option.opts)
        for verb, command_found in iterate_commands(command)
        if verb.split()[0] not in TOOLS
        for option in command_found.params
        if isinstance(option, click.Option)
        for word, letter in LETTERS.items()
        if word in option.opts and letter not in option.opts
    ]
    assert wrong == []


def test_help_groups_all_verbs_without_truncation(sonde: Any) -> None:
    output = sonde("--help").out
    overview = output[output.index("Measure:") :]
    assert not [line for line in overview.splitlines() if line.endswith(("…", "..."))]
    for verb in list_verbs():
        assert f"  {verb} " in overview or f"  {verb}\n" in overview, verb
    places = [overview.index(title) for title in ("Measure:", "View runs:", "Compare:", "This machine:")]
    assert places == sorted(places)


@pytest.mark.parametrize("group", ["baseline", "layout", "route"])
def test_help_of_group_is_not_truncated(sonde: Any, group: str) -> None:
    output = sonde(group, "--help").out
    commands_of = output[output.index("Commands:") :]
    assert not [line for line in commands_of.splitlines() if line.endswith(("…", "..."))]
    assert len(commands_of.splitlines()) > 3


def test_unmount_without_mount_prints_one_sentence(sonde: Any, tmp_path: Path) -> None:
    result = sonde("unmount", tmp_path)
    assert result.code == 2
    assert f"Nothing is mounted on {tmp_path}" in result.err


def test_help_verb_equals_help_option(sonde: Any) -> None:
    assert sonde("help").out == sonde("--help").out
    assert sonde("help", "check").out == sonde("check", "--help").out
    assert sonde("help", "baseline", "set").out == sonde("baseline", "set", "--help").out
    assert sonde("help", "chexckc").code == 2


def test_overview_shows_first_verbs_and_names_all(sonde: Any) -> None:
    output = sonde().out
    first = output[output.index("First steps:") : output.index("By task:")]
    assert [line.split()[0] for line in first.splitlines() if line.startswith("  ") and line[2] != " "] == [
        *("doctor", "check", "run", "show", "compare", "report")
    ]
    names = set(re.findall(r"[a-z0-9]+(?:-\s*[a-z0-9]+)*", output))
    assert set(list_verbs()) <= {re.sub(r"\s", "", name) for name in names}


@pytest.mark.parametrize(
    ("verb_name", "verb"), list(iterate_commands(command)), ids=[name for name, _ in iterate_commands(command)]
)
def test_verb_has_two_examples(verb_name: str, verb: click.Command) -> None:
    examples = [line for line in (verb.help or "").splitlines() if line.strip().startswith(f"sonde {verb_name}")]
    assert len(examples) >= 2, verb.help


@pytest.mark.parametrize("verb_name", [*list_verbs(), *(name for name, _ in iterate_commands(command) if " " in name)])
def test_verb_links_to_existing_page(verb_name: str) -> None:
    verb: click.Command | None = command
    for part in verb_name.split():
        assert isinstance(verb, click.Group)
        verb = verb.get_command(click.Context(verb), part)
    assert verb is not None
    (topic,) = re.findall(r"^ *More: sonde help (\S+)$", verb.help or "", re.MULTILINE)
    assert topic in list_topics()


def test_mistyped_verb_gets_the_close_one_instead_of_all(sonde: Any) -> None:
    assert sonde("chexck").err == 'sonde: There is no command "chexck". Did you mean "check"? See `sonde --help`.\n'
    assert "; there are check, run, suite" in sonde("zzz").err


def test_help_topic_prints_page_with_commands_for_links(sonde: Any) -> None:
    result = sonde("help", "rates")
    assert result.code == 0
    assert "stonewall" in result.out
    assert "sonde help concepts/clock" in result.out
    assert "](" not in result.out


def test_help_of_unknown_topic_names_pages_that_mention_it(sonde: Any) -> None:
    assert "sonde help concepts/rates" in sonde("help", "stonewall").err
    assert sonde("help", "stonewall").code == 2


def test_help_topics_lists_every_page(sonde: Any) -> None:
    output = sonde("help", "topics").out
    assert [name for name in list_topics() if name not in output] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_command_of_help_works(sonde: Any, shell: str) -> None:
    assert "_SONDE_COMPLETE=bash_source sonde" in sonde("--help").out
    environment = {**os.environ, "_SONDE_COMPLETE": f"{shell}_complete", "COMP_WORDS": "sonde tre", "COMP_CWORD": "1"}
    environment["COMP_CWORD"] = "tre" if shell == "fish" else "1"
    command_line = [sys.executable, "-m", "sonde"]
    done = subprocess.run(command_line, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert "trend" in done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [("check", "/proc"), ("run", "quick", "--on", "/proc")], ids=["check", "run"])
def test_proc_is_rejected_as_target(sonde: Any, engine: Any, arguments: tuple[str, ...]) -> None:
    result = sonde(*arguments)
    assert result.code == 3
    assert "no file system for data" in result.err
    assert Path("/proc").is_dir()


def test_start_loads_no_library_for_numbers() -> None:
    """Every command waits for what the list of verbs imports."""
    code = "import sys, sonde.cli.main; print([name for name in ('numpy', 'pyarrow', 'duckdb') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("verb", list_verbs())
def test_overview_prints_the_first_sentence_of_each_verb(verb: str) -> None:
    loaded = command.get_command(click.Context(command), verb)
    assert loaded is not None
    assert read_summary(verb) == loaded.get_short_help_str(limit=1000) != ""


def test_overview_loads_no_verb() -> None:
    program = (
        "import sys; from sonde.cli.main import command;"
        "command(['--help'], standalone_mode=False);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'sonde.cli.run')))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


def test_help_names_every_exit_code(sonde: Any) -> None:
    text = " ".join(sonde("--help").out.split())
    codes = sorted({value for name, value in vars(errors).items() if name.startswith("EXIT_")})
    assert len(codes) == 7
    assert all(f" {code} " in text[text.index("Exit codes:") :] for code in codes)
    assert "--archive DIR after the verb" in text
