# SPDX-License-Identifier: Apache-2.0
"""Completion of names in real shells, and the man pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from archive_builders import store_run
from record_scene import Scene

ROOT = Path(__file__).resolve().parents[3]
RUN = "20261101T000000Z-quick-1"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix with `sonde`, its man pages and completion files, and an archive with one run."""
    folder = tmp_path_factory.mktemp("prefix")
    (folder / "bin").mkdir()
    program = folder / "bin" / "sonde"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sonde "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    command = [sys.executable, str(ROOT / "tools" / "man-pages"), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=make_environment(folder))
    store_run(folder / "archive", RUN, Scene())
    return folder


def make_environment(prefix: Path) -> dict[str, str]:
    variables = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "SONDE_ARCHIVE": str(prefix / "archive")}
    return {**os.environ, **variables, "HOME": str(prefix), "SOURCE_DATE_EPOCH": "1767225600"}


BASH = """
source {file}
complete -p sonde >/dev/null
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
_sonde_completion sonde
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# The functions of zsh's completion system print what they are given instead of showing it in a terminal.
ZSH = """
compdef() {{ }}
_describe() {{ print -l -- "${{(@P)3}}" }}
compadd() {{ shift $(( ${{@[(i)-a]}} )); print -l -- "${{(@P)1}}" }}
_path_files() {{ }}
source {file}
words=({words}); CURRENT=${{#words}}
_sonde_completion
"""
FISH = """
source {file}
complete --do-complete "{words}"
"""
SCRIPTS = {
    "bash": (BASH, "share/bash-completion/completions/sonde"),
    "zsh": (ZSH, "share/zsh/site-functions/_sonde"),
    "fish": (FISH, "share/fish/vendor_completions.d/sonde.fish"),
}
CASES = [
    ("sonde tre", "trend"),
    ("sonde show 2026", RUN),
    ("sonde compare last 2026", RUN),
    ("sonde run edison-acc", "edison-acceptance"),
    ("sonde simulate quick --system cum", "cumulus"),
    ("sonde gate last --at-least wri", "write="),
]
# A shell takes a second to start; the others differ only in the kind of name that is completed.
IN_SHELLS = [("bash", *case) for case in CASES] + [(shell, *case) for shell in ("zsh", "fish") for case in CASES[:2]]


@pytest.mark.parametrize(("shell", "command_line", "expected"), IN_SHELLS)
def test_names_complete_in_real_shell(prefix: Path, shell: str, command_line: str, expected: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed (tools/system-packages tests)")
    script, file = SCRIPTS[shell]
    options = ["--no-config"] if shell == "fish" else ["-f"] if shell == "zsh" else ["--norc"]
    text = script.format(file=prefix / file, words=command_line)
    done = subprocess.run(
        [shell, *options, "-c", text],
        env=make_environment(prefix),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    answers = [command_line.split("\t")[0].split(":")[0] for command_line in done.stdout.splitlines()]
    assert expected in answers, done.stderr


def test_shell_without_completion_is_rejected(prefix: Path) -> None:
    environment = {**make_environment(prefix), "_SONDE_COMPLETE": "tcsh_source"}
    done = subprocess.run(["sonde"], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'sonde: There is no completion "tcsh_source"; use bash_source, zsh_source or fish_source.\n'


def test_every_verb_has_man_page(prefix: Path) -> None:
    from sonde.cli.main import list_verbs

    names = {path.name for path in (prefix / "share" / "man" / "man1").iterdir()}
    assert names == {"sonde.1", *(f"sonde-{verb}.1" for verb in list_verbs())}


def test_mandoc_finds_nothing_wrong(prefix: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed (tools/system-packages tests)")
    pages = sorted(map(str, (prefix / "share" / "man" / "man1").iterdir()))
    done = subprocess.run(["mandoc", "-T", "lint", *pages], capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


def test_man_page_describes_every_parameter(prefix: Path) -> None:
    pages = {path.name: path.read_text() for path in (prefix / "share" / "man" / "man1").iterdir()}
    assert [name for name, text in pages.items() if "No description" in text] == []
    headings = [line for line in pages["sonde-compare.1"].splitlines() if line.startswith(".B ")]
    assert ".B BEFORE" not in headings  # the description explains the arguments
    assert ".B \\-\\-check" in headings


def test_man_pages_are_reproducible(prefix: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "man-pages"), str(tmp_path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=make_environment(prefix))
    for path in (prefix / "share").rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(prefix)).read_bytes() == path.read_bytes()
