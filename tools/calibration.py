# SPDX-License-Identifier: Apache-2.0
"""Compares simulated records with arithmetic on six machines, and writes docs/concepts/calibration.md with its picture.

Usage: .venv/bin/python tools/calibration.py [--check]. The machines and their truth are in calibration_machines.py.
With --check nothing is written; the exit code is 1 when a limit is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibration_machines import (
    HISTOGRAM_BUCKET_WIDTH,
    MACHINES,
    MAX_RELATIVE_ERROR,
    Comparison,
    Run,
    simulate_and_compare_all_machines,
)

ROOT = Path(__file__).resolve().parents[1]
PAGE_FILE = ROOT / "docs" / "concepts" / "calibration.md"
PICTURE_FILE = ROOT / "docs" / "concepts" / "calibration.svg"


def _format_number(number: float) -> str:
    return f"{number:.6g}"


_SECTIONS_AFTER_TABLES = [
    "## The mounted model beside this",
    "",
    "The same machine, mounted ([](mount.md)) and at a quarter of its speed: mean rates of plans in virtual time,",
    "where they are as exact as above, and as the engine measured them through the kernel, FUSE and the real",
    "clock. Limit: 5%. `tools/two_drivers.py --write` redoes the table; here it ran on two processors that others",
    "used too, under `chrt -f 1`. A nightly test holds the limit on any machine.",
    "",
    "```{include} two-drivers.md",
    "```",
    "",
    "What is left: in the kernel one task at a time makes a file in a directory, or makes a file longer; and a",
    "task that has ended is waited for by a lead (40 ms here). Both come once in a phase: longer phases differ",
    "by less. At full speed and with the usual lead (100 µs) the phases that move data differ by 1.1% at most,",
    "stat and remove by 0.2%; create by 8%, and with a lead of 4 ms by 2%: of four tasks whose files are made at",
    "one time, the last one calls again later than a lead.",
    "",
    "## Latencies, series and targets on the mount",
    "",
    "The six machines once more, mounted at half of their speed: their truths against what the engine wrote down,",
    "in the machine's own time. Limit: 2%, or the reason. Percentiles are known as far as the buckets are narrow.",
    "`tools/calibration_on_mount.py --write` redoes the table; here it ran on two processors that others used,",
    "too, under `chrt -f 1`.",
    "",
    "```{include} calibration-on-mount.md",
    "```",
    "",
    "Some plans differ from those above: calls of 1 MiB instead of 4 (the kernel cuts longer ones), a shared file",
    "that is written a second time (in the kernel one task at a time makes a file longer: the p99 of the first",
    "writes is 12% more, their mean is not), and 4,000 files instead of 20,000. The slow target is slow from the",
    "beginning.",
    "",
    "## What it does not show",
    "",
    "Records of simulated runs are compared with values calculated by hand from the rates and costs of the model, not",
    "with measurements of real storage.",
    "",
]


def format_page(measured_runs: Mapping[str, tuple[Run, list[Comparison]]]) -> str:
    """The page, whole."""
    rows = [row for _run, of in measured_runs.values() for row in of]
    exact = [row.error for row in rows if row.limit <= MAX_RELATIVE_ERROR]
    binned = [row.error for row in rows if row.limit > MAX_RELATIVE_ERROR]
    text = [
        "# Calibration",
        "",
        "Six machines whose truth is arithmetic, and what the record of a simulated run says of them. The plan",
        "runs through the loops, meters and histograms of the engine on the model ([](simulate.md)); the truth is",
        "calculated from rates and costs in `tools/calibration_machines.py`. `tools/calibration.py` writes this page",
        "and its picture; a test compares both with new simulations.",
        "",
        f"{len(rows)} quantities. The largest error is {max(exact):.1e} where values are kept as they are (limit",
        f"{MAX_RELATIVE_ERROR:.1%}), and {max(binned):.1e} for percentiles between the least and the most: these are"
        " known as far",
        f"as the buckets of the histogram are narrow (limit {HISTOGRAM_BUCKET_WIDTH:.1%}).",
        "",
        "![Rates over time: the truth as a line, slices of the record as dots](calibration.svg)",
        "",
    ]
    for machine in MACHINES:
        text += [f"## {machine.name.capitalize()}", "", f"{machine.description}.", ""]
        text += ["| quantity | truth | record | error |", "|---|---|---|---|"]
        for row in measured_runs[machine.name][1]:
            error = "0" if row.error == 0 else f"{row.error:.1e}"
            truth, reported = _format_number(row.truth), _format_number(row.reported)
            text.append(f"| {row.quantity} | {truth} {row.unit} | {reported} {row.unit} | {error} |")
        text.append("")
    return "\n".join([*text, *_SECTIONS_AFTER_TABLES])


def draw_rates(measured_runs: Mapping[str, tuple[Run, list[Comparison]]]) -> str:
    """Rates over time of all machines, a panel each, as SVG."""
    width, height, left_margin, top = 360, 150, 60, 30
    box = f"0 0 {2 * (width + left_margin) + 20} {3 * (height + 60)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, machine in enumerate(MACHINES):
        line = measured_runs[machine.name][0].find_line("series", machine.phase)
        scale = 1.0 if machine.operations else 1e6
        slices = [amount / line["slice_s"] / scale for amount in line["ops" if machine.operations else "bytes"]]
        end = len(slices) * line["slice_s"]
        high = 1.15 * max(max(slices), *(rate / scale for _b, _e, rate in machine.series))
        x0, y0 = left_margin + number % 2 * (width + left_margin), top + number // 2 * (height + 60)

        def scale_to_x(seconds: float, x0: int = x0, end: float = end) -> float:
            return round(x0 + seconds / end * width, 1)

        def scale_to_y(value: float, y0: int = y0, high: float = high) -> float:
            return round(y0 + height - value / high * height, 1)

        unit = "op/s" if machine.operations else "MB/s"
        parts.append(f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{machine.name}</text>')
        parts.append(f'<path d="M{x0} {y0}V{y0 + height}H{x0 + width}" fill="none" stroke="#888"/>')
        parts.append(f'<text x="{x0 - 6}" y="{y0 + height}" text-anchor="end">0</text>')
        most = max(rate for _b, _e, rate in machine.series) / scale
        parts.append(f'<text x="{x0 - 6}" y="{scale_to_y(most) + 4}" text-anchor="end">{most:.4g}</text>')
        parts.append(f'<text x="{x0 - 6}" y="{y0 - 8}" text-anchor="end">{unit}</text>')
        parts.append(f'<text x="{x0 + width}" y="{y0 + height + 16}" text-anchor="end">{end:.3g} s</text>')
        for begin, stop, rate in machine.series:
            parts.append(
                f'<path d="M{scale_to_x(begin)} {scale_to_y(rate / scale)}H{scale_to_x(stop)}"'
                ' stroke="#999" stroke-width="5"/>'
            )
        step = max(1, len(slices) // 90)
        dots = "".join(
            f'<circle cx="{scale_to_x((i + 0.5) * line["slice_s"])}" cy="{scale_to_y(slices[i])}" r="1.6"/>'
            for i in range(0, len(slices), step)
        )
        parts.append(f'<g fill="#0072b2">{dots}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments: Sequence[str]) -> int:
    measured_runs = simulate_and_compare_all_machines()
    missed = [(name, row) for name, (_run, rows) in measured_runs.items() for row in rows if not row.holds]
    for name, row in missed:
        print(f"{name}: {row.quantity}: must be {row.truth:.9g} {row.unit}, the record says {row.reported:.9g}")
    if "--check" not in arguments:
        PAGE_FILE.write_text(format_page(measured_runs), encoding="utf-8")
        PICTURE_FILE.write_text(draw_rates(measured_runs), encoding="utf-8")
        print(
            f"{PAGE_FILE.relative_to(ROOT)} and {PICTURE_FILE.name}: "
            f"{sum(len(rows) for _run, rows in measured_runs.values())} quantities"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
