# SPDX-License-Identifier: Apache-2.0
"""Rules about attributes of components of a server: RAID adapters, enclosures, processors, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonde.design.layout.attribute_rule import AttributeRule

_DEGRADED_COST = "another loss may lose data, and every read of the lost drive is computed from the others"
_BATTERY_REMEDY = "replace the battery or capacitor; the adapter returns to write-back when it is charged"
_WRITE_THROUGH = "every write waits for the drives: small and parity writes take ten times as long"
COMPONENT_RULES: Sequence[AttributeRule] = (
    AttributeRule(
        "RAID volume", "state", "Dgrd|Pdgd|(?:Partially )?Degraded", "degraded",
        "the adapter reports it as {value}: it has lost a drive",
        _DEGRADED_COST, "replace the failed drive (state of its drives in storcli /call show), and watch the rebuild",
    ),
    AttributeRule(
        "RAID volume", "state", "OfLn|Offln|Offline|Failed", "not optimal", "the adapter reports it as {value}",
        "its data is out of reach", "look at its drives before anything else is written",
    ),
    AttributeRule(
        "RAID volume", "state", "Rec|Recovery", "rebuilding", "the adapter reports it as {value}",
        "reads and writes share the drives with the rebuild", "wait for its end",
    ),
    AttributeRule(
        "RAID volume", "cache", r"N?RWT\w*|N?R?WT\w*|RWT\w*", "write-through cache", "its cache policy is {value}",
        _WRITE_THROUGH, "storcli /cX/vY set wrcache=wb where the adapter has a charged battery or capacitor",
        needs={"medium": "(?!SSD$).*"},  # SSDs answer writes as fast as the cache
    ),
    AttributeRule(
        "RAID volume", "cache", r"N?RAWB\w*|\w*AWB\w*", "write cache without battery",
        "its cache policy is {value}: write-back even without a charged battery",
        "after a loss of power the cached writes are lost, and the file system is damaged",
        "storcli /cX/vY set wrcache=wb",
    ),
    AttributeRule(
        "RAID drive", "state", r"Failed|Offln|Offline|UBad|Bad|UBUnsp|Msng|Missing", "failed drive of an adapter",
        "the adapter reports it as {value}", _DEGRADED_COST,
        "replace it, and watch the rebuild (storcli /cX/eY/sZ show rebuild)",
    ),
    AttributeRule(
        "RAID drive", "configuration", r"Unusbl|\w+Unsp|\w+Dgrd", "failed drive of an adapter",
        "the adapter reports it as {value}", "the adapter does not use it, or not all of it: a spare or member less",
        "look at its events (storcli2 /cX show events), and replace it", needs={"state": "Online|Good|Various|-|"},
    ),
    AttributeRule(
        "RAID drive", "group", "F", "foreign configuration", "it has the configuration of another adapter",
        "the adapter does not use it as member or spare until somebody decides", "storcli /cX/fall show, then import it"
        " if its volume belongs here, else delete it (/cX/fall del)",
    ),
    AttributeRule(
        "RAID drive", "predictive_failures", r"[1-9]\d*", "drive about to fail",
        "the adapter counts {value} predictive failures of it", "it may fail at any time",
        "replace it while its volume is optimal",
    ),
    AttributeRule(
        "RAID drive", "smart_alert", "Yes", "drive about to fail", "it has flagged a S.M.A.R.T alert",
        "it may fail at any time", "replace it while its volume is optimal", needs={"predictive_failures": "0?"},
    ),
    AttributeRule(
        "RAID drive", "media_errors", r"[1-9]\d+", "bad sectors of a drive", "the adapter counts {value} media errors",
        "reads of them fail, and are lost when another member fails", "start a patrol read; replace it if they grow",
        needs={"predictive_failures": "0?"},
    ),
    AttributeRule(
        "RAID adapter", "foreign", r"Yes|Present|[1-9]\d*", "foreign configuration", "it holds the configuration of"
        " another adapter",
        "its drives are not used until somebody decides", "storcli /cX/fall show, then import or delete it",
    ),
    AttributeRule(
        "RAID adapter", "Controller Status", "(?!OK|Optimal).*", "adapter not optimal", "its status is {value}",
        "it may stop, and all of its volumes with it", "look at its events (storcli /cX show events, ssacli diag)",
    ),
    AttributeRule(
        "RAID adapter", "Memory Uncorrectable Errors", r"[1-9]\d*", "errors of the memory of an adapter",
        "it counts {value} errors that it could not correct", "cached writes may be lost or wrong",
        "replace its cache module or the adapter",
    ),
    AttributeRule(
        "RAID adapter", "Memory Correctable Errors", r"[1-9]\d+", "errors of the memory of an adapter",
        "it counts {value} errors that it corrected", "the next one may not be correctable",
        "replace its cache module if the number grows", needs={"Memory Uncorrectable Errors": "0?"},
    ),
    AttributeRule(
        "RAID adapter", "Any Offline VD Cache Preserved", "Yes", "cached writes of an absent volume",
        "it keeps writes of a volume that is offline", "these writes are not on the drives, and fill the cache",
        "bring the drives of that volume back (storcli /cX show preservedcache) before the writes are discarded",
    ),
    AttributeRule(
        "cache battery", "state", r"(?!Optimal|Learning|Charging|-).*", "cache battery failed", "its state is {value}",
        f"the adapter writes through its cache: {_WRITE_THROUGH}", _BATTERY_REMEDY,
    ),
    AttributeRule(
        "RAID adapter", "Battery/Capacitor Status", r"(?!OK|Recharging).*", "cache battery failed",
        "its state is {value}", f"the adapter does not cache writes: {_WRITE_THROUGH}", _BATTERY_REMEDY,
    ),
    AttributeRule(
        "RAID adapter", "Cache Status", r"(?:Temporarily|Permanently) Disabled.*", "write-through cache",
        "its cache is {value}", _WRITE_THROUGH, "ssacli controller slot=X show detail has the reason (Cache Status"
        " Details); replace battery, capacitor or cache module", needs={"Battery/Capacitor Status": "(OK.*)?"},
    ),
    AttributeRule(
        "RAID volume", "LD Acceleration Method", "All disabled", "write-through cache",
        "the cache of its adapter is disabled for it", _WRITE_THROUGH,
        "ssacli controller slot=X logicaldrive Y modify arrayaccelerator=enable", needs={"adapter_cache": "rotating"},
    ),
    AttributeRule(
        "RAID volume", "Status", r"(?i)interim recovery.*|ready for rebuild.*", "degraded", "the adapter reports:"
        " {value}", _DEGRADED_COST, "replace the failed drive, and watch the rebuild",
    ),
    AttributeRule(
        "RAID volume", "Status", r"(?i)recovering.*|rebuilding.*", "rebuilding", "the adapter reports: {value}",
        "reads and writes share the drives with the rebuild", "wait for its end",
    ),
    AttributeRule(
        "RAID volume", "Status", r"(?i)failed.*|wrong .*|physical drive not .*|overheat.*|not .*|disabled.*",
        "not optimal", "the adapter reports: {value}", "its data is out of reach",
        "look at its drives before anything else is written",
    ),
    AttributeRule(
        "RAID volume", "Unrecoverable Media Errors", "(?!None|0$).*", "bad sectors of a volume",
        "the adapter reports unrecoverable media errors: {value}", "reads of them fail: files are damaged",
        "start a surface scan, compare the files with their copies, and replace the drives with media errors",
    ),
    AttributeRule(
        "RAID drive", "SSD Smart Trip Wearout", "True", "drive about to fail", "its flash is worn out",
        "it may fail at any time, or take no more writes", "replace it while its volume is optimal",
        needs={"Status": "(OK.*)?"},
    ),
    AttributeRule(
        "RAID drive", "Status", r"(?i)(?:failed|missing|offline).*", "failed drive of an adapter",
        "the adapter reports: {value}", _DEGRADED_COST, "replace it, and watch the rebuild",
    ),
    AttributeRule(
        "RAID drive", "Status", r"(?i)predictive failure.*", "drive about to fail", "the adapter reports: {value}",
        "it may fail at any time", "replace it while its volume is optimal",
    ),
    AttributeRule(
        "enclosure element", "status", r"(?i)critical|non-?critical|unrecoverable", "part of an enclosure failed",
        "its status is {value}", "with a power supply, fan or expander less the next failure stops all of its drives",
        "look at its light and at sg_ses, and replace it",
    ),
    AttributeRule(
        "enclosure element", "predicted_failure", "1", "part of an enclosure failed",
        "the enclosure predicts that it fails", "the next failure may stop all of its drives", "replace it",
        needs={"status": "(?i)(OK|unknown)?"},
    ),
    AttributeRule(
        "enclosure element", "fault", "1", "part of an enclosure failed", "the enclosure reports a fault of it",
        "the drive in this slot has failed, or was asked to be replaced", "replace the drive, or take the mark back"
        " (sg_ses --clear=fault)", needs={"status": "(?i)(OK|not .*|unknown)?"},
    ),
    AttributeRule(
        "processors", "scaling_governor", r".*\b(?:powersave|conservative)\b.*", "processors save power",
        "the governor of their frequency is {value}",
        "interrupts and small requests wait until a processor runs faster: latencies grow, most with NVMe and parity",
        "cpupower frequency-set -g performance, or tuned-adm profile throughput-performance",
        needs={"energy_performance_preference": r"(?!.*\bbalance_performance|.*\bperformance).*"},
    ),
    AttributeRule(
        "memory", "dirty_ratio", "[1-4]", "few dirty pages", "vm.dirty_ratio is {value} %",
        "writers wait for the drives as soon as that share of the free memory and of the page cache is dirty: bursts go"
        " at the rate of the drives", "sysctl vm.dirty_ratio=20, with vm.dirty_background_ratio=5",
        needs={"dirty_bytes": "0?"},
    ),
    AttributeRule(
        "memory", "dirty_ratio", r"[7-9]\d|100", "many dirty pages", "vm.dirty_ratio is {value} %",
        "most of the memory is written at once: programs and fsync wait for minutes", "sysctl vm.dirty_ratio=20",
        needs={"dirty_bytes": "0?"},
    ),
    AttributeRule(
        "memory", "dirty_bytes", r"[1-9]\d{0,7}", "few dirty pages", "vm.dirty_bytes is {value}",
        "writers wait for the drives after less than 100 MB, and requests stay small",
        "sysctl vm.dirty_bytes=0 and vm.dirty_ratio=20, or 1 GB and more",
    ),
    AttributeRule(
        "memory", "swappiness", r"(?:6[1-9]|[7-9]\d|1\d\d|200)", "memory is swapped early", "vm.swappiness is {value}",
        "pages of programs and services leave the memory for the page cache, and come back slowly",
        "sysctl vm.swappiness=10",
    ),
    AttributeRule(
        "memory", "min_free_kbytes", r"[1-9]\d{0,3}", "little free memory is reserved", "vm.min_free_kbytes is {value}",
        "drivers of drives and networks find no memory in bursts, and requests wait or fail",
        "sysctl vm.min_free_kbytes=262144 or more",
    ),
    AttributeRule(
        "memory", "zone_reclaim_mode", "[1-7]", "memory of one processor only", "vm.zone_reclaim_mode is {value}",
        "the page cache of one processor is dropped while the memory of the other is free",
        "sysctl vm.zone_reclaim_mode=0",
    ),
    AttributeRule(
        "memory", "vfs_cache_pressure", r"0|[5-9]\d\d|\d{4,}", "inodes leave or fill the memory",
        "vm.vfs_cache_pressure is {value}", "with 0 inodes fill the memory, with much more than 100 each look-up reads"
        " the drives again", "sysctl vm.vfs_cache_pressure=50 to 100",
    ),
)  # fmt: skip
# States that are no fault, by part and attribute. Another state that no rule is about is not examined.
SOUND_STATES: Mapping[tuple[str, str], str] = {
    ("RAID volume", "state"): "Optl|Optimal|-",
    ("RAID drive", "state"): "Onln|Online|UGood|Good|JBOD|DHS|GHS|Rbld|Rebuild|Cpybck|-",
    ("RAID drive", "configuration"): r"U?Conf|JBOD|GHS|DHS|\w+Sntz|-",
    ("RAID volume", "Status"): "(?i)OK",
    ("RAID drive", "Status"): "(?i)OK|rebuilding.*",
    ("RAID adapter", "Cache Status"): "(?i)OK|not configured",
    ("enclosure element", "status"): "(?i)OK|not installed|not available|unknown|unsupported|no access allowed",
}
