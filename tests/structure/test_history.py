# SPDX-License-Identifier: Apache-2.0
"""Rules of the commit history, from the commit that added this file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 72  # letters; git log, mail and web pages cut longer subjects


def git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_subjects_of_commits_are_short() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no history here: not a clone, or no git")
    if git("rev-parse", "--is-shallow-repository") == ["true"]:
        pytest.skip("no history here: a shallow clone")
    here = Path(__file__).relative_to(ROOT).as_posix()
    brought = git("log", "--diff-filter=A", "--format=%H", "--", here)
    if not brought:
        return  # not committed yet
    long = [subject for subject in git("log", "--format=%s", f"{brought[-1]}~1..HEAD") if len(subject) > LONGEST]
    assert long == []
