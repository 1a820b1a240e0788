#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pnetcdf backend costs: beside the bare loop over ncmpi_put_vara and ncmpi_get_vara, in the same library and
the same MPI. The variable is that of IOR: a record, whose rows are the transfers.

See `--help` of bench/hdf5.py for what is measured and printed. Needs PnetCDF for Open MPI with its headers
(libpnetcdf-dev on Debian) and a build: cmake --preset dev && cmake --build --preset dev.
"""

from __future__ import annotations

import sys

from beside.datasets import compare_with_library

if __name__ == "__main__":
    sys.exit(compare_with_library(__doc__, "pnetcdf", "pnetcdf", "libpnetcdf-dev"))
