#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines per minute that one core scans with all shipped rules, for logs with few and with only matching lines.

--gigabytes N scans a log of N GB with 1 % matching lines and garbage, and compares all counts. With --check the exit
code is 1 when a log with 1 % matching lines takes more than a minute for 1,000,000 lines.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults, scan_logs

MIN_LINES_PER_MINUTE = 1_000_000
LINE_WITHOUT_MATCH = (
    "Mar 17 08:{minute:02}:30 oss3 systemd[1]: Started Session {number} of user root, a line of the usual length.\n"
)
MATCHING_LINE = "Mar 17 08:{minute:02}:31 oss3 kernel: blk_update_request: I/O error, dev sd{letter}, sector {number}\n"

# Between the blocks of a large log: random bytes, a crash's run of zeros, a line of 3 MB, half a line, a matching line
# from the future, and one without a time.
RANDOM_BYTES = (
    random.Random(1).randbytes(50_000).replace(b"\n", b" "),
    bytes(200_000),
    b"x" * 3_000_000,
    b"Mar 17 08:59:31 oss3 kernel: blk_upd",
    b"2099-01-01T00:00:00+00:00 oss3 kernel: blk_update_request: I/O error, dev sda, sector 1",
    b"blk_update_request: I/O error, dev sda, sector 1",
)


def write_log(path: Path, lines: int, matching_every: int) -> None:
    """Writes a syslog in which every `matching_every`-th line matches a rule."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            form = LINE_WITHOUT_MATCH if number % matching_every else MATCHING_LINE
            file.write(form.format(minute=number * 60 // lines, number=number, letter="abcdefgh"[number % 8]))


def measure_lines_per_minute(lines: int, matching_every: int) -> float:
    """Processor time of the scan, not of the clock."""
    rules = compile_rules(list_shipped_rule_files().values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages"
        write_log(path, lines, matching_every)
        begin = time.process_time()
        _, (report,) = scan_logs([path], rules, LogDefaults())
        duration_s = time.process_time() - begin
    assert report.lines == lines
    assert report.matched == lines // matching_every
    return lines / duration_s * 60


def write_large_log(path: Path, size: int) -> tuple[int, int, int]:
    """Writes blocks of 100,000 lines with garbage between them. Returns the numbers of blocks, lines and matching
    lines.
    """
    lines, matching_every = 100_000, 100
    write_log(path, lines, matching_every)
    block = path.read_bytes() + b"".join(line + b"\n" for line in RANDOM_BYTES)
    count = -(-size // len(block))
    with path.open("wb") as file:
        for _ in range(count):
            file.write(block)
    return count, count * (lines + len(RANDOM_BYTES)), count * lines // matching_every


def scan_large_log(size: int) -> float:
    """Scans a log of `size` bytes, prints the figures, and returns lines per minute of processor time."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "messages"
        blocks, lines, matched = write_large_log(path, size)
        rules = compile_rules(list_shipped_rule_files().values())
        begin, begin_cpu = time.monotonic(), time.process_time()
        events, (report,) = scan_logs([path], rules, LogDefaults())
        duration_s, cpu_s = time.monotonic() - begin, time.process_time() - begin_cpu
        counts = (report.lines, report.matched, report.cut, report.future.count, report.timeless.count)
        assert counts == (lines, matched, blocks, blocks, blocks), (counts, lines, matched, blocks)
        assert report.bytes == path.stat().st_size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{size / 1e9:.1f} GB, {lines:,} lines, {matched:,} matched, {len(RANDOM_BYTES) * blocks:,} of garbage:"
        f" {cpu_s:,.0f} s of processor time in {duration_s:,.0f} s, {lines / cpu_s * 60:,.0f} lines a minute of"
        f" processor time, {memory:.0f} MiB, {len(events)} events"
    )
    return lines / cpu_s * 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit code 1 below 1,000,000 lines a minute")
    parser.add_argument("--gigabytes", type=float, help="scan one log of this size in the current directory")
    options = parser.parse_args()
    if options.gigabytes:
        rate = scan_large_log(int(options.gigabytes * 1e9))
        return int(options.check and rate < MIN_LINES_PER_MINUTE)
    few = measure_lines_per_minute(1_000_000, 100)
    only = measure_lines_per_minute(50_000, 1)
    print(f"lines a minute: {few:,.0f} with 1 % matching, {only:,.0f} where every line matches")
    return int(options.check and few < MIN_LINES_PER_MINUTE)


if __name__ == "__main__":
    sys.exit(main())
