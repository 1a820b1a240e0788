# SPDX-License-Identifier: Apache-2.0
"""GPFS (IBM Storage Scale): the output of ``mmpmon -p`` with the requests `fs_io_s` or `io_s`.

A line is a list of ``_key_ value`` pairs: ``_fs_io_s_ _n_ ADDRESS _nn_ NODE _rc_ 0 _t_ SECONDS _tu_ MICROSECONDS _cl_
CLUSTER _fs_ FILE-SYSTEM _d_ DISKS _br_ BYTES-READ _bw_ BYTES-WRITTEN _oc_ OPENS _cc_ CLOSES _rdc_ READS _wc_ WRITES
_dir_ READDIRS _iu_ INODE-UPDATES``. Counters grow from the mount on; bytes that the node's cache served are included.
Tested on recorded lines; this code has never run on a GPFS node.
"""

from __future__ import annotations

from sonde.telemetry.file_format import TelemetryFile
from sonde.telemetry.imports import TelemetryBuilder, TelemetryDefaults, TelemetryFormat

_COLUMNS = (
    "client_read_bytes", "client_written_bytes", "client_reads", "client_writes", "client_metadata_operations",
)  # fmt: skip
_RESPONSE_PREFIXES = ("_fs_io_s_", "_io_s_")
_OK_STATUS = "0"


def is_mmpmon_output(output_text: str) -> bool:
    """Whether a line of the text is an answer of mmpmon with statistics."""
    return any(line.startswith(_RESPONSE_PREFIXES) for line in output_text.splitlines())


def read_mmpmon_output(output_text: str, telemetry_defaults: TelemetryDefaults) -> list[TelemetryFile]:
    """The counters of every file system (`fs_io_s`) and of whole nodes (`io_s`, part "")."""
    builder = TelemetryBuilder("mmpmon")
    for line in output_text.splitlines():
        fields = line.split()
        if not fields or fields[0] not in _RESPONSE_PREFIXES:
            continue
        pairs = dict(zip(fields[1::2], fields[2::2], strict=False))
        try:
            if pairs["_rc_"] != _OK_STATUS:
                raise ValueError
            time = int(pairs["_t_"]) + int(pairs["_tu_"]) / 1e6
            values = (
                float(pairs["_br_"]), float(pairs["_bw_"]), float(pairs["_rdc_"]), float(pairs["_wc_"]),
                float(pairs["_oc_"]) + float(pairs["_cc_"]) + float(pairs["_dir_"]) + float(pairs["_iu_"]),
            )  # fmt: skip
        except (KeyError, ValueError):
            builder.unreadable_lines += 1
            continue
        host = pairs.get("_nn_") or telemetry_defaults.host
        source = "gpfs-file-systems" if fields[0] == "_fs_io_s_" else "gpfs-node"
        builder.add_sample(host, source, _COLUMNS, time, pairs.get("_fs_", ""), values)
    return builder.build_files()


MMPMON_FORMAT = TelemetryFormat(
    "mmpmon",
    "GPFS: mmpmon -p with fs_io_s or io_s requests",
    "mmpmon",
    "run it as root on a GPFS node; it is part of the package gpfs.base.",
    is_mmpmon_output,
    read_mmpmon_output,
)
