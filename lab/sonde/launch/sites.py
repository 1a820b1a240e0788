# SPDX-License-Identifier: Apache-2.0
"""Reads sites files: what a computing center requires of its jobs (scheduler, launcher, partition, modules, …).

The files are ``/etc/sonde/sites.toml``, ``~/.config/sonde/sites.toml`` ($XDG_CONFIG_HOME) and the file that
$SONDE_SITES names; a later file replaces a site of the same name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sonde.launch.launchers.list import list_launcher_names
from sonde.model.directives import quote_batch_value
from sonde.model.documents import parse_toml
from sonde.model.errors import UnitError, UserError, suggest_close_name
from sonde.model.escaping import escape_line
from sonde.model.file_text import MAX_CONFIGURATION_BYTES, read_limited_text
from sonde.model.file_trust import require_file_owned_by_user_or_root
from sonde.model.units import parse_duration

SCHEDULERS = ("slurm", "pbs", "pbs_classic", "lsf")
SITES_VARIABLE = "SONDE_SITES"
_MIN_TIME_LIMIT_S = 60.0  # schedulers count minutes
_SITE_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OPTION_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_VARIABLE_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Site:
    """One table of a sites file. `time_s` is the default time limit of a job, in seconds."""

    name: str
    scheduler: str
    launcher: str
    origin: str
    title: str = ""
    launcher_args: str = ""
    partition: str = ""
    account: str = ""
    reservation: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # further options of the scheduler, by name
    modules: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: Sequence[str] = ()  # lines of shell before the command
    wrapper: str = ""  # shell text in front of the command
    sonde: str = ""  # shell text of the command on the nodes, if it differs from the one that submits
    archive: str = ""
    system: str = ""  # system file of this machine
    nodes: int = 1
    tasks_per_node: int | None = None
    time_s: float = 1800.0


# Member -> (form, meaning), for the reader, its error messages and the documentation.
SITE_FILE_MEMBERS: Mapping[str, tuple[str, str]] = {
    "title": ("text", "title for people"),
    "scheduler": ("text", f"the batch scheduler: {', '.join(SCHEDULERS)}"),
    "launcher": ("text", "what starts processes inside a job, a value of `--launcher`"),
    "launcher_args": ("text", "further arguments for it"),
    "partition": ("text", "partition or queue"),
    "account": ("text", "account or project"),
    "reservation": ("text", "reservation"),
    "options": ("table", 'further options of the scheduler: `{ qos = "debug", constraint = "cpu" }`'),
    "modules": ("list", "modules to load, in this order"),
    "environment": ("table", "variables to set"),
    "setup": ("list", "lines of shell before the command"),
    "wrapper": ("text", "shell text in front of the command"),
    "sonde": ("text", "the command on the nodes, if it differs from the one that submits"),
    "archive": ("text", "folder of runs, on storage that all nodes see"),
    "system": ("text", "system file of the machine: sums of targets per server and unit, parts of experiments"),
    "nodes": ("count", "nodes of a job (1)"),
    "tasks_per_node": ("count", "tasks per node"),
    "time": ("duration", 'time limit of a job ("30 min")'),
}


def list_site_files(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The sites files in the order in which they are read; the last one wins."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "/")) / ".config")
    extra = environment.get(SITES_VARIABLE)
    return [Path("/etc/sonde/sites.toml"), Path(home) / "sonde" / "sites.toml", *([Path(extra)] if extra else [])]


def read_sites(sites_files: Sequence[Path] | None = None) -> dict[str, Site]:
    """All sites by name. Raises UserError for a file that is no sites file. A missing file has no sites, unless
    $SONDE_SITES names it: then it is an error."""
    sites: dict[str, Site] = {}
    for path in list_site_files() if sites_files is None else sites_files:
        try:
            if str(path) != os.environ.get(SITES_VARIABLE):
                require_file_owned_by_user_or_root(path, "sites file")
            document = parse_toml(read_limited_text(path, MAX_CONFIGURATION_BYTES))
        except FileNotFoundError:
            if str(path) == os.environ.get(SITES_VARIABLE):
                raise UserError(f"${SITES_VARIABLE} names {path}, which does not exist.") from None
            continue
        except (OSError, ValueError) as reason:
            raise UserError(f"The sites file {path} cannot be read: {reason}.") from None
        for name, table in document.items():
            sites[name] = _read_site(name, table, path)
    return sites


def find_site(site_name: str | None) -> Site:
    """The site of that name, or the only one. Raises UserError when there is none, or several and `site_name` is
    None."""
    sites = read_sites()
    if not sites:
        files = " or ".join(str(path) for path in list_site_files())
        raise UserError(
            f'No site is described; write one into {files}: [mysite] scheduler = "slurm", launcher = "srun".'
        )
    if site_name is None and len(sites) == 1:
        return next(iter(sites.values()))
    if site_name is None:
        raise UserError(f"Several sites are described; name one with --site: {', '.join(sites)}.")
    if site_name not in sites:
        raise UserError(
            f'There is no site "{site_name}"; described are '
            f"{', '.join(sites)}.{suggest_close_name(site_name, list(sites))}"
        )
    return sites[site_name]


def _read_site(site_name: str, site_table: Any, sites_file: Path) -> Site:
    location = f"{sites_file}: {escape_line(site_name)}"
    if not _SITE_NAME_PATTERN.fullmatch(site_name):
        raise UserError(f"{location} is not the name of a site; allowed are letters, digits and _ . -")
    if not isinstance(site_table, dict):
        raise UserError(
            f'{location} is {site_table!r}; a site is a table: [{site_name}] scheduler = "slurm", launcher = "srun".'
        )
    for member in site_table:
        if member not in SITE_FILE_MEMBERS:
            raise UserError(
                f'{location} has no member "{member}".{suggest_close_name(member, list(SITE_FILE_MEMBERS))}'
            )
    for member in ("scheduler", "launcher"):
        if member not in site_table:
            raise UserError(f"{location} lacks {member}; {SITE_FILE_MEMBERS[member][1].replace('`', '')}.")
    values = {
        member: _read_site_value(f"{location}.{member}", SITE_FILE_MEMBERS[member][0], value)
        for member, value in site_table.items()
    }
    _check_site_values(location, values)
    for member, allowed in (("scheduler", SCHEDULERS), ("launcher", list_launcher_names())):
        if values[member] not in allowed:
            near = suggest_close_name(values[member], list(allowed))
            raise UserError(f'{location}.{member} is "{values[member]}"; allowed are {", ".join(allowed)}.{near}')
    if "time" in values:
        values["time_s"] = values.pop("time")
    assert set(values) <= {member.name for member in fields(Site)}
    return Site(name=site_name, origin=str(sites_file), **values)


def _check_site_values(location: str, site_values: Mapping[str, Any]) -> None:
    """Raises UserError for a value that a batch directive or one line of a script cannot hold."""
    for member in ("partition", "account", "reservation"):
        _require_batch_value(f"{location}.{member}", site_values.get(member, ""))
    for name, value in site_values.get("options", {}).items():
        if not _OPTION_NAME_PATTERN.fullmatch(name):
            raise UserError(
                f'{location}.options has "{escape_line(name)}"; an option is written without dashes, like qos.'
            )
        _require_batch_value(f"{location}.options.{name}", value)
    for name in site_values.get("environment", {}):
        if not _VARIABLE_NAME_PATTERN.fullmatch(name):
            raise UserError(
                f'{location}.environment has "{escape_line(name)}"; a variable name has only letters, digits and _.'
            )
    for member in ("wrapper", "sonde", "setup"):
        text = site_values.get(member, "")
        for line in (text,) if isinstance(text, str) else text:
            if escape_line(line, len(line)) != line:
                raise UserError(
                    f'{location}.{member} is "{escape_line(line)}"; write one line of printable characters.'
                )


def _require_batch_value(location: str, batch_value: str) -> None:
    try:
        quote_batch_value(batch_value or "-")
    except ValueError:
        raise UserError(
            f'{location} is "{escape_line(batch_value)}"; allowed are letters, digits and _ @ % + = : , . / - (no '
            "blanks)."
        ) from None


def _read_site_value(location: str, value_form: str, toml_value: Any) -> Any:
    if value_form == "duration":
        return _read_duration(location, toml_value)
    if value_form == "count":
        if isinstance(toml_value, bool) or not isinstance(toml_value, int) or toml_value < 1:
            raise UserError(f"{location} is {toml_value!r}; write a whole number from 1.")
        return toml_value
    if value_form == "list":
        if not isinstance(toml_value, list) or not all(isinstance(item, str) for item in toml_value):
            raise UserError(f'{location} is {toml_value!r}; write a list of texts: ["a", "b"].')
        return tuple(toml_value)
    if value_form == "table":
        if not isinstance(toml_value, dict) or any(isinstance(item, dict | list) for item in toml_value.values()):
            raise UserError(f'{location} is {toml_value!r}; write a table of texts: {{ a = "b" }}.')
        return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in toml_value.items()}
    if not isinstance(toml_value, str):
        raise UserError(f"{location} is {toml_value!r}; write a text in quotation marks.")
    return toml_value


def _read_duration(location: str, duration_value: Any) -> float:
    try:
        seconds = parse_duration(duration_value) if isinstance(duration_value, str) else 0.0
    except UnitError:
        seconds = 0.0
    if seconds < _MIN_TIME_LIMIT_S:
        raise UserError(
            f'{location} is {duration_value!r}; write a time limit of a minute or more, like "30 min" or "2 h".'
        )
    return seconds
