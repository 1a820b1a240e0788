# SPDX-License-Identifier: Apache-2.0
"""Defaults of options in configuration files.

The first of these that sets an option wins: the command line, the environment (SONDE_ARCHIVE, NO_COLOR), the user's
file ($SONDE_CONFIG, else ~/.config/sonde/config.toml), the site's file (/etc/sonde/config.toml), the built-in default.
A file sets `archive`, `color` and `quiet` at its top, and options of one verb in a table named by the verb::

    archive = "/project/io/sonde-archive"

    [run]
    launcher = "srun"
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.model.errors import MachineError, UserError
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_limited_text

CONFIGURATION_VARIABLE = "SONDE_CONFIG"
SITE_FILE = Path("/etc/sonde/config.toml")
GENERAL_SETTINGS = ("archive", "color", "quiet")


@dataclass(frozen=True)
class ConfigurationFile:
    """One configuration file that exists, as written."""

    path: Path
    values: Mapping[str, Any]


def locate_user_configuration() -> Path:
    """Returns the path of the user's configuration file, whether or not it exists."""
    stated = os.environ.get(CONFIGURATION_VARIABLE)
    if stated:
        return Path(stated).expanduser()
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "sonde" / "config.toml"


def find_state_folder() -> Path:
    """$XDG_STATE_HOME/sonde, by default below ~/.local/state, whether or not it exists."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "sonde"


def read_configuration_files() -> list[ConfigurationFile]:
    """Reads the files that exist, the one that wins first. Raises UserError if one is wrong, naming file and line.

    A file that $SONDE_CONFIG names must exist; an empty value means that no file is read.
    """
    stated = os.environ.get(CONFIGURATION_VARIABLE)
    if stated == "":
        return []
    files = [_read_configuration_file(path) for path in (locate_user_configuration(), SITE_FILE)]
    if stated and files[0] is None:
        raise UserError(f"There is no file {locate_user_configuration()}, which {CONFIGURATION_VARIABLE} names.")
    return [file for file in files if file is not None]


def _read_configuration_file(configuration_file: Path) -> ConfigurationFile | None:
    try:
        text = read_limited_text(configuration_file, MAX_CONFIGURATION_BYTES)
        from sonde.model.documents import parse_toml  # its YAML parser takes time to import, and few users have a file

        return ConfigurationFile(configuration_file, parse_toml(text))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as reason:
        if reason.errno == errno.EFBIG:
            raise UserError(f"{configuration_file} is larger than a configuration file can be (1 MiB).") from None
        raise MachineError(f"The configuration file {configuration_file} cannot be read: {reason.strerror}.") from None
    except ValueError as reason:  # not UTF-8, not TOML, or beyond the limits of documents
        raise UserError(f"{configuration_file} is not TOML: {reason}.") from None


def find_general_setting(setting_name: str) -> tuple[Any, Path] | None:
    """Returns a setting at the top of a file and that file's path; None if no file has it."""
    for file in read_configuration_files():
        if setting_name in file.values:
            return file.values[setting_name], file.path
    return None


def find_verb_setting(setting_path: Sequence[str]) -> Path | None:
    """Returns the path of the file that sets an option of a verb, like ("baseline", "show", "json"); None if no file
    does. Dashes and underscores are the same."""
    for file in read_configuration_files():
        value: Any = file.values
        for name in setting_path:
            names = {key.replace("-", "_"): key for key in value} if isinstance(value, Mapping) else {}
            value = value[names[name.replace("-", "_")]] if name.replace("-", "_") in names else None
        if value is not None:
            return file.path
    return None


def find_archive_setting() -> str | None:
    """Returns `archive` of the configuration files. Raises UserError if it is no text."""
    setting = find_general_setting("archive")
    if setting is None:
        return None
    value, path = setting
    if not isinstance(value, str) or not value:
        raise UserError(f'{path}: archive must be the path of a folder in quotes, like "/project/sonde-archive".')
    return value
