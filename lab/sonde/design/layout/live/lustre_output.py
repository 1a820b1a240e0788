# SPDX-License-Identifier: Apache-2.0
"""Parses output of Lustre about its targets: tunefs.lustre --dryrun, and lfs df."""

from __future__ import annotations

import re

from sonde.design.layout.live.device_output import read_device_from_origin
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.model.errors import UserError

# The forms that identify these outputs.
TUNEFS_FORM = r"^Lustre FS:(?: +\S+)?[ \t]*$"
POOL_FORM = r"^Pool: [\w-]+\.[\w-]+$"
NIDS_FORM = r"\A(?:[^\s@]+@\w+\n)*[^\s@]+@\w+\s*\Z"
DF_FORM = r"^UUID +(1K-blocks|bytes|Inodes)\b"
# Parameters that a fault of their own is about.
_ADDRESSES = ("mgsnode", "failover.node", "servicenode")
_ROW_PATTERN = re.compile(
    r"^(\S+?)(?:_UUID)? +(\d\S*) +(\d\S*) +(\d\S*) +(\d+)% +(/\S+)\[[^\]\n]*\][ \t]*(\w*)", re.MULTILINE
)
_LOST_PATTERN = re.compile(r"^(\S+?)(?:_UUID)? +: (inactive device|\S.*)$", re.MULTILINE)


def read_tunefs_lustre(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses tunefs.lustre --dryrun: the name, index, flags and parameters of one target; the last values count."""
    values = dict(
        re.findall(
            r"^(Target|Index|Lustre FS|Mount type|Persistent mount opts|Parameters): *(.*)$", output_text, re.MULTILINE
        )
    )
    if not values.get("Target"):
        raise UserError(f"{output_origin} names no target; it should be what tunefs.lustre --dryrun prints.")
    parameters: dict[str, list[str]] = {}
    for name, value in re.findall(r"(\S+?)=(\S+)", values.get("Parameters", "")):
        parameters.setdefault(name, []).append(value)
    flags = re.findall(r"^\s+\(([\w ]+)\)$", output_text, re.MULTILINE)
    facts = {
        "label_origin": output_origin,
        "label_device": read_device_from_origin(output_origin),
        "file_system": values.get("Lustre FS", ""),
        "backend": values.get("Mount type", ""),
        "flags": flags[-1].strip() if flags else "",
        "mount_options": values.get("Persistent mount opts", ""),
        "management": " ".join(sorted(parameters.get("mgsnode", []))),
        "failover": " ".join(parameters.get("failover.node", [])),
        "index": values.get("Index", "").strip(),
        "parameters": " ".join(
            sorted(f"{name}={value}" for name, all_values in parameters.items() for value in all_values
                   if name not in _ADDRESSES)),
    }  # fmt: skip
    return ObservedStorage((ObservedFileSystem(values["Target"].strip(), "lustre", facts=facts, origin=output_origin),))


def read_lfs_df(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lfs df: how full every target is, and targets that are not there."""
    is_inodes = re.search(r"^UUID +Inodes\b", output_text, re.MULTILINE) is not None
    is_kib = re.search(r"^UUID +1K-blocks\b", output_text, re.MULTILINE) is not None
    names = (("used_inodes_percent", "inodes", "inodes_used", "inodes_free") if is_inodes
             else ("used_percent", "kib", "kib_used", "kib_free"))  # fmt: skip
    targets = []
    for name, total, used, free, percent, _, flags in _ROW_PATTERN.findall(output_text):
        facts = {names[0]: percent} | ({"statfs_flags": flags} if flags else {})
        if is_inodes or is_kib:  # with -h numbers are rounded
            facts |= {fact: text for fact, text in zip(names[1:], (total, used, free), strict=True) if text.isdigit()}
        targets.append(ObservedFileSystem(name, "lustre", facts=facts, origin=output_origin))
    targets += [
        ObservedFileSystem(_complete_name(output_text, match), "lustre", facts={"unreachable": match[2]},
                           origin=output_origin)
        for match in _LOST_PATTERN.finditer(output_text)
    ]  # fmt: skip
    if not targets:
        raise UserError(f"{output_origin} names no target; it should be what lfs df prints.")
    return ObservedStorage(tuple(targets))


def read_lfs_pool_list(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lfs pool_list of one pool or several: the targets of each."""
    targets: dict[str, list[str]] = {}
    name = ""
    for line in output_text.split():
        if re.fullmatch(r"[\w-]+\.[\w-]+", line):
            name = line
        elif (match := re.fullmatch(r"(\w+-OST[0-9a-f]{4})_UUID", line)) and name:
            targets.setdefault(name, []).append(match[1])
    if not targets:
        raise UserError(f"{output_origin} names no target of a pool; it should be what lfs pool_list prints of one.")
    return ObservedStorage(tuple(
        ObservedFileSystem(pool, "lustre", facts={"pool_targets": " ".join(names)}, origin=output_origin)
        for pool, names in targets.items()
    ))  # fmt: skip


def read_lctl_nids(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses lctl list_nids: the addresses of this node."""
    addresses = [address for address in output_text.split() if not address.endswith("@lo")]
    if not addresses:
        raise UserError(f"{output_origin} names no address of a network; it should be what lctl list_nids prints.")
    facts = {"nids": " ".join(addresses)}
    return ObservedStorage((ObservedFileSystem("parameters of the node", "lustre", facts=facts, origin=output_origin),))


def _complete_name(output_text: str, match: re.Match[str]) -> str:
    """The name of a target that lfs df does not reach: it prints OST0002 without the name of the file system, which the
    rows before it have."""
    if not re.fullmatch(r"(?:OST|MDT)[0-9a-f]{4}", match[1]):
        return match[1]
    names = re.findall(r"^(\w+)-(?:OST|MDT)[0-9a-f]{4}", output_text[: match.start()], re.MULTILINE)
    return f"{names[-1]}-{match[1]}" if names else match[1]
