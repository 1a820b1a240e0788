-- SPDX-License-Identifier: Apache-2.0
-- Lmod: SONDE_PREFIX is the environment that Sonde was installed into. The file is copied as sonde-iobuf/VERSION.lua.
help([[Buffers small reads and writes of the programs that are started afterwards. Set IOBUF_PARAMS after loading for
other files than those that gain by measurement; SONDE_IOBUF=off switches the buffer off.]])
whatis("Name: sonde-iobuf")
whatis("Description: buffer for small reads and writes, without compiling again")

local prefix = os.getenv("SONDE_PREFIX") or "/opt/sonde"
local library
for minor = 11, 40 do
    local path = pathJoin(prefix, "lib/python3." .. minor .. "/site-packages/sonde/lib/libsonde-preload.so")
    library = isFile(path) and path or library
end
if library == nil then
    LmodError("There is no libsonde-preload.so in " .. prefix .. "; set SONDE_PREFIX to the environment of Sonde.")
end
prepend_path{"LD_PRELOAD", library, delim = " "}
setenv("IOBUF_PARAMS", "*:auto")
