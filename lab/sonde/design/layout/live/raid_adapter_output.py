# SPDX-License-Identifier: Apache-2.0
"""Parses tools of RAID adapters and enclosures: ssacli and sg_ses."""

from __future__ import annotations

import re

from sonde.design.layout.live.component_output import store_components
from sonde.design.layout.live.observations import ObservedComponent, ObservedStorage

# The forms that identify these outputs.
SSACLI_FORM = r"^\S[^\n]* in Slot \d+\w*\b|^ +Cache Board Present:"
SES_FORM = r"^Enclosure [Ss]tatus diagnostic page:"
_STATUS_PATTERN = re.compile(r"Predicted failure=(\d).*status: ([\w -]+)$|status: ([\w -]+)$")
# logicaldrive 1 (838.3 GB, RAID 1+0, OK); physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SAS, 300 GB, OK, spare)
_SHORT_PATTERN = re.compile(
    r"(?:logicaldrive (\d+) \([^,]+, [^,]+|physicaldrive (\S+) \([^,]+, [^,]+, [^,]+), ([^,)]+)[^)]*\)"
)
_OTHER_PATTERN = re.compile(
    r"Array:|array \w|SEP |Unassigned|unassigned|Expander |Enclosure |(?:Internal|External) Drive Cage|Port Name:"
)


def read_ssacli(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses ssacli controller all show config, with detail or without: the states of controller, cache, volumes and
    drives."""
    components = []
    adapter, kind, name = "", "RAID adapter", ""
    for line in output_text.splitlines():
        text = line.strip()
        if match := re.match(r"(\S.*?) in Slot (\w+)", line):
            adapter, kind, name = f"slot {match[2]}", "RAID adapter", f"slot {match[2]}"
        elif match := _SHORT_PATTERN.fullmatch(text):
            short_kind = "RAID volume" if match[1] else "RAID drive"
            short_name = f"{adapter} {'volume ' + match[1] if match[1] else match[2]}"
            components.append(ObservedComponent(short_kind, short_name, {"Status": match[3]}, output_origin))
        elif match := re.match(r"(Logical Drive): (\d+)|(physicaldrive) (\S+)$", text):
            kind = "RAID volume" if match[1] else "RAID drive"
            name = f"{adapter} {'volume ' + match[2] if match[1] else match[4]}"
        elif _OTHER_PATTERN.match(text):
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
            values = {"status": match[2] or match[3], "predicted_failure": match[1] or "0"}
            components.append(ObservedComponent("enclosure element", name, values, output_origin))
    return store_components(components, output_origin)
