#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of one sample of all local sources, as a fraction of one core at the default interval.

With --check the exit code is 1 when the sampler takes more than 0.1 % of a core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from sonde.telemetry.sampler import DEFAULT_INTERVAL_S, TelemetrySampler

MAX_CORE_SHARE = 0.001
WARM_UP, SAMPLES = 20, 500


def measure_sample_s(folder: Path) -> float:
    """Processor seconds of this thread for one sample."""
    with TelemetrySampler(folder / "telemetry.ndjson", interval_s=3600) as sampler:
        for _ in range(WARM_UP):
            sampler.take_sample()
        begin = time.thread_time()
        for _ in range(SAMPLES):
            sampler.take_sample()
        return (time.thread_time() - begin) / SAMPLES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 when sampling takes more than 0.1 %% of a core"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cost_s = measure_sample_s(Path(folder))
        size = (Path(folder) / "telemetry.ndjson").stat().st_size / SAMPLES
    share = cost_s / DEFAULT_INTERVAL_S
    print(
        f"a sample takes {cost_s * 1e6:.0f} us and {size:.0f} bytes: {share:.3%} of a core at {DEFAULT_INTERVAL_S:g} s"
    )
    return int(options.check and share > MAX_CORE_SHARE)


if __name__ == "__main__":
    sys.exit(main())
