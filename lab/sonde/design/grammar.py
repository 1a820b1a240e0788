# SPDX-License-Identifier: Apache-2.0
"""Forms of the names in a system file that scripts and configuration files may contain.

Generated scripts quote every value. The grammar is a second barrier, and the only one for formats that cannot quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sonde.model.errors import SystemFileError
from sonde.model.escaping import escape_line
from sonde.model.system import System
from sonde.model.system.index import PartSource
from sonde.model.system.network import Host, Interface, Network, SystemPart
from sonde.model.system.service import FileSystem, Mount
from sonde.model.system.storage import Drive, Lun, RaidGroup, Slice, Volume

# What a range adds to a name: [0-19], [1,3,5-7], [0-10:2].
_RANGE = r"\[[0-9][0-9,:-]*\]"
_LONGEST_SHOWN = 80


@dataclass(frozen=True)
class Form:
    """The form of a name: a regular expression for all of it, and the same for people."""

    pattern: re.Pattern[str]
    meaning: str


def _make_name_form(pattern: str, description: str) -> Form:
    return Form(re.compile(pattern, re.ASCII), description)


IDENTIFIER = _make_name_form(
    rf"[A-Za-z0-9](?:[A-Za-z0-9_.+-]|{_RANGE})*",
    "letters, digits and _ . + - after a letter or digit, with ranges like [01-36]",
)
GROUP = _make_name_form(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "letters, digits and _ . + - after a letter or digit")
DEVICE = _make_name_form(
    rf"(?!.*/\.\.?(?:/|$))/?[A-Za-z0-9](?:[A-Za-z0-9_.:+@=/-]|{_RANGE})*",
    "a path like /dev/disk/by-path/pci-0000:3b:00.0-nvme-1 or a name, of letters, digits and _ . : + @ = / -, with"
    " ranges like [0-19]",
)
INTERFACE = _make_name_form(
    r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "the name of a network interface: up to 15 letters, digits and _ . -"
)
ADDRESSES = _make_name_form(r"[0-9A-Fa-f.:,\[\] -]+", "IPv4 or IPv6 addresses without a zone, like 10.100.0.[91-96]")
RANGES = _make_name_form(
    r"[0-9A-Fa-f.:]+(?:/[0-9]+)?", "an address range without a zone, like 10.100.0.0/16 or fd00:100::/64"
)
NIDS = _make_name_form(
    rf"(?:[0-9A-Fa-f.:]|{_RANGE})+@[a-z][a-z0-9]*", "LNet ids like 10.151.1.[1-24]@o2ib or [0-5575]@gni"
)
PATH = _make_name_form(
    r"(?!.*/\.\.?(?:/|$))/[A-Za-z0-9_.:+@=/-]*", "an absolute path of letters, digits and _ . : + @ = / -, without .."
)
SETTING = _make_name_form(
    r"(?:CONFIG_[A-Z0-9_]+|(?:net|kernel|vm)(?:\.[A-Za-z0-9_-]+)+)", "a sysctl like net.core.rmem_max, or CONFIG_NAME"
)
VALUE = _make_name_form(
    r"[A-Za-z0-9_.:,+/-]+(?:[ \t]+[A-Za-z0-9_.:,+/-]+)*", "numbers or words of letters, digits and _ . : , + / -"
)
POOL = _make_name_form(
    r"(?!(?:mirror|raidz|draid|spare|log|cache|special|dedup)\b)[A-Za-z][A-Za-z0-9_.-]*",
    "the name of a ZFS pool: letters, digits and _ . - after a letter, and not a word of zpool such as mirror or log",
)
LUSTRE = _make_name_form(
    r"[A-Za-z0-9][A-Za-z0-9_-]*", "the name of a Lustre file system: letters, digits and _ - after a letter or digit"
)

# Members whose value reaches a script or a configuration file. Other texts reach comments and pictures only, where they
# are encoded.
_FORMS: Mapping[tuple[type[SystemPart], str], Form] = {
    (SystemPart, "id"): IDENTIFIER,
    (SystemPart, "group"): GROUP,
    **{(table, "device"): DEVICE for table in (Drive, RaidGroup, Lun, Slice, Volume)},
    (Network, "addresses"): RANGES,
    (Mount, "path"): PATH,
}
_INTERFACE_FORMS: Mapping[str, Form] = {"device": INTERFACE, "addresses": ADDRESSES, "nids": NIDS}
_FILE_SYSTEM_FORMS: Mapping[str, Form] = {"zfs": POOL, "lustre": LUSTRE}
_SETTINGS = ("net.", "kernel.", "vm.", "CONFIG_")


def check_names(system: System) -> None:
    """Raises SystemFileError for the first name that scripts cannot be made from: file, member, value, allowed form."""
    if not GROUP.pattern.fullmatch(system.id):
        raise SystemFileError(f"{system.files[0]}: {_describe_malformed_name('id', system.id, GROUP)}")
    for source in system.index.sources:
        for member, value, form in _iterate_names_of_table(source):
            if value and not form.pattern.fullmatch(value):
                raise SystemFileError(
                    f"{source.origin}: {source.kind}.{source.table.id}.{_describe_malformed_name(member, value, form)}"
                )


def _describe_malformed_name(member_name: str, name_text: str, form: Form) -> str:
    return f'{escape_line(member_name)} is "{escape_line(name_text, _LONGEST_SHOWN)}"; allowed is {form.meaning}.'


def _iterate_names_of_table(part_source: PartSource) -> Iterator[tuple[str, str, Form]]:
    """Member, value and form of every name of a table."""
    table = part_source.table
    for (kind, member), form in _FORMS.items():
        if isinstance(table, kind):
            for value in _list_texts(getattr(table, member)):
                yield member, value, form
    if isinstance(table, FileSystem) and table.kind in _FILE_SYSTEM_FORMS:
        yield "id", table.id, _FILE_SYSTEM_FORMS[table.kind]
    if isinstance(table, Host):
        for interface in table.interfaces:
            yield from _iterate_interface_names(interface)
        for name, setting in (table.settings or {}).items():
            if name.startswith(_SETTINGS):
                yield "settings", name, SETTING
                yield f"settings.{name}", str(setting), VALUE


def _iterate_interface_names(interface: Interface) -> Iterator[tuple[str, str, Form]]:
    for member, form in _INTERFACE_FORMS.items():
        for value in _list_texts(getattr(interface, member)):
            yield f"interfaces.{member}", value, form


def _list_texts(text_or_texts: str | tuple[str, ...]) -> tuple[str, ...]:
    return (text_or_texts,) if isinstance(text_or_texts, str) else text_or_texts
