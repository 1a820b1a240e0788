# SPDX-License-Identifier: Apache-2.0
"""Reads the tables and settings of a host from saved output of its tools, from scripts and from configuration files.

Accepted are ``ip -j rule``, ``ip -j route show table all``, ``ip -j addr``, ``ip -j neigh`` and ``ip -j nexthop``
(JSON), the same without -j, ``ip xfrm policy``, scripts of ``ip rule add`` and ``ip route add`` commands, rule- and
route- files, ``sysctl -a``, kernel configurations, and the files of networkd, NetworkManager, nmstate and LNet that
``sonde route plan`` writes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

from sonde.design.routes import configuration_reader
from sonde.design.routes.adapter_outputs import (
    is_ethtool_output,
    is_ibstat_output,
    parse_ethtool_outputs,
    parse_ibstat_output,
)
from sonde.design.routes.address_lines import parse_address_output
from sonde.design.routes.counter_outputs import (
    is_port_counter_output,
    is_statistics_output,
    parse_port_counters,
    parse_statistics_output,
)
from sonde.design.routes.drop_in_files import mark_orphaned_drop_ins
from sonde.design.routes.firewall_rules import Firewall
from sonde.design.routes.host_names import is_hosts_file, parse_hosts_file
from sonde.design.routes.host_tables import (
    HostTables,
    ObservedNeighbor,
    ObservedRoute,
    ObservedRule,
    is_kernel_listing,
    set_versions_of_listings,
)
from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.interface_files import is_interface_file, parse_interface_file
from sonde.design.routes.interface_names import (
    is_permanent_address_output,
    is_udev_file,
    parse_permanent_addresses,
    parse_udev_rules,
)
from sonde.design.routes.interface_profile_files import add_interface_profile
from sonde.design.routes.ip_lines import find_next_hop_types, parse_neighbor_line, parse_route_line, parse_rule_line
from sonde.design.routes.iptables_rules import is_bridge_output, is_firewall_output, parse_firewall_output
from sonde.design.routes.json_tables import parse_json_tables
from sonde.design.routes.netplan_reader import get_netplan_order
from sonde.design.routes.nft_rules import has_bridge_tables, is_nft_output, parse_nft_output
from sonde.design.routes.output_texts import split_outputs
from sonde.design.routes.queue_outputs import is_queue_output, parse_queue_output
from sonde.design.routes.script_lines import (
    IP_PROGRAMS,
    join_continued_lines,
    remove_program_and_verb,
    select_applied_lines,
    split_command_tokens,
)
from sonde.design.routes.security_policies import is_policy_listing, parse_policy_listing
from sonde.design.routes.setting_names import is_device_split, parse_setting_name
from sonde.design.routes.suse_routes import is_suse_route_file, parse_suse_routes
from sonde.design.routes.sysctl_files import list_skipped_lines, sort_sysctl_files
from sonde.design.routes.unread_files import describe_unread_kind
from sonde.model.errors import UserError
from sonde.model.file_text import MAX_OUTPUT_BYTES, read_limited_text
from sonde.model.shell import quote_command

_RULE_BEGINS = ("rule", "from", "fwmark", "pref", "to", "not", "priority", "iif")
_NEIGHBOR_STATES = ("REACHABLE", "STALE", "DELAY", "PROBE", "FAILED", "INCOMPLETE", "PERMANENT", "NOARP", "NONE")
# Lines of sysctl.d: an assignment, also to several settings (*), or a setting that those leave out (-NAME).
_SYSCTL_LINE_PATTERN = re.compile(r"-?[\w.\-/*]+\s*=|-[\w.\-/]+\s*$")
_SYSCTL_FILE_PATTERN = re.compile(r"^-?\w+[./][\w.\-/*]+\s*=", re.MULTILINE)
_UNKNOWN_KIND_PROBLEM = (
    "holds no rule, route, address, neighbor, sysctl or kernel option; give saved output of ip, sysctl or"
)
# The picture that sonde route plan writes beside its files.
_PICTURE_PATTERN = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<svg\b")
# Files of network-scripts: rule-ib0, rule6-ib0, route-ib0, route6-ib0.
_NETWORK_SCRIPT_PATTERN = re.compile(r"(?:rule|route)(6?)-")
# Listings that are empty on some hosts, by the names of their files.
_EMPTY_LISTINGS = (
    (re.compile("neigh|arp", re.IGNORECASE), HostTables(neighbors=())),
    (re.compile("xfrm|ipsec", re.IGNORECASE), HostTables(security_policies=())),
    (re.compile("next-?hop", re.IGNORECASE), HostTables()),
    (
        re.compile("nft|iptables|ip6tables|firewall", re.IGNORECASE),
        HostTables(firewalls=(Firewall(4, (), ()), Firewall(6, (), ()))),
    ),
)


@dataclass(frozen=True)
class HostSources:
    """Tables that are in effect on a host, and those that its configuration files set at its next start (None: not
    given)."""

    live: HostTables
    configured: HostTables | None = None


def read_host_tables(table_files: Iterable[Path]) -> HostTables:
    """All files together; the content of each file shows which kind it is. Raises UserError for a file of no known
    kind."""
    return _merge_all([_read_file(file) for file in table_files])


def read_host_sources(table_files: Iterable[Path], required_files: Collection[Path] | None = None) -> HostSources:
    """Returns the tables in outputs of programs, and those in configuration files; if only the latter are given, they
    are used for both.

    Assignments in a file *.conf are configuration if another file has output of sysctl, and LNet without states if
    another file has output of lnetctl. The names of *.conf files tell their order, as at the start.

    Raises UserError for one of the `required_files` (None: all) that is not understood, and when no file is.
    """
    live: list[HostTables] = []
    configured: list[HostTables] = []
    assignments: list[tuple[Path, HostTables]] = []
    lnet_files: list[HostTables] = []
    others: list[HostTables] = []
    all_tables, unread = _read_files(table_files, required_files)
    for file, tables in mark_orphaned_drop_ins(all_tables):
        if tables.pictures:
            others.append(tables)
        elif tables.has_lnet and not tables.has_lnet_states:
            lnet_files.append(tables)
        elif tables.formats:
            configured.append(tables)
        else:
            if tables.settings is not None and file.suffix == ".conf":
                setting_files = {
                    name: (_describe_line(file.name, tables.setting_lines.get(name)),) for name in tables.settings
                }
                assignments.append((file, replace(tables, setting_files=setting_files)))
            else:
                live.append(tables)
    (configured if any(tables.has_lnet for tables in live) else live).extend(lnet_files)
    ordered_assignments = sort_sysctl_files(assignments)
    others.append(HostTables(unread_files=unread))
    configured.sort(key=get_netplan_order)
    if not live:
        return HostSources(_merge_all([*configured, *ordered_assignments, *others]))
    has_sysctl_output = any(tables.settings is not None for tables in live)
    (configured if has_sysctl_output else live).extend(ordered_assignments)
    return HostSources(_merge_all([*live, *others]), _merge_all(configured) if configured else None)


def _read_files(
    table_files: Iterable[Path], required_files: Collection[Path] | None
) -> tuple[list[tuple[Path, HostTables]], tuple[str, ...]]:
    """The tables of each file, and the reasons why files were not understood. Raises UserError for required files
    (None: all) and when no file is understood."""
    all_tables: list[tuple[Path, HostTables]] = []
    reasons: list[str] = []
    for file in table_files:
        try:
            all_tables.append((file, _read_file(file)))
        except UserError as reason:
            if required_files is None or file in required_files:
                raise
            reasons.append(str(reason))
    if reasons and not all_tables:
        raise UserError(reasons[0])
    return all_tables, tuple(reasons)


def _read_file(table_file: Path) -> HostTables:
    """The tables of one file; of one with line ends of Windows the reason why its program refuses it, if it does."""
    text = _read_text(table_file)
    has_carriage_returns = any(line.endswith("\r") and _has_content(line) for line in text.split("\n"))
    tables = parse_host_tables(text.replace("\r\n", "\n").replace("\r", "\n"), table_file.name)
    if not has_carriage_returns or (effect := _describe_refused_lines(tables)) is None:
        return tables
    profile = InactiveProfile(
        table_file.name, "line ends of Windows", effect, quote_command(("sed", "-i", "s/\\r$//", table_file.name))
    )
    return replace(tables, inactive_profiles=(*tables.inactive_profiles, profile))


def _describe_refused_lines(tables: HostTables) -> str | None:
    """The effect of carriage returns at the ends of lines; None where the program that reads the file takes them for
    white space, as systemd, NetworkManager, sysctl and readers of YAML do."""
    if tables.formats == ("iproute2",):
        return "the shell hands CR to ip as part of the last argument, and ip refuses that"
    if tables.formats != ("network-scripts",):
        return None
    if tables.rules or tables.routes:
        lost = "rules" if tables.rules else "routes"
        return f"ip refuses its lines, whose last arguments end in CR, and then there are none of its {lost}"
    return "the values of its variables end in CR, and the interface is not configured"


def _read_text(table_file: Path) -> str:
    try:
        return read_limited_text(table_file, MAX_OUTPUT_BYTES, newline="")
    except (OSError, UnicodeDecodeError) as reason:
        raise UserError(
            f"{table_file} cannot be read ({reason}); give saved output of ip, sysctl or a kernel .config."
        ) from None


def _merge_all(host_tables: Sequence[HostTables]) -> HostTables:
    return reduce(HostTables.merge_tables, set_versions_of_listings(host_tables), HostTables())


def parse_host_tables(table_text: str, file_name: str) -> HostTables:
    """One text of any kind, or several outputs of ip and sysctl one after the other; `file_name` is for messages, and
    shows of what kind an empty listing is. Raises UserError."""
    if _PICTURE_PATTERN.match(table_text):
        return HostTables(pictures=(file_name,))
    if not table_text.strip(" \t\r\n[]"):
        empty_listing = next((tables for form, tables in _EMPTY_LISTINGS if form.search(file_name)), None)
        if empty_listing is not None:
            return empty_listing
    try:
        tables = _merge_all([_parse_tables_by_kind(text, file_name) for text in split_outputs(table_text)])
        return add_interface_profile(_mark_network_script(tables, file_name), table_text, file_name)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as reason:
        raise UserError(
            f"{file_name} holds a rule or route that cannot be read ({type(reason).__name__}: {reason});"
            " give saved output of ip, sysctl or .config as it is."
        ) from None


def _mark_network_script(tables: HostTables, file_name: str) -> HostTables:
    """The tables of a rule- or route- file of network-scripts as those of a configuration file, whose name shows the IP
    version of its rules. Listings of the kernel may have such a name too."""
    match = _NETWORK_SCRIPT_PATTERN.match(file_name.rpartition("/")[2])
    is_listing = any(rule.table == "local" for rule in tables.rules or ()) or is_kernel_listing(tables.routes or ())
    if match is None or is_listing or not (tables.rules or tables.routes):
        return tables
    version = 6 if match[1] else 4
    rules = tuple(replace(rule, version=rule.version or version) for rule in tables.rules or ())
    return replace(tables, rules=rules or tables.rules, formats=("network-scripts",))


def _describe_bridge_rules(file_name: str) -> str:
    return f"{file_name} has rules for bridged packets, which no check reads"


def _parse_tables_by_kind(table_text: str, file_name: str) -> HostTables:
    stripped = table_text.strip()
    if configuration_reader.is_network_configuration(table_text):
        return configuration_reader.parse_network_configuration(table_text, file_name)
    if is_interface_file(table_text):
        return parse_interface_file(table_text, file_name)
    if is_suse_route_file(table_text, file_name):
        return parse_suse_routes(table_text, file_name)
    if not is_udev_file(table_text) and (kind := describe_unread_kind(table_text, file_name)):
        raise UserError(f"{file_name} is {kind}, which no check reads.")
    if stripped.startswith(("[", "{")):
        return parse_json_tables(stripped, file_name)
    if is_bridge_output(table_text, file_name):
        return HostTables(unread_files=(_describe_bridge_rules(file_name),))
    if is_firewall_output(table_text):
        return HostTables(firewalls=(parse_firewall_output(table_text, file_name),))
    if is_nft_output(table_text):
        unread = (_describe_bridge_rules(file_name),) if has_bridge_tables(table_text) else ()
        return HostTables(firewalls=tuple(parse_nft_output(table_text, file_name)), unread_files=unread)
    if is_hosts_file(table_text):
        return HostTables(host_names=tuple(parse_hosts_file(table_text, file_name)))
    if is_ethtool_output(table_text):
        return HostTables(adapters=parse_ethtool_outputs(table_text))
    if is_statistics_output(table_text):
        return HostTables(adapters=parse_statistics_output(table_text, file_name))
    if is_port_counter_output(table_text):
        return HostTables(infiniband_counters=parse_port_counters(table_text))
    if is_permanent_address_output(table_text):
        return HostTables(permanent_addresses=parse_permanent_addresses(table_text, file_name))
    if is_udev_file(table_text):
        return HostTables(interface_names=tuple(parse_udev_rules(table_text, file_name)), formats=("udev",))
    if is_ibstat_output(table_text):
        return HostTables(infiniband_ports=tuple(parse_ibstat_output(table_text)))
    if is_queue_output(table_text):
        return HostTables(queues=tuple(parse_queue_output(table_text, file_name)))
    if is_policy_listing(table_text):
        return HostTables(security_policies=parse_policy_listing(table_text, file_name))
    if re.search(r"^(# )?CONFIG_\w+", table_text, re.MULTILINE):
        return HostTables(options=_parse_kernel_options(table_text))
    if _SYSCTL_FILE_PATTERN.search(stripped):
        lines = [line for line in table_text.splitlines() if _has_content(line)]
        skipped = tuple(list_skipped_lines(lines, file_name))
        if all(_SYSCTL_LINE_PATTERN.match(line) for line in lines if line not in [each.line for each in skipped]):
            assignments = (line.partition("=") for line in lines if _SYSCTL_LINE_PATTERN.match(line))
            return replace(
                _make_setting_tables(assignments),
                setting_lines=_number_settings(table_text),
                inactive_profiles=tuple(each.profile for each in skipped),
            )
    if re.search(r"^\d+: \S+: <[A-Z,_\d-]*>", table_text, re.MULTILINE):
        return parse_address_output(table_text)
    return _parse_ip_lines(table_text, file_name)


def _describe_line(file_name: str, number: int | None) -> str:
    return file_name if number is None else f"{file_name}, line {number}"


def _number_settings(file_text: str) -> dict[str, int]:
    """The number of the last line that assigns each setting."""
    lines = enumerate(file_text.splitlines(), start=1)
    return {
        parse_setting_name(line.partition("=")[0].strip().removeprefix("-")): number
        for number, line in lines
        if "=" in line and _has_content(line)
    }


def _make_setting_tables(name_sign_and_value: Iterable[tuple[str, str, str]]) -> HostTables:
    """Settings of assignments: the name, "=" and the value. A `-` before the name lets sysctl go on after an error."""
    settings, unapplied = {}, []
    for written_name, separator, value in name_sign_and_value:
        name = written_name.strip().removeprefix("-")
        if not separator:
            settings[f"-{parse_setting_name(name)}"] = ""
        elif is_device_split(name):
            unapplied.append(name)
        else:
            settings[parse_setting_name(name)] = " ".join(value.split())
    return HostTables(settings=settings, unapplied_settings=tuple(unapplied))


@dataclass
class _LineTables:
    """Tables collected from the lines of a text so far."""

    rules: list[ObservedRule] = field(default_factory=list)
    routes: list[ObservedRoute] = field(default_factory=list)
    neighbors: list[ObservedNeighbor] = field(default_factory=list)
    assignments: list[tuple[str, str, str]] = field(default_factory=list)


def _parse_ip_lines(table_text: str, file_name: str) -> HostTables:
    tables = _LineTables()
    is_script = bool(re.search(r"^#!|^[ \t]*apply\(\) \{", table_text, re.MULTILINE))
    for number, line in join_continued_lines(select_applied_lines(table_text)):
        origin = f"{file_name}, line {number}"
        tokens = split_command_tokens(line)
        if tokens and (tokens[0] == "sysctl" or tokens[0].endswith("/sysctl")):
            tables.assignments += [
                token.partition("=") for token in tokens[1:] if "=" in token and not token.startswith("-")
            ]
        elif is_script and (not tokens or tokens[0] not in IP_PROGRAMS):
            continue
        else:
            _parse_ip_line(tables, tokens, line, origin)
    next_hop_types = find_next_hop_types(table_text)
    is_empty = not (tables.rules or tables.routes or tables.neighbors or tables.assignments or next_hop_types)
    if is_empty and not (is_script and "apply()" in table_text):
        raise UserError(f"{file_name} {_UNKNOWN_KIND_PROBLEM} .config.")
    settings = _make_setting_tables(tables.assignments) if tables.assignments else HostTables()
    # one text may list routes twice: `ip route show table all` prints those of IPv6 too
    routes = {replace(route, origin=""): route for route in reversed(tables.routes)}
    return replace(
        settings,
        formats=("iproute2",) if is_script else (),
        next_hop_types=next_hop_types,
        rules=tuple(tables.rules) or None,
        routes=tuple(reversed(routes.values())) or None,
        neighbors=tuple(tables.neighbors) or None,
    )


def _parse_ip_line(line_tables: _LineTables, tokens: list[str], script_line: str, output_origin: str) -> None:
    is_command = bool(tokens) and tokens[0] in IP_PROGRAMS
    version = 6 if is_command and "-6" in tokens[:3] else None
    arguments = remove_program_and_verb(tokens)
    if re.match(r"\d+:", script_line) or (arguments and arguments[0] in _RULE_BEGINS):
        rule = parse_rule_line(arguments[1:] if arguments[0] == "rule" else arguments, script_line, output_origin)
        line_tables.rules.append(replace(rule, version=version or 4) if is_command else rule)
    elif arguments and arguments[-1] in _NEIGHBOR_STATES and "dev" in arguments:
        line_tables.neighbors.append(parse_neighbor_line(arguments))
    elif arguments:
        route = parse_route_line(arguments[1:] if arguments[0] == "route" else arguments, output_origin, version)
        if route is not None:
            line_tables.routes.append(route)


def _has_content(script_line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(script_line.strip()) and not script_line.lstrip().startswith(("#", ";"))


def _parse_kernel_options(config_text: str) -> dict[str, str]:
    """CONFIG_ lines of a kernel configuration; an option that is not set is n."""
    options = dict(re.findall(r"^(CONFIG_\w+)=(\S+)", config_text, re.MULTILINE))
    return options | dict.fromkeys(re.findall(r"^# (CONFIG_\w+) is not set", config_text, re.MULTILINE), "n")
