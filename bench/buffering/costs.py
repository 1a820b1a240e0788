# SPDX-License-Identifier: Apache-2.0
"""Single calls: what the library adds to one, and what a record costs in it. Measured beside the bare call, in turns of
256 calls within one process (`calls.c`), so that both meet the same machine.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from buffering.programs import Workshop, find_darshan_library, make_low_noise_prefix
from buffering.turns import OWN_VARIABLES

RECORD_BYTES = 1_000
SCATTERED_RECORD_BYTES = 4_096


@dataclass(frozen=True)
class Cost:
    """Nanoseconds of a call: as the program makes it, the bare call, the median of the differences of neighbors; and
    of processor time, of all threads.
    """

    with_ns: float
    bare_ns: float
    added_ns: float
    with_processor_ns: float
    bare_processor_ns: float


@dataclass(frozen=True)
class Calls:
    """The program that measures, and where its file lies."""

    program: Path
    file: Path
    rounds: int

    def of(self, mode: str, record: int, variables: Mapping[str, str]) -> Cost:
        plain = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
        arguments = [*make_low_noise_prefix(), "env", *(f"{name}={value}" for name, value in variables.items())]
        arguments += [str(self.program), mode, str(self.file), str(record), str(self.rounds)]
        done = subprocess.run(arguments, env=plain, capture_output=True, text=True, check=True)
        return Cost(*(float(word) for word in done.stdout.split()))


def measure_call_costs(
    workshop: Workshop, library: Path, base: Path, rounds: int, figures: dict[str, float]
) -> list[str]:
    """Lines of the table; the same goes into `figures`."""
    with tempfile.TemporaryDirectory(dir=base) as folder:
        calls = Calls(workshop.c("calls", "-ldl"), Path(folder) / "data", rounds)
        ours = {"LD_PRELOAD": str(library)}
        return [
            *_measure_added_cost(calls, "nothing in front", {}, figures, "none"),
            *_measure_added_cost(
                calls, "a file that is not buffered", {**ours, "IOBUF_PARAMS": "*:off"}, figures, "not_buffered"
            ),
            *_measure_added_cost(calls, "a traced file", {**ours, "SONDE_TRACE": folder}, figures, "traced"),
            *_measure_darshan_cost(calls, Path(folder), figures),
            *_measure_scattered_cost(calls, {**ours, "IOBUF_PARAMS": "*"}, figures),
            *_measure_record_costs(calls, {**ours, "IOBUF_PARAMS": "*"}, figures),
        ]


def _measure_added_cost(
    calls: Calls, case: str, variables: Mapping[str, str], figures: dict[str, float], key: str, promise: float = 60
) -> list[str]:
    lines = []
    for mode in ("read", "write", "lseek"):
        cost = calls.of(mode, 512, variables)
        figures[f"cost.{key}.{mode}.added_ns"] = cost.added_ns
        broken = " BROKEN" if key in ("not_buffered", "traced") and cost.added_ns > promise else ""
        lines.append(f"{case + ', ' + mode:44} {cost.added_ns:+7.1f} ns a call (bare {cost.bare_ns:.0f} ns){broken}")
    return lines


def _measure_darshan_cost(calls: Calls, folder: Path, figures: dict[str, float]) -> list[str]:
    darshan_library = find_darshan_library()
    if darshan_library is None:
        return ["Darshan: left out, libdarshan.so is not there (DARSHAN_LIB names it)"]
    variables = {
        "LD_PRELOAD": str(darshan_library),
        "DARSHAN_ENABLE_NONMPI": "1",
        "DARSHAN_LOGFILE": str(folder / "log"),
    }
    return _measure_added_cost(calls, "the same under Darshan", variables, figures, "darshan")


def _measure_scattered_cost(calls: Calls, variables: Mapping[str, str], figures: dict[str, float]) -> list[str]:
    lines = []
    for mode in ("random_read", "random_write"):
        cost = calls.of(mode, SCATTERED_RECORD_BYTES, variables)
        ratio = cost.bare_ns / (cost.bare_ns + cost.added_ns)
        figures[f"cost.sleeping.{mode}.added_ns"] = cost.added_ns
        figures[f"cost.sleeping.{mode}.ratio"] = round(ratio, 4)
        label = f"{mode.replace('_', ' ')} of {SCATTERED_RECORD_BYTES} bytes, buffered"
        broken = " BROKEN" if ratio < 0.97 else ""
        lines.append(
            f"{label:44} {cost.added_ns:+7.1f} ns a call (bare {cost.bare_ns:.0f} ns), {ratio:.3f} of its rate{broken}"
        )
    return lines


def _measure_record_costs(calls: Calls, variables: Mapping[str, str], figures: dict[str, float]) -> list[str]:
    """One record of a kilobyte, until the kernel has it: through the buffer, and through a stream of the C library."""
    lines = []
    for key, label, mode, settings in (
        ("write", f"write of {RECORD_BYTES} bytes, buffered", "out", variables),
        ("read", f"read of {RECORD_BYTES} bytes, buffered", "read", variables),
        ("fwrite", f"fwrite of {RECORD_BYTES} bytes (C library)", "fwrite", {}),
    ):
        cost = calls.of(mode, RECORD_BYTES, settings)
        ratio, processor = cost.with_ns / cost.bare_ns, cost.with_processor_ns / cost.bare_processor_ns
        figures[f"record.{key}.ratio"] = round(ratio, 4)
        figures[f"record.{key}.processor_ratio"] = round(processor, 4)
        broken = " BROKEN" if key == "write" and max(ratio, processor) >= 1 else ""
        lines.append(
            f"{label:44} {cost.with_ns:7.1f} ns for {cost.bare_ns:.1f} ns of the system call: {ratio:.2f}; "
            f"processor time of all threads {processor:.2f}{broken}"
        )
    return lines
