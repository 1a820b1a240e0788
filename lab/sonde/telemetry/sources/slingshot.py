# SPDX-License-Identifier: Apache-2.0
"""Slingshot (HPE Cassini): /sys/class/cxi/cxiN/device/telemetry, a file for each counter with ``VALUE@SECONDS``.

RDMA bypasses the kernel, so /proc/net/dev does not have these bytes. Names of counters are those of the Cassini driver
(shs-cxi-driver); this code has never run on a node with Slingshot.
"""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import LocalSource, ReadingsByPart, ReopenedKernelFile, SourceReader, UnavailableSourceError

_COUNTER_FILES: tuple[tuple[str, ...], ...] = (
    ("hni_sts_rx_ok_octets",),
    ("hni_sts_tx_ok_octets",),
    ("hni_pcs_uncorrected_cw", "hni_sts_rx_bad_octets", "pct_retry_srb_requests", "pct_spt_timeouts"),
)


def parse_timestamped_counter(counter_text: str) -> float:
    """The value of ``1234@1700000000.123456789``. Raises ValueError."""
    return float(counter_text.strip().partition("@")[0])


def _open_nic_counters_reader(file_system_root: Path) -> SourceReader:
    files: dict[str, dict[str, ReopenedKernelFile]] = {}
    for folder in sorted((file_system_root / "sys/class/cxi").glob("cxi*/device/telemetry")):
        part = folder.parents[1].name
        for name in (name for names in _COUNTER_FILES for name in names):
            try:
                files.setdefault(part, {})[name] = ReopenedKernelFile(folder / name)
            except OSError:
                continue  # names differ between versions of the driver
    files = {part: counters for part, counters in files.items() if counters}
    if not files:
        raise UnavailableSourceError(
            "/sys/class/cxi has no device: this node has no Slingshot; elsewhere load the module cxi-ss1 (package"
            " cray-cxi-driver)."
        )

    def read_nic_counters() -> ReadingsByPart:
        readings: ReadingsByPart = {}
        for part, counters in files.items():
            values = {name: parse_timestamped_counter(file.read_text()) for name, file in counters.items()}
            sums = [[values[name] for name in names if name in values] for names in _COUNTER_FILES]
            readings[part] = tuple(sum(numbers) if numbers else None for numbers in sums)
        return readings

    def close_nic_counters() -> None:
        for counters in files.values():
            for file in counters.values():
                file.close()

    return SourceReader(read_nic_counters, close_nic_counters)


SOURCE = LocalSource(
    "slingshot",
    "bytes and errors of every Slingshot port",
    "node",
    ("fabric_received_bytes", "fabric_sent_bytes", "fabric_errors"),
    _open_nic_counters_reader,
)
