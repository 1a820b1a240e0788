# SPDX-License-Identifier: Apache-2.0
"""Values in files that other programs parse: directives of batch schedulers, systemd and sysctl files, Ansible plays.

None of these formats can quote a line break. Each function returns the value as the format needs it and raises
ValueError for a value that the format cannot hold.
"""

from __future__ import annotations

from sonde.model.escaping import escape_line
from sonde.model.shell import quote_word


def _check_one_line(value_text: str) -> str:
    if escape_line(value_text, len(value_text)) != value_text:
        raise ValueError(f"{value_text!r} is not one line of printable characters")
    return value_text


def quote_batch_value(directive_value: str) -> str:
    """A value of a batch directive, such as `#SBATCH --partition=`, between double quotes or bare."""
    if quote_word(directive_value) != directive_value:
        raise ValueError(f"{directive_value!r} holds a character that a batch directive cannot quote")
    return directive_value


def check_sysctl_value(name_or_value: str) -> str:
    """A name or value of a line `name = value` of sysctl.d."""
    return _check_one_line(name_or_value)


def escape_systemd_value(directive_value: str) -> str:
    """A value of a systemd unit or network file; `%`, which begins a specifier there, is doubled."""
    if directive_value.endswith("\\"):
        raise ValueError(f"{directive_value!r} ends in a backslash, which joins lines in systemd files")
    return _check_one_line(directive_value).replace("%", "%%")


def escape_keyfile_value(profile_value: str) -> str:
    """A value of a NetworkManager profile; a backslash begins an escape there."""
    return _check_one_line(profile_value).replace("\\", "\\\\")


def escape_ansible_value(play_text: str) -> str:
    """A text of an Ansible play, which is also a Jinja2 template."""
    if "{{" in play_text or "{%" in play_text or "{#" in play_text:
        raise ValueError(f"{play_text!r} would be run as a template by Ansible")
    return play_text


def require_word_without_quotes(script_word: str) -> str:
    """A word of a line that a shell splits at blanks and cannot unquote: the files of the network scripts."""
    if not script_word or quote_word(script_word) != script_word:
        raise ValueError(f"{script_word!r} is not one word without quotes")
    return script_word
