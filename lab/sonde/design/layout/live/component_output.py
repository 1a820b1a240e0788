# SPDX-License-Identifier: Apache-2.0
"""Parses what the kernel and systemd print of a server: adapters, enclosures, processors, memory settings, swap,
services, and errors in the kernel log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from sonde.design.layout.live.observations import ObservedComponent, ObservedStorage
from sonde.model.errors import UserError

# The forms that identify these outputs.
SYSFS_FORM = r"^/sys/class/(?:scsi_host|fc_host|enclosure)/|^/sys/devices/system/cpu/|^/proc/sys/vm/"
UNITS_FORM = r"^Id=[\w@.\\:-]+\.(?:service|timer)$|^[●*×]? *\S+\.(?:service|timer|mount|swap|socket) +[a-z-]+ +failed"
SWAPS_FORM = r"^Filename\s+Type\s+Size\s+Used\s+Priority"
LOG_FORM = r"^\[[ \d.]+\] |^\[\w{3} \w{3} [ \d]\d "
_SYSFS_PATTERN = re.compile(
    r"^(?:/sys/class/(?P<adapter>scsi_host|fc_host)/(?P<host>host\d+)/|/sys/class/enclosure/(?P<box>[^/\n]+)/+"
    r"|/sys/devices/system/cpu/cpufreq/(?P<policy>policy\d+)/|/proc/sys/(?P<vm>vm)/)(?P<file>[^:\n]+):(?P<value>.*)$",
    re.MULTILINE,
)
_FAILED_UNIT_PATTERN = re.compile(r"^[●*×]? *(\S+\.\w+) +[a-z-]+ +failed", re.MULTILINE)
_SWAP_PATTERN = re.compile(r"^(\S+)\s+(?:partition|file)\s+(\d+)\s+(\d+)\s", re.MULTILINE)
_DRIVE = r"(?P<device>sd[a-z]+|nvme\d+n\d+|vd[a-z]+|dm-\d+|md\d+)"
# Kind of error -> the messages of it, each with its device. A drive is named without its partition.
_MESSAGES: Mapping[str, Sequence[str]] = {
    "bad sectors": (
        rf"critical medium error, dev {_DRIVE}", rf"\[{_DRIVE}\].* Sense Key : Medium Error",
        rf"\[{_DRIVE}\].* Add\. Sense: Unrecovered read error", r"(?P<device>ata\d+)(?:\.\d+)?: error: \{ [\w ]*UNC",
        rf"read error corrected .* on {_DRIVE}",
    ),
    "hardware errors": (
        rf"\[{_DRIVE}\].* Sense Key : Hardware Error",
        # drives that do not know these requests refuse them: the kernel does not send them again
        rf"critical target error, dev {_DRIVE}\b(?!.*:\((?:DISCARD|WRITE_ZEROES|WRITE_SAME)\))",
    ),
    "I/O errors": (rf"(?<!critical )\bI/O error, dev {_DRIVE}", rf"Buffer I/O error on dev(?:ice)? {_DRIVE}"),
    "timeouts": (
        rf"\[{_DRIVE}\].* (?:timing out command|FAILED Result: .*DID_TIME_OUT)", rf"timeout error, dev {_DRIVE}",
        r"(?P<device>ata\d+)(?:\.\d+)?: exception Emask .* frozen",
        r"nvme (?P<device>nvme\d+): I/O (?:tag )?\d+ .*timeout",
        r"sd (?P<device>\d+:\d+:\d+:\d+): attempting task abort",
        r"nvme (?P<device>nvme\d+): controller is down; will reset",
    ),
    "resets of a link": (
        r"(?P<device>ata\d+)(?:\.\d+)?: (?:hard|soft) resetting link",
        r"(?P<device>ata\d+)(?:\.\d+)?: (?:limiting SATA link speed|SError: \{ [\w ]*BadCRC)",
        r"sd (?P<device>\d+:\d+:\d+:\d+): .*Power-on or device reset occurred",
        r"(?P<device>mpt[23]sas_cm\d+): log_info\(0x3111",
        r"(?P<device>rport-\d+:\d+-\d+): blocked FC remote port time out",
        r"(?P<device>rport-\d+:\d+-\d+): +blocked FC remote port",
    ),
    "errors of PCI Express": (
        r"AER: (?:Multiple )?(?:Corrected|Correctable|Uncorrected|Uncorrectable) .*error (?:message )?received: "
        r"(?:from )?(?P<device>[0-9a-f:.]+)",
        r"(?P<device>[0-9a-f]{4}:[0-9a-f:.]+): PCIe Bus Error: severity=",
        r"(?P<device>[0-9a-f]{4}:[0-9a-f:.]+): .*available PCIe bandwidth, limited by",
    ),
    "errors of a file system": (
        r"XFS \((?P<device>[\w/-]+)\): (?:Metadata corruption detected|Corruption of in-memory|log I/O error"
        r"|Internal error|.*[Ss]hutting down|Metadata CRC error)",
        r"EXT4-fs error \(device (?P<device>[\w/-]+)\)", r"LDISKFS-fs error \(device (?P<device>[\w/-]+)\)",
    ),
    "hung tasks": (r"INFO: task (?P<device>[\w./:-]+):\d+ blocked for more than \d+ seconds",),
    "adapter faults": (
        r"(?P<device>mpt[23]sas_cm\d+): (?:fault_state|_base_fault_reset_work|sending diag reset)",
        r"megaraid_sas (?P<device>[0-9a-f:.]+): .*(?:FW in FAULT state|resetting adapter|Battery has failed"
        r"|BBU disabled|Battery is missing)",
    ),
}  # fmt: skip
_PATTERNS = [(kind, re.compile(pattern)) for kind, patterns in _MESSAGES.items() for pattern in patterns]


def store_components(components: Sequence[ObservedComponent], output_origin: str) -> ObservedStorage:
    """The observation of these components. Raises UserError if there are none."""
    if not components:
        raise UserError(f"{output_origin} names no part of a server; save the output as it is.")
    return ObservedStorage(components=tuple(components))


def read_sysfs_components(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses grep -H "" of files about adapters, enclosures, processors and memory."""
    attributes: dict[tuple[str, str], dict[str, str]] = {}
    for match in _SYSFS_PATTERN.finditer(output_text):
        file, value = match["file"], match["value"].strip()
        if match["box"]:
            element, _, name = file.rpartition("/")
            is_own = element in ("", "device")
            part = ("enclosure", match["box"]) if is_own else ("enclosure element", f"{match['box']} {element}")
            attributes.setdefault(part, {})[name] = value
        elif match["policy"]:
            values = attributes.setdefault(("processors", "processors"), {})
            names = dict.fromkeys([*values.get(file, "").split(), value])
            values[file] = " ".join(name for name in names if name)
        else:
            part = ("adapter", match["host"]) if match["host"] else ("memory", "vm")
            attributes.setdefault(part, {})[_name_file(file)] = value
    return store_components(
        [ObservedComponent(kind, name, values, output_origin) for (kind, name), values in attributes.items()],
        output_origin,
    )


def _name_file(file: str) -> str:
    """The name of an attribute; those of the port above an adapter begin with port_."""
    return file.replace("device/../../", "port_").replace("device/../", "")


def read_systemd_units(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses systemctl show (blocks of NAME=VALUE) and systemctl list-units --state=failed."""
    components = []
    for block in re.split(r"\n\s*\n", output_text):
        values = dict(re.findall(r"^(\w+)=(.*)$", block, re.MULTILINE))
        if values.get("Id"):
            components.append(ObservedComponent("service", values["Id"], values, output_origin))
    components += [ObservedComponent("service", unit, {"ActiveState": "failed"}, output_origin)
                   for unit in _FAILED_UNIT_PATTERN.findall(output_text)]  # fmt: skip
    return store_components(components, output_origin)


def read_swaps(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses /proc/swaps: the size of each swap space and what is used of it, in KiB."""
    spaces = [ObservedComponent("swap", path, {"kib": size, "used_kib": used}, output_origin)
              for path, size, used in _SWAP_PATTERN.findall(output_text)]  # fmt: skip
    return store_components(spaces, output_origin)


def read_kernel_log(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses dmesg: the number of errors of each kind and device, with the last message."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], str] = {}
    for line in output_text.splitlines():
        text = re.sub(r"^\[[^\]]*\] ", "", line)[:300]
        for kind, pattern in _PATTERNS:
            if match := pattern.search(text):
                counts[kind, match["device"]] += 1
                last[kind, match["device"]] = text
                break
    return ObservedStorage(components=tuple(
        ObservedComponent("kernel errors", device, {"kind": kind, "count": str(count), "last": last[kind, device]},
                          output_origin)
        for (kind, device), count in counts.items()
    ))  # fmt: skip
