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
    check_sysctl_value,
    escape_ansible_value,
    escape_keyfile_value,
    escape_systemd_value,
    quote_batch_value,
    require_word_without_quotes,
)
from sonde.model.shell import (
    ShellScript,
    concatenate_into_word,
    format_comment,
    make_unquoted_user_word,
    make_variable_reference,
    substitute_command_output,
)

SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=SURROGATES))


def output_of(script: ShellScript, **environment: str) -> str:
    done = subprocess.run(["/bin/sh"], input=str(script).encode(), env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS)
def test_shell_reads_arguments_as_written(first: str, second: str) -> None:
    script = ShellScript()
    script.assign_variable("value", second)
    with script.define_function("show"):
        script.add_command(
            "printf", "%s|", first, concatenate_into_word(first, "=", make_variable_reference("value"), "=", second)
        )
    script.add_comment(first + second)
    script.add_literal_lines("show")
    assert output_of(script) == f"{first}|{first}={second}={second}|"


@given(st.text())
def test_comment_is_one_line(text: str) -> None:
    assert len(f"# {format_comment(text)}".splitlines()) == 1


def test_warning_and_failure_follow_a_failed_command() -> None:
    script = ShellScript()
    script.add_command("false", warning_text="it's $(not) run")
    script.add_command("false", hides_output=True)
    script.add_loop_until_failure("false")
    script.add_command_chain(["true"], ["printf", "second"])
    script.add_command("false", failure_command="exit 0")
    script.add_command("printf", "never")
    assert output_of(script) == "second"


def test_substitution_quotes_its_arguments() -> None:
    script = ShellScript()
    script.add_command("printf", "%s", substitute_command_output("printf", "%s", "a  b; printf c"))
    assert output_of(script) == "a  b; printf c"


def test_unset_variable_ends_the_script() -> None:
    script = ShellScript()
    script.require_variable("DISK", "the disk, like /dev/sda")
    done = subprocess.run(["/bin/sh", "-c", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "DISK: set it to the disk, like /dev/sda\n")
    assert output_of(script, DISK="/dev/sda") == ""


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a;b", "a\n", "é"])
def test_invalid_variable_name_is_rejected(name: str) -> None:
    for call in (
        make_variable_reference,
        lambda text: ShellScript().assign_variable(text, ""),
        lambda text: ShellScript().export_variable(text, ""),
    ):
        with pytest.raises(ValueError, match="is not the name of a shell variable"):
            call(name)


def test_nul_character_is_rejected() -> None:
    with pytest.raises(ValueError, match="NUL"):
        ShellScript().add_command("echo", "a\0b")


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\x1bb", "a\u2028b"])
@pytest.mark.parametrize(
    "encode",
    [
        quote_batch_value,
        check_sysctl_value,
        escape_systemd_value,
        escape_keyfile_value,
        require_word_without_quotes,
        lambda text: make_unquoted_user_word(text).script_text,
    ],
)
def test_second_line_is_rejected(encode: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not one (line|word)|cannot quote"):
        encode(text)


@pytest.mark.parametrize(
    ("encode", "text", "encoded"),
    [
        (quote_batch_value, "gpu:2,mem=4", "gpu:2,mem=4"),
        (escape_systemd_value, "100%n", "100%%n"),
        (escape_keyfile_value, r"a\sb", r"a\\sb"),
        (check_sysctl_value, "4096 87380", "4096 87380"),
        (escape_ansible_value, "clients", "clients"),
        (require_word_without_quotes, "fd00::/64", "fd00::/64"),
    ],
)
def test_value_is_encoded_for_its_format(encode: Callable[[str], str], text: str, encoded: str) -> None:
    assert encode(text) == encoded


@pytest.mark.parametrize(
    ("encode", "text"),
    [
        *((quote_batch_value, text) for text in ('a"b', "a b", "$(a)", "`a`", "a;b", "", "[a|b]")),
        *((escape_ansible_value, text) for text in ("{{ a }}", "{% a %}", "{# a #}")),
        *((require_word_without_quotes, text) for text in ("a b", "", "*", "$a")),
        (escape_systemd_value, "a\\"),
    ],
)
def test_value_that_a_format_cannot_hold_is_rejected(encode: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot quote|as a template|is not one word|ends in a backslash"):
        encode(text)
