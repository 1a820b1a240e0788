# SPDX-License-Identifier: Apache-2.0
"""What a centre asks of its jobs: scheduler, launcher, partition, account, modules, environment.

Sites stand in ``/etc/sonde/sites.toml``, then in ``~/.config/sonde/sites.toml`` ($XDG_CONFIG_HOME), then in the file
that $SONDE_SITES names; a later file replaces a site of an earlier one by its name.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sonde.launch.launchers.list import names as launcher_names
from sonde.model.errors import UnitError, UserError, suggestion
from sonde.model.units import parse_duration

SCHEDULERS = ("slurm", "pbs", "pbs_classic", "lsf")
VARIABLE = "SONDE_SITES"


@dataclass(frozen=True)
class Site:
    """One table of a sites file. `time_s` is the time limit of a job unless it says otherwise, seconds."""

    name: str
    scheduler: str
    launcher: str
    origin: str
    title: str = ""
    launcher_args: str = ""
    partition: str = ""
    account: str = ""
    reservation: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # further ones of the scheduler, by name
    modules: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    setup: Sequence[str] = ()  # lines of shell before sonde is started
    wrapper: str = ""  # words before the command
    sonde: str = ""  # the command on the nodes, if it is not the one that submits
    archive: str = ""
    system: str = ""  # system file of this machine
    nodes: int = 1
    tasks_per_node: int | None = None
    time_s: float = 1800.0


# Member -> (what it is written as, what it says), for the reader, its complaints and the documentation.
MEMBERS: Mapping[str, tuple[str, str]] = {
    "title": ("text", "words for people"),
    "scheduler": ("text", f"who gives out nodes: {', '.join(SCHEDULERS)}"),
    "launcher": ("text", "what starts processes inside a job, as `--launcher` takes it"),
    "launcher_args": ("text", "further arguments for it"),
    "partition": ("text", "partition or queue"),
    "account": ("text", "account or project"),
    "reservation": ("text", "reservation"),
    "options": ("table", 'further options of the scheduler: `{ qos = "debug", constraint = "cpu" }`'),
    "modules": ("list", "loaded before, in this order"),
    "environment": ("table", "variables to set"),
    "setup": ("list", "lines of shell before the command"),
    "wrapper": ("text", "words before the command"),
    "sonde": ("text", "the command on the nodes, if it is not the one that submits"),
    "archive": ("text", "folder of runs, on storage that all nodes see"),
    "system": ("text", "system file of the machine: sums of targets by server and unit, parts of experiments"),
    "nodes": ("count", "nodes of a job (1)"),
    "tasks_per_node": ("count", "tasks of a node"),
    "time": ("duration", 'time limit of a job ("30 min")'),
}


def site_files(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Where sites may stand, the last one wins."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "/")) / ".config")
    named = environment.get(VARIABLE)
    return [Path("/etc/sonde/sites.toml"), Path(home) / "sonde" / "sites.toml", *([Path(named)] if named else [])]


def read_sites(files: Sequence[Path] | None = None) -> dict[str, Site]:
    """All sites by name. Raises UserError for a file that cannot be read as one; a file that is not there has none,
    unless $SONDE_SITES names it."""
    found: dict[str, Site] = {}
    for path in site_files() if files is None else files:
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if str(path) == os.environ.get(VARIABLE):
                raise UserError(f"${VARIABLE} names {path}, which is not there.") from None
            continue
        except (OSError, ValueError) as reason:
            raise UserError(f"The sites file {path} cannot be read: {reason}.") from None
        for name, table in document.items():
            found[name] = _site(name, table, path)
    return found


def site_of(name: str | None) -> Site:
    """The site of that name, or the only one. Raises UserError when there is none, or several and none was named."""
    sites = read_sites()
    if not sites:
        where = " or ".join(str(path) for path in site_files())
        raise UserError(
            f'No site is described; write one into {where}: [mysite] scheduler = "slurm", launcher = "srun".'
        )
    if name is None and len(sites) == 1:
        return next(iter(sites.values()))
    if name is None:
        raise UserError(f"Several sites are described; name one with --site: {', '.join(sites)}.")
    if name not in sites:
        raise UserError(f'There is no site "{name}"; described are {", ".join(sites)}.{suggestion(name, list(sites))}')
    return sites[name]


def _site(name: str, table: Any, path: Path) -> Site:
    where = f"{path}: {name}"
    if not isinstance(table, dict):
        raise UserError(f'{where} is {table!r}; a site is a table: [{name}] scheduler = "slurm", launcher = "srun".')
    for member in table:
        if member not in MEMBERS:
            raise UserError(f'{where} has no member "{member}".{suggestion(member, list(MEMBERS))}')
    for member in ("scheduler", "launcher"):
        if member not in table:
            raise UserError(f"{where} lacks {member}; it says {MEMBERS[member][1].replace('`', '')}.")
    values = {member: _value(f"{where}.{member}", MEMBERS[member][0], value) for member, value in table.items()}
    for member, known in (("scheduler", SCHEDULERS), ("launcher", launcher_names())):
        if values[member] not in known:
            near = suggestion(values[member], list(known))
            raise UserError(f'{where}.{member} is "{values[member]}"; known are {", ".join(known)}.{near}')
    if "time" in values:
        values["time_s"] = values.pop("time")
    assert set(values) <= {one.name for one in fields(Site)}
    return Site(name=name, origin=str(path), **values)


def _value(where: str, form: str, value: Any) -> Any:
    if form == "duration":
        return _duration(where, value)
    if form == "count":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{where} is {value!r}; write a whole number from 1.")
        return value
    if form == "list":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise UserError(f'{where} is {value!r}; write a list of texts: ["a", "b"].')
        return tuple(value)
    if form == "table":
        if not isinstance(value, dict) or any(isinstance(one, dict | list) for one in value.values()):
            raise UserError(f'{where} is {value!r}; write a table of texts: {{ a = "b" }}.')
        return {key: str(one).lower() if isinstance(one, bool) else str(one) for key, one in value.items()}
    if not isinstance(value, str):
        raise UserError(f"{where} is {value!r}; write a text in quotation marks.")
    return value


def _duration(where: str, value: Any) -> float:
    try:
        seconds = parse_duration(value) if isinstance(value, str) else 0.0
    except UnitError:
        seconds = 0.0
    if seconds < 60:
        raise UserError(f'{where} is {value!r}; write a time limit of a minute or more, like "30 min" or "2 h".')
    return seconds
