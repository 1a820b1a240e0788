# SPDX-License-Identifier: Apache-2.0
"""Values in scripts and configuration files: a shell reads back what was written, and no value makes a second line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.model.directives import (
    ansible_value,
    bare_word,
    batch_value,
    keyfile_value,
    sysctl_value,
    systemd_value,
)
from sonde.model.shell import ShellScript, comment_text, concatenate, substitute, user_shell, variable

SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=SURROGATES))


def output_of(script: ShellScript, **environment: str) -> str:
    done = subprocess.run(["/bin/sh"], input=str(script).encode(), env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS)
def test_shell_reads_arguments_as_written(first: str, second: str) -> None:
    script = ShellScript()
    script.assign("value", second)
    with script.function("show"):
        script.command("printf", "%s|", first, concatenate(first, "=", variable("value"), "=", second))
    script.comment(first + second)
    script.literal("show")
    assert output_of(script) == f"{first}|{first}={second}={second}|"


@given(st.text())
def test_comment_is_one_line(text: str) -> None:
    assert len(f"# {comment_text(text)}".splitlines()) == 1


def test_warning_and_failure_follow_a_failed_command() -> None:
    script = ShellScript()
    script.command("false", warning="it's $(not) run")
    script.command("false", quiet=True)
    script.repeat_until_failure("false")
    script.pipeline(["true"], ["printf", "second"])
    script.command("false", failure="exit 0")
    script.command("printf", "never")
    assert output_of(script) == "second"


def test_substitution_quotes_its_arguments() -> None:
    script = ShellScript()
    script.command("printf", "%s", substitute("printf", "%s", "a  b; printf c"))
    assert output_of(script) == "a  b; printf c"


def test_unset_variable_ends_the_script() -> None:
    script = ShellScript()
    script.require_variable("DISK", "the disk, like /dev/sda")
    done = subprocess.run(["/bin/sh", "-c", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "DISK: set it to the disk, like /dev/sda\n")
    assert output_of(script, DISK="/dev/sda") == ""


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a;b", "a\n", "é"])
def test_invalid_variable_name_is_rejected(name: str) -> None:
    for call in (variable, lambda text: ShellScript().assign(text, ""), lambda text: ShellScript().export(text, "")):
        with pytest.raises(ValueError, match="is not the name of a shell variable"):
            call(name)


def test_nul_character_is_rejected() -> None:
    with pytest.raises(ValueError, match="NUL"):
        ShellScript().command("echo", "a\0b")


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\x1bb", "a\u2028b"])
@pytest.mark.parametrize(
    "encode", [batch_value, sysctl_value, systemd_value, keyfile_value, bare_word, lambda text: user_shell(text).text]
)
def test_second_line_is_rejected(encode: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not one (line|word)|cannot quote"):
        encode(text)


@pytest.mark.parametrize(
    ("encode", "text", "encoded"),
    [
        (batch_value, "gpu:2,mem=4", "gpu:2,mem=4"),
        (systemd_value, "100%n", "100%%n"),
        (keyfile_value, r"a\sb", r"a\\sb"),
        (sysctl_value, "4096 87380", "4096 87380"),
        (ansible_value, "clients", "clients"),
        (bare_word, "fd00::/64", "fd00::/64"),
    ],
)
def test_value_is_encoded_for_its_format(encode: Callable[[str], str], text: str, encoded: str) -> None:
    assert encode(text) == encoded


@pytest.mark.parametrize(
    ("encode", "text"),
    [
        *((batch_value, text) for text in ('a"b', "a b", "$(a)", "`a`", "a;b", "", "[a|b]")),
        *((ansible_value, text) for text in ("{{ a }}", "{% a %}", "{# a #}")),
        *((bare_word, text) for text in ("a b", "", "*", "$a")),
        (systemd_value, "a\\"),
    ],
)
def test_value_that_a_format_cannot_hold_is_rejected(encode: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot quote|as a template|is not one word|ends in a backslash"):
        encode(text)
