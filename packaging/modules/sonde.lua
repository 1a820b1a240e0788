-- SPDX-License-Identifier: Apache-2.0
-- Lmod: SONDE_PREFIX is the environment that Sonde was installed into. The file is copied as sonde/VERSION.lua.
help([[Measures, explains and improves the I/O of parallel file systems. Begin with: sonde doctor]])
whatis("Name: sonde")
whatis("Description: storage measurement, comparison and diagnosis")

local prefix = os.getenv("SONDE_PREFIX") or "/opt/sonde"
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
