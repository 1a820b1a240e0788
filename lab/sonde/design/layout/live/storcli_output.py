# SPDX-License-Identifier: Apache-2.0
"""Parses storcli, perccli and their second generation (storcli2, perccli2), as text and as JSON (with J at the end of
the command)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.design.layout.live.component_output import store_components
from sonde.design.layout.live.observations import ObservedComponent, ObservedStorage
from sonde.model.documents import parse_json

# The forms that identify these outputs.
STORCLI_FORM = r"^CLI Version = |^(?:VD LIST|PD LIST|Virtual Drives) :|^DG/VD +TYPE |^EID:Slt +\w+ +State "
STORCLI_JSON_FORM = r'^[ \t]*\{\s*"Controllers"\s*:'
_COUNT_NAMES = {"Media Error Count": "media_errors", "Predictive Failure Count": "predictive_failures",
                "S.M.A.R.T alert flagged by drive": "smart_alert"}  # fmt: skip
_ADAPTER_NAMES = {name: name for name in ("Controller Status", "Memory Correctable Errors",
                  "Memory Uncorrectable Errors", "Any Offline VD Cache Preserved")} | {
                      "Foreign Config": "foreign", "Foreign Configuration": "foreign"}  # fmt: skip
_ROW_NOUNS = {"Virtual Drives": "RAID volume", "Physical Drives": "RAID drive"}
_HEADERS = ("DG/VD", "EID:Slt", "Model", "Type")
_SIZE_PATTERN = re.compile(r"[\d.]+ [KMGTP]i?B")
_DRIVE_PATTERN = re.compile(r"Drive /c(\d+)(?:/e(\d+))?/s(\d+)(?: -| State| :|:|$)")


def read_storcli(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses storcli (perccli) /call show all, and /call/eall/sall show all."""
    components, counts = list[ObservedComponent](), dict[tuple[str, str], int]()
    adapter, drive, columns, lines = "c0", "", list[str](), 0
    for line in output_text.splitlines():
        tokens = line.split()
        name, _, value = (part.strip() for part in line.partition(" = "))
        if tokens and tokens[0] in _HEADERS and {"State", "SubType"} & set(tokens):
            columns, lines = tokens, 0
        elif columns and tokens and set(line.strip()) == {"-"}:
            lines += 1
            columns = columns if lines < 2 else []
        elif columns and lines:
            components += _make_components(adapter, _name_columns(columns, tokens), output_origin)
        elif name == "Controller" and value.isdigit():
            adapter, drive = f"c{value}", ""
        elif match := _DRIVE_PATTERN.match(line.strip()):
            adapter, drive = f"c{match[1]}", f"c{match[1]} {match[2] or ''}:{match[3]}"
        elif name in _COUNT_NAMES and drive:
            components.append(ObservedComponent("RAID drive", drive, {_COUNT_NAMES[name]: value}, output_origin))
        elif name in _ADAPTER_NAMES:
            components.append(ObservedComponent("RAID adapter", adapter, {_ADAPTER_NAMES[name]: value}, output_origin))
        elif name in _ROW_NOUNS and value.isdigit():
            counts[adapter, name] = int(value)
    return _finish(components, counts, output_origin)


def read_storcli_json(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the same outputs with J at the end of the command."""
    components, counts = list[ObservedComponent](), dict[tuple[str, str], int]()
    for controller in parse_json(output_text)["Controllers"]:
        adapter = f"c{controller['Command Status'].get('Controller', 0)}"
        for key, value in _iterate_members(controller.get("Response Data") or {}):
            match = _DRIVE_PATTERN.match(key)
            if isinstance(value, list):
                for row in (row for row in value if isinstance(row, dict)):
                    components += _make_components(adapter, {name: str(cell) for name, cell in row.items()},
                                                   output_origin)  # fmt: skip
            elif match and isinstance(value, dict):
                values = {_COUNT_NAMES[name]: str(cell) for name, cell in value.items() if name in _COUNT_NAMES}
                name = f"c{match[1]} {match[2] or ''}:{match[3]}"
                components += [ObservedComponent("RAID drive", name, values, output_origin)] if values else []
            elif key in _ADAPTER_NAMES:
                components.append(ObservedComponent("RAID adapter", adapter, {_ADAPTER_NAMES[key]: str(value)},
                                                    output_origin))  # fmt: skip
            elif key in _ROW_NOUNS and isinstance(value, int):
                counts[adapter, key] = value
    return _finish(components, counts, output_origin)


def _iterate_members(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All members of an object and of the objects in it."""
    for key, value in document.items():
        yield key, value
        if isinstance(value, dict):
            yield from _iterate_members(value)


def _name_columns(columns: Sequence[str], tokens: Sequence[str]) -> dict[str, str]:
    """The cells of a row by column. A size is two words; the last column of a volume, its name, may be several."""
    size = columns.index("Size") if "Size" in columns else len(columns)
    if size < len(columns) and not _SIZE_PATTERN.fullmatch(" ".join(tokens[size : size + 2])):
        return {}
    row = dict(zip(columns[:size], tokens, strict=False))
    return (
        row
        | dict(zip(columns[size + 1 :], tokens[size + 2 :], strict=False))
        | ({"Name": " ".join(tokens[size + 2 :])} if "Name" in columns else {})
    )


def _make_components(adapter: str, row: Mapping[str, str], output_origin: str) -> list[ObservedComponent]:
    """The volume, drive or battery of one row; none for rows of other tables."""
    state = row.get("State", "")
    if "DG/VD" in row:
        title = row.get("Name", "").strip()
        name = f"{adapter} v{row['DG/VD']}" + f" ({title})" * bool(title)
        values = {"level": row.get("TYPE", ""), "access": row.get("Access", ""),
                  "cache": row.get("Cache", row.get("CurrentCache", "")).replace(",", "")}  # fmt: skip
        kind, values["group"] = "RAID volume", row["DG/VD"].partition("/")[0]
    elif "EID:Slt" in row:
        kind, name = "RAID drive", f"{adapter} {row['EID:Slt'].strip()}"
        values = {"group": row.get("DG", ""), "medium": row.get("Med", "")}
        if "Status" in row:  # the second generation prints its use as State
            state, values["configuration"] = row["Status"], state
    elif "MfgDate" in row or "RetentionTime" in row:
        kind, name, values = "cache battery", f"{adapter} {row.get('Model', 'battery')}", {}
    elif "SubType" in row and "Status" in row:  # the energy pack of the second generation
        kind, name, values = "cache battery", f"{adapter} {row['SubType']}", {}
        state = row["Status"]
    else:
        return []
    return [ObservedComponent(kind, name, {"state": state, **values}, output_origin)]


def _finish(
    components: Sequence[ObservedComponent], counts: Mapping[tuple[str, str], int], output_origin: str
) -> ObservedStorage:
    """The observation, with the medium of the drives of each volume, and rows that were printed in another form."""
    media: dict[tuple[str, str], set[str]] = {}
    for each in components:
        if each.kind == "RAID drive" and each.attributes.get("medium"):
            media.setdefault((each.name.split()[0], each.attributes["group"]), set()).add(each.attributes["medium"])
    stored = [
        replace(each, attributes={**each.attributes, "medium": " ".join(sorted(
            media.get((each.name.split()[0], each.attributes["group"]), ())))})
        if each.kind == "RAID volume" else each for each in components
    ]  # fmt: skip
    unknown = []
    for (adapter, noun), count in counts.items():
        rows = {each.name for each in components if each.kind == _ROW_NOUNS[noun] and each.attributes.get("state")
                and each.name.split()[0] == adapter}  # fmt: skip
        if len(rows) < count:
            unknown.append(f"{count - len(rows)} of the {count} {noun} of {adapter}: {output_origin} has no row of them"
                           " in a known form")  # fmt: skip
    return replace(store_components(stored, output_origin), unknown=tuple(unknown))
