#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the hdf5 backend costs: beside the bare loop over H5Dwrite and H5Dread, in the same library and the same MPI.

Each round lets both write a dataset, rewrite it and read it, in random order; one task without a launcher. Prints the
median of the ratios engine / loop of operations per second over the rounds, with the tenth percentile, the same of
processor time, and the ratio of the fastest round of each, because other programs can only slow a round down; with
--json one object of named figures. With --check the exit code is 1 where the ratio of the fastest rounds is below 0.97.
In memory (/dev/shm) storage costs least, so that the cost shows most. Needs HDF5 for Open MPI with its headers
(libhdf5-openmpi-dev on Debian) and a build: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import sys

from beside.datasets import compare_with_library

if __name__ == "__main__":
    sys.exit(compare_with_library(__doc__, "hdf5", "hdf5-openmpi", "libhdf5-openmpi-dev"))
