# SPDX-License-Identifier: Apache-2.0
"""Rules about the counters of smartctl -A: which values of a drive are a fault. check_drive_sectors joins those of
bad sectors."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.design.layout.attribute_rule import AttributeRule

REPLACE_DRIVE = "save what is on it, and replace it while its array is whole (mdadm --replace, zpool replace)"
SMART_RULES: Sequence[AttributeRule] = (
    # the counter is never reset: a few errors are those of a cable that was plugged in once
    AttributeRule(
        "disk", "smart_crc_errors", r"[2-9]\d|[1-9]\d{2,}", "errors of a cable",
        "it counts {value} errors of transfers (UDMA_CRC_Error_Count)",
        "requests are repeated, and the link may become slower or reset", "look whether the number grows; if so, change"
        " cable, slot or port: the drive itself is sound",
    ),
    AttributeRule(
        "disk", "smart_wear", r"9\d|[1-9]\d{2,}", "worn flash", "{value} % of its life are used",
        "it may become read-only or fail, together with others that were written as much", "plan its replacement: "
        + REPLACE_DRIVE,
    ),
    AttributeRule(
        "disk", "smart_warning", r"0x(?!0+$)[0-9a-f]+", "drive about to fail", "its Critical Warning is {value}",
        "it is too hot, short of spare blocks, unreliable or read-only (smartctl -H says which)", REPLACE_DRIVE,
        needs={"health": "(?!.*FAIL).*"},
    ),
    AttributeRule(
        "disk", "smart_spare", ".+ %", "drive about to fail", "of its spare blocks remain {value} (Available Spare)",
        "it becomes read-only or fails when no spare block is left", REPLACE_DRIVE,
        needs={"health": "(?!.*FAIL).*", "smart_warning": "(0x0+)?"},
    ),
    AttributeRule(
        "disk", "smart_link", r".+ Gb/s", "slow link of a drive", "its link runs with {value}",
        "flash and streams of disks are limited by it; errors often make a link slower",
        "look at cable, slot and port, and at the kernel log (limiting SATA link speed)",
    ),
    AttributeRule(
        "disk", "smart_temperature", r"6\d|[7-9]\d|1\d\d", "drive too hot", "it has {value} °C",
        "hot drives slow down, make errors, and fail early", "look at fans, filters, and empty slots without covers",
        needs={"health": "(?!.*TEMPERATURE).*"},
    ),
    AttributeRule(
        "disk", "smart_flash_temperature", r"[89]\d|1\d\d", "drive too hot", "it has {value} °C",
        "it lowers its rate to become cooler", "look at fans, filters, and empty slots without covers",
    ),
)  # fmt: skip
