# SPDX-License-Identifier: Apache-2.0
"""Parses smartctl -A (or -a): counters of bad sectors, errors of the cable, wear and temperature of a drive."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sonde.design.layout.live.device_output import HEALTH_FORM, read_device_from_origin, read_smartctl_health
from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage, merge_observations
from sonde.model.errors import UserError

# The form that identifies this output: of ATA, of SAS, of NVMe.
ATTRIBUTES_FORM = (
    r"^ID# +ATTRIBUTE_NAME|^(?:Current Drive Temperature|Elements in grown defect list): +\d"
    r"|^SMART/Health Information"
)
# Number of an ATA attribute -> setting. Only attributes that all vendors use alike, with a count as raw value.
_ATA_COUNTS = {
    "5": "smart_reallocated",
    "197": "smart_pending",
    "198": "smart_uncorrectable",
    "199": "smart_crc_errors",
}
# Attributes of flash by their names: their normalized value is what remains of the life in percent.
_ATA_REMAINING_LIFE = ("Media_Wearout_Indicator", "SSD_Life_Left", "Percent_Lifetime_Remain", "Remaining_Lifetime_Perc")
_ATA_ROW_PATTERN = re.compile(
    r"^ *(\d+) (\S+) +0x[0-9a-f]{4} +(\d+) +\d+ +(?:\d+|-+) +\S+ +\S+ +\S+ +(\d+)", re.MULTILINE
)
# A test of the drive by itself that failed: the newest one is the first.
_FAILED_TEST_PATTERN = re.compile(r"^# ?1 +.*?(Completed: \w+ failure|Failed in segment|Completed: failed segments)",
                                  re.MULTILINE)  # fmt: skip
_SPARE_PATTERN = re.compile(r"^Available Spare: +(\d+)%\nAvailable Spare Threshold: +(\d+)%", re.MULTILINE)
# Of SAS: errors that the drive could not correct, the last column.
_UNCORRECTED_PATTERN = re.compile(r"^(?:read|write|verify): +(?:[\d.]+ +){6}(\d+) *$", re.MULTILINE)
_SATA_LINK_PATTERN = re.compile(r"^SATA Version is: .*, ([\d.]+) Gb/s \(current: ([\d.]+) Gb/s\)", re.MULTILINE)
# Of NVMe: one format of sectors; "+" is the one in use. Smaller numbers of relative performance are better.
_FORMAT_PATTERN = re.compile(r"^ *\d+ ([+-]) +(\d+) +(\d+) +(\d+) *$", re.MULTILINE)
_LINES: Mapping[str, str] = {
    "smart_grown_defects": r"Elements in grown defect list: +(\d+)",
    "smart_wear": r"(?:Percentage Used|Percentage used endurance indicator): +(\d+)%",
    "smart_media_errors": r"Media and Data Integrity Errors: +([\d,]+)",
    "smart_warning": r"Critical Warning: +(0x[0-9a-f]+)",
    "smart_temperature": r"Current Drive Temperature: +(\d+) C",
    "rotation_rate": r"Rotation Rate: +(\d+ rpm)",
    "smart_flash_temperature": r"Temperature: +(\d+) Celsius",
}


def read_smartctl_attributes(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses smartctl -A, also as a part of -a. The name of the drive is in the command line that the collector
    prints."""
    device = read_device_from_origin(output_origin)
    if not device:
        raise UserError(f"{output_origin} does not name its drive; save it with the script of sonde layout collect.")
    matches = {name: re.search(rf"^{pattern}", output_text, re.MULTILINE) for name, pattern in _LINES.items()}
    settings = {name: match[1].replace(",", "") for name, match in matches.items() if match is not None}
    for number, title, normalized, raw in _ATA_ROW_PATTERN.findall(output_text):
        if number in _ATA_COUNTS:
            settings[_ATA_COUNTS[number]] = raw
        elif number in ("190", "194") and title.startswith(("Temperature", "Airflow")):
            settings["smart_temperature"] = raw
        elif title in _ATA_REMAINING_LIFE and 0 < int(normalized) <= 100:
            settings["smart_wear"] = str(100 - int(normalized))
    settings |= _read_logs(output_text)
    name = device.rsplit("/", 1)[-1]
    storage = ObservedStorage(disks={name: ObservedDisk(name, settings=settings, origin=output_origin)})
    if re.search(HEALTH_FORM, output_text, re.MULTILINE):
        storage = merge_observations(storage, read_smartctl_health(output_text, output_origin))
    return storage


def _read_logs(output_text: str) -> dict[str, str]:
    """What smartctl -a prints besides the counters: a failed test, spare blocks of flash, errors of SAS, the link."""
    settings = {}
    if test := _FAILED_TEST_PATTERN.search(output_text):
        settings["smart_test"] = test[1]
    spare = _SPARE_PATTERN.search(output_text)
    if spare and int(spare[1]) < int(spare[2]):
        settings["smart_spare"] = f"{spare[1]} %, the least is {spare[2]} %"
    if counts := [int(count) for count in _UNCORRECTED_PATTERN.findall(output_text)]:
        settings["smart_uncorrected"] = str(sum(counts))
    link = _SATA_LINK_PATTERN.search(output_text)
    if link and float(link[2]) < float(link[1]):
        settings["smart_link"] = f"{link[2]} instead of {link[1]} Gb/s"
    return settings | _read_better_format(output_text)


def _read_better_format(output_text: str) -> dict[str, str]:
    """The best format of sectors that NVMe offers without metadata, if the one in use has a worse performance."""
    table = output_text.partition("\nId Fmt  Data  Metadt  Rel_Perf\n")[2]
    formats = [(mark, int(size), int(metadata), int(rank))
               for mark, size, metadata, rank in _FORMAT_PATTERN.findall(table.partition("\n\n")[0])]  # fmt: skip
    used = next((rank for mark, *_, rank in formats if mark == "+"), None)
    best = min(((rank, size) for _, size, metadata, rank in formats if metadata == 0), default=None)
    if used is None or best is None or best[0] >= used:
        return {}
    return {"better_format": f"it offers {best[1]} B with relative performance {best[0]} instead of {used}"}
