# SPDX-License-Identifier: Apache-2.0
"""Values in files that other programs parse: directives of batch schedulers, systemd and sysctl files, Ansible plays.

None of these formats can quote a line break. Each function returns the value as the format needs it and raises
ValueError for a value that the format cannot hold.
"""

from __future__ import annotations

from sonde.model.escaping import escape_line
from sonde.model.shell import quote


def _check_one_line(text: str) -> str:
    if escape_line(text, len(text)) != text:
        raise ValueError(f"{text!r} is not one line of printable characters")
    return text


def quote_batch_value(text: str) -> str:
    """A value of a batch directive, such as `#SBATCH --partition=`, between double quotes or bare."""
    if quote(text) != text:
        raise ValueError(f"{text!r} holds a character that a batch directive cannot quote")
    return text


def check_sysctl_value(text: str) -> str:
    """A name or value of a line `name = value` of sysctl.d."""
    return _check_one_line(text)


def escape_systemd_value(text: str) -> str:
    """A value of a systemd unit or network file; `%`, which begins a specifier there, is doubled."""
    if text.endswith("\\"):
        raise ValueError(f"{text!r} ends in a backslash, which joins lines in systemd files")
    return _check_one_line(text).replace("%", "%%")


def escape_keyfile_value(text: str) -> str:
    """A value of a NetworkManager profile; a backslash begins an escape there."""
    return _check_one_line(text).replace("\\", "\\\\")


def escape_ansible_value(text: str) -> str:
    """A text of an Ansible play, which is also a Jinja2 template."""
    if "{{" in text or "{%" in text or "{#" in text:
        raise ValueError(f"{text!r} would be run as a template by Ansible")
    return text


def check_bare_word(text: str) -> str:
    """A word of a line that a shell splits at blanks and cannot unquote: the files of the network scripts."""
    if not text or quote(text) != text:
        raise ValueError(f"{text!r} is not one word without quotes")
    return text
