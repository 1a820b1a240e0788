# SPDX-License-Identifier: Apache-2.0
"""The options that the files of a route plan write, read from the files themselves, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

# Lines of a script that set something; the functions that remove and show hold the same words.
_PATTERN_BY_COMMAND = {
    "ip route": re.compile(r"^\s*ip (?:-6 )?route replace (.*)$", re.MULTILINE),
    "ip rule": re.compile(r"^\s*ip (?:-6 )?rule add (.*)$", re.MULTILINE),
    "sysctl": re.compile(r"^\s*sysctl -qw ('[^']*'|\S+)", re.MULTILINE),
}
_PAIRED_MEMBERS = {"MultiPathRoute": ("via", "dev", "weight")}
_KEYFILE_ROUTE = ("destination", "gateway", "metric")


@dataclass(frozen=True)
class WrittenOption:
    """One option of a file: `group` is its command or section, `begin` and `end` are where its value is in the text."""

    group: str
    name: str
    value: str
    begin: int
    end: int

    @property
    def key(self) -> tuple[str, str]:
        """The group and the name. Settings of `all` and of a device are one option."""
        if self.group != "sysctl":
            return self.group, self.name
        return self.group, normalize_setting_name(self.name)


def normalize_setting_name(setting_name: str) -> str:
    """A setting of one interface or of all, with DEVICE for the interface."""
    return re.sub(r"\.conf\..+\.", ".conf.DEVICE.", setting_name)


def list_written_options(texts_by_file: Mapping[str, str]) -> Iterator[WrittenOption]:
    """All options of the files of a plan."""
    for file_name, text in texts_by_file.items():
        yield from parse_written_options(file_name, text)


def parse_written_options(file_name: str, file_text: str) -> Iterator[WrittenOption]:
    """The options of one file; its name shows which kind it is."""
    name = file_name.rpartition("/")[2]
    if name.endswith(".sh"):
        yield from _parse_script(file_text)
    elif name.startswith("rule"):
        for line in re.finditer(r"^.+$", file_text, re.MULTILINE):
            yield from _parse_pairs("ip rule", line[0], line.start())
    elif name.startswith("route") and not name.endswith((".conf", ".yml")):
        for line in re.finditer(r"^(?:.*\\\n)*.+$", file_text, re.MULTILINE):
            yield from _parse_route(line[0], line.start())
    elif name.endswith(".nmconnection"):
        yield from _parse_keyfile(file_text)
    elif "sysctl.d" in file_name:
        for line in re.finditer(r"^(\S+) = (.*)$", file_text, re.MULTILINE):
            yield WrittenOption("sysctl", line[1], line[2], line.start(2), line.end(2))
    elif name.endswith(".conf"):
        yield from _parse_networkd_file(file_text)
    else:
        yield from _parse_yaml(file_text)


def _parse_script(script_text: str) -> Iterator[WrittenOption]:
    end = script_text.find("\n}\n")  # of the function that applies the plan, the first one
    for group, pattern in _PATTERN_BY_COMMAND.items():
        for command in pattern.finditer(script_text, 0, end):
            if group == "sysctl":
                quote = 1 if command[1].startswith("'") else 0
                name, _, value = command[1].strip("'").partition("=")
                begin = command.start(1) + quote + len(name) + 1
                yield WrittenOption(group, name, value, begin, begin + len(value))
            elif group == "ip rule":
                yield from _parse_pairs(group, command[1], command.start(1))
            else:
                yield from _parse_route(command[1], command.start(1))


def _parse_pairs(option_group: str, pairs_text: str, text_offset: int, prefix: str = "") -> Iterator[WrittenOption]:
    """Options as names and values in turn."""
    tokens = list(re.finditer(r"[^\s\\]+", pairs_text))
    for name, value in zip(tokens[::2], tokens[1::2], strict=False):
        yield WrittenOption(
            option_group, prefix + name[0], value[0], text_offset + value.start(), text_offset + value.end()
        )


def _parse_route(route_text: str, text_offset: int) -> Iterator[WrittenOption]:
    destination = re.match(r"\S+", route_text)
    assert destination is not None
    yield WrittenOption("ip route", "destination", destination[0], text_offset, text_offset + destination.end())
    position = destination.end()
    prefix = ""
    for part in re.split(r"(\bnexthop\b)", route_text[position:]):
        if part == "nexthop":
            prefix = "nexthop "
        else:
            yield from _parse_pairs("ip route", part, text_offset + position, prefix)
        position += len(part)


def _iterate_ini_members(file_text: str) -> Iterator[tuple[str, re.Match[str]]]:
    section = ""
    for line in re.finditer(r"^\[(.+)\]$|^([^=\n]+)=(.*)$", file_text, re.MULTILINE):
        if line[1]:
            section = line[1]
        else:
            yield section, line


def _parse_networkd_file(file_text: str) -> Iterator[WrittenOption]:
    for section, line in _iterate_ini_members(file_text):
        if names := _PAIRED_MEMBERS.get(line[2]):
            parts = list(re.finditer(r"[^@\s]+", line[3]))
            for name, part in zip(names, parts, strict=True):
                begin = line.start(3) + part.start()
                yield WrittenOption(f"[{section}]", f"{line[2]} {name}", part[0], begin, begin + len(part[0]))
        else:
            yield WrittenOption(f"[{section}]", line[2], line[3], line.start(3), line.end(3))


def _parse_keyfile(file_text: str) -> Iterator[WrittenOption]:
    for section, line in _iterate_ini_members(file_text):
        group, member = f"[{section}]" if section == "connection" else "[ip]", re.sub(r"\d+", "", line[2])
        begin = line.start(3)
        if member == "routing-rule":
            yield from _parse_pairs(group, line[3], begin, "routing-rule ")
        elif member in ("route", "route_options"):
            for index, part in enumerate(re.finditer(r"[^,]+", line[3])):
                name, sign, value = part[0].partition("=")
                start = begin + part.start() + (len(name) + 1 if sign else 0)
                text = value if sign else part[0]
                label = f"route_options {name}" if sign else f"route {_KEYFILE_ROUTE[index]}"
                yield WrittenOption(group, label, text, start, start + len(text))
        else:
            yield WrittenOption(group, member, line[3], begin, line.end(3))


def _parse_yaml(file_text: str) -> Iterator[WrittenOption]:
    """All scalars of a document: the group is its first key, or "play" for a list."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # 10 times as fast where PyYAML has it
    document = yaml.compose(file_text, Loader=loader)
    if isinstance(document, yaml.SequenceNode):
        yield from _list_scalars("play", "", document)
    elif isinstance(document, yaml.MappingNode):
        for key, node in document.value:
            yield from _list_scalars(str(key.value), "", node)


def _list_scalars(option_group: str, name: str, node: yaml.Node) -> Iterator[WrittenOption]:
    if isinstance(node, yaml.MappingNode):
        for key, member in node.value:
            yield from _list_scalars(option_group, str(key.value), member)
    elif isinstance(node, yaml.SequenceNode):
        for member in node.value:
            yield from _list_scalars(option_group, name, member)
    else:
        yield WrittenOption(option_group, name, str(node.value), node.start_mark.index, node.end_mark.index)
