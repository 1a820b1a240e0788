# SPDX-License-Identifier: Apache-2.0
"""Rules about parameters of the kernel module zfs."""

from __future__ import annotations

from collections.abc import Sequence

from sonde.design.layout.attribute_rule import AttributeRule

_REMEDY = "take {} out of /etc/modprobe.d, and echo {} > /sys/module/zfs/parameters/{}"


def _make_rule(parameter: str, faulty: str, kind: str, problem: str, cost: str, default: str) -> AttributeRule:
    remedy = _REMEDY.format(parameter, default, parameter)
    return AttributeRule("zfs module", parameter, faulty, kind, f"{parameter} is {{value}}: {problem}", cost, remedy)


ZFS_MODULE_RULES: Sequence[AttributeRule] = (
    _make_rule(
        "zfs_arc_max", r"[1-9]\d{0,8}|[1-3]\d{9}", "small cache of ZFS", "its cache has less than 4 GB",
        "metadata and data that are read again come from the drives", "0",
    ),
    _make_rule(
        "zfs_nocacheflush", "1", "flushes are left out", "drives are not asked to store what they cache",
        "a power failure loses acknowledged writes, and maybe the pool, unless all caches have batteries", "0",
    ),
    _make_rule(
        "zfs_prefetch_disable", "1", "no read-ahead", "ZFS reads nothing ahead",
        "a sequential reader waits for each block", "0",
    ),
    _make_rule(
        "zfs_txg_timeout", r"[0-2]|[6-9]\d|[1-9]\d{2,}", "unusual time between transaction groups",
        "the default is 5 s",
        "a shorter time writes small pieces, a longer one loses more in a crash and writes in bursts", "5",
    ),
    _make_rule(
        "zfs_dirty_data_max", r"[1-9]\d{0,7}|[12]\d{8}", "few dirty data", "less than 300 MB wait for a write",
        "writers are slowed down before the drives are busy", "4294967296",
    ),
    _make_rule(
        "zil_replay_disable", "1", "synchronous writes are not", "the intent log is not replayed",
        "a crash loses writes that programs were told are safe", "0",
    ),
)  # fmt: skip
