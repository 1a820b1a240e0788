# SPDX-License-Identifier: Apache-2.0
"""Parses tools of RAID adapters and enclosures: storcli and perccli, ssacli, sg_ses."""

from __future__ import annotations

import re

from sonde.design.layout.live.component_output import store_components
from sonde.design.layout.live.observations import ObservedComponent, ObservedStorage

# The forms that identify these outputs.
STORCLI_FORM = r"^CLI Version = |^(?:VD LIST|PD LIST) :$"
SSACLI_FORM = r"^(?:HPE? )?(?:Smart Array|Smart HBA|HPE? \w+).* in Slot \d+|^ +Cache Board Present:"
SES_FORM = r"^Enclosure Status diagnostic page:"
_VOLUME_PATTERN = re.compile(
    r"^(\d+/\d+) +(\w+) +(\w+) +(\w+) +(\w+) +(\w+) +\S+ +\w+ +[\d.]+ [KMGTP]B *(.*)$", re.MULTILINE
)
_DRIVE_PATTERN = re.compile(r"^(\d* ?:\d+) +\d+ +(\w+) +(\d+|-|F) +[\d.]+ [KMGTP]B +(\w+) +(\w+) ", re.MULTILINE)
_PACK_PATTERN = re.compile(r"^(?:BBU|Cachevault)_Info :$[\s=-]*^Model.*$[\s-]*^(\S+) +(.+?) +\S+ ?C? ", re.MULTILINE)
_COUNT_PATTERN = re.compile(
    r"^(?:Drive (?P<drive>/c\d+(?:/e\d+)?/s\d+)(?: -| State|$|:)"
    r"|(?P<name>Media Error Count|Predictive Failure Count|S\.M\.A\.R\.T alert flagged by drive) = (?P<value>\w+))",
    re.MULTILINE,
)
_COUNT_NAMES = {"Media Error Count": "media_errors", "Predictive Failure Count": "predictive_failures",
                "S.M.A.R.T alert flagged by drive": "smart_alert"}  # fmt: skip
_STATUS_PATTERN = re.compile(r"status: ([\w -]+)$")


def read_storcli(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses storcli (perccli) /call show all, and /call/eall/sall show all."""
    components = []
    for section in re.split(r"^(?=Controller = \d+$)", output_text, flags=re.MULTILINE):
        number = re.search(r"^Controller = (\d+)$", section, re.MULTILINE)
        adapter = f"c{number[1]}" if number else "c0"
        for volume, level, state, access, _, cache, title in _VOLUME_PATTERN.findall(section):
            values = {"level": level, "state": state, "access": access, "cache": cache}
            name = f"{adapter} v{volume}" + f" ({title.strip()})" * bool(title.strip())
            components.append(ObservedComponent("RAID volume", name, values, output_origin))
        for slot, state, group, _, _ in _DRIVE_PATTERN.findall(section):
            values = {"state": state, "group": group}
            components.append(ObservedComponent("RAID drive", f"{adapter} {slot}", values, output_origin))
        for model, state in _PACK_PATTERN.findall(section):
            values = {"state": state.strip()}
            components.append(ObservedComponent("cache battery", f"{adapter} {model}", values, output_origin))
        foreign = re.search(r"^Foreign Config(?:uration)? *(?:=|:) *(Yes|Present|[1-9]\d*)\s*$", section, re.MULTILINE)
        if foreign:
            components.append(ObservedComponent("RAID adapter", adapter, {"foreign": foreign[1]}, output_origin))
    drive = ""
    for match in _COUNT_PATTERN.finditer(output_text):
        drive = match["drive"] or drive
        if match["name"]:
            values = {_COUNT_NAMES[match["name"]]: match["value"]}
            components.append(ObservedComponent("RAID drive", drive, values, output_origin))
    return store_components(components, output_origin)


def read_ssacli(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses ssacli controller all show config detail: the states of controller, cache, volumes and drives."""
    components = []
    adapter, kind, name = "", "RAID adapter", ""
    for line in output_text.splitlines():
        text = line.strip()
        if match := re.match(r"(\S.*?) in Slot (\w+)", line):
            adapter, kind, name = f"slot {match[2]}", "RAID adapter", f"slot {match[2]}"
        elif match := re.match(r"(Logical Drive): (\d+)|(physicaldrive) (\S+)$", text):
            kind = "RAID volume" if match[1] else "RAID drive"
            name = f"{adapter} {'volume ' + match[2] if match[1] else match[4]}"
        elif re.match(r"Array: |SEP |Unassigned|Expander |Enclosure ", text):
            kind, name = "other", f"{adapter} {text}"
        elif (match := re.match(r"([\w/ ]+?): +(\S.*)$", text)) and kind != "other":
            components.append(ObservedComponent(kind, name, {match[1]: match[2].strip()}, output_origin))
    return store_components(components, output_origin)


def read_sg_ses(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses sg_ses --page=es: the status of each element of an enclosure."""
    components = []
    box = output_origin.rpartition(" ")[2]
    kind, name = "", ""
    for line in output_text.splitlines():
        text = line.strip()
        if match := re.match(r"Element type: ([^,]+)", text):
            kind, name = match[1], ""
        elif match := re.match(r"Element (\d+) descriptor:", text):
            name = f"{box} {kind} {match[1]}"
        elif text.startswith("Overall descriptor:"):
            name = ""
        elif name and (match := _STATUS_PATTERN.search(text)):
            components.append(ObservedComponent("enclosure element", name, {"status": match[1]}, output_origin))
    return store_components(components, output_origin)
