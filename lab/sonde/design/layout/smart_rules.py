# SPDX-License-Identifier: Apache-2.0
"""Rules about the counters of smartctl -A: which values of a drive are a fault."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.design.layout.attribute_rule import AttributeRule

_REPLACE = "save what is on it, and replace it while its array is whole (mdadm --replace, zpool replace)"
SMART_RULES: Sequence[AttributeRule] = (
    AttributeRule(
        "disk", "smart_pending", r"[1-9]\d*", "bad sectors of a drive",
        "{value} of its sectors cannot be read (Current_Pending_Sector)",
        "reads of them fail or take seconds, and are lost when another member of its array fails",
        "scrub its array, which writes them again; replace it if the number does not return to 0",
    ),
    AttributeRule(
        "disk", "smart_uncorrectable", r"[1-9]\d*", "bad sectors of a drive",
        "a test of the drive could not read {value} of its sectors (Offline_Uncorrectable)",
        "reads of them fail, and are lost when another member of its array fails",
        "scrub its array, which writes them again; replace it if the number grows", needs={"smart_pending": "0?"},
    ),
    # a few replaced sectors are usual in years
    AttributeRule(
        "disk", "smart_reallocated", r"[5-9]|[1-9]\d+", "bad sectors of a drive",
        "it has replaced {value} bad sectors by spare ones (Reallocated_Sector_Ct)",
        "its surface wears out: such drives fail far more often than others", _REPLACE,
        needs={"smart_pending": "0?"},
    ),
    AttributeRule(
        "disk", "smart_grown_defects", r"[1-9]\d+", "bad sectors of a drive",
        "it has replaced {value} bad sectors (grown defect list)",
        "its surface wears out: such drives fail far more often than others", _REPLACE,
    ),
    AttributeRule(
        "disk", "smart_media_errors", r"[1-9]\d*", "bad sectors of a drive",
        "it could not correct data {value} times (Media and Data Integrity Errors)",
        "reads of them fail", "scrub its array or pool; " + _REPLACE,
    ),
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
        + _REPLACE,
    ),
    AttributeRule(
        "disk", "smart_warning", r"0x(?!0+$)[0-9a-f]+", "drive about to fail", "its Critical Warning is {value}",
        "it is too hot, short of spare blocks, unreliable or read-only (smartctl -H says which)", _REPLACE,
        needs={"health": "(?!.*FAIL).*"},
    ),
    AttributeRule(
        "disk", "smart_spare", ".+ %", "drive about to fail", "of its spare blocks remain {value} (Available Spare)",
        "it becomes read-only or fails when no spare block is left", _REPLACE,
        needs={"health": "(?!.*FAIL).*", "smart_warning": "(0x0+)?"},
    ),
    AttributeRule(
        "disk", "smart_test", "(?i).*fail.*", "bad sectors of a drive", "its last test of itself failed ({value})",
        "reads of the failed sectors fail, or the drive fails soon", _REPLACE, needs={"smart_pending": "0?"},
    ),
    AttributeRule(
        "disk", "smart_uncorrected", r"[1-9]\d*", "bad sectors of a drive",
        "it could not correct {value} errors (Total uncorrected errors)",
        "reads of them fail, and are lost when another member of its array fails", _REPLACE,
        needs={"smart_grown_defects": r"\d?"},
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
