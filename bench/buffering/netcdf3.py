# SPDX-License-Identifier: Apache-2.0
"""A netCDF-3 file with a record variable, written and read step by step: netcdf3.py write|read FILE STEPS.

Needs the package netCDF4, which brings the C library.
"""

import importlib
import sys

import numpy as np

CELLS = 1000


def main() -> int:
    netcdf = importlib.import_module("netCDF4")
    action, file, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if action == "write":
        with netcdf.Dataset(file, "w", format="NETCDF3_CLASSIC") as output:
            output.createDimension("time", None)
            output.createDimension("cell", CELLS)
            names = [output.createVariable(name, "f8", ("time", "cell")) for name in ("t", "u", "v")]
            for step in range(steps):
                for variable in names:
                    variable[step, :] = np.full(CELLS, step, dtype="f8")
        return 0
    with netcdf.Dataset(file) as dataset:
        wrong = sum(int(dataset["u"][step, CELLS // 2] != step) for step in range(steps))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
