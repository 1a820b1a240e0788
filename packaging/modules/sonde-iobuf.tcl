#%Module1.0
# SPDX-License-Identifier: Apache-2.0
# Environment Modules: SONDE_PREFIX is the environment that Sonde was installed into. Copied as sonde-iobuf/VERSION.
proc ModulesHelp {} {
    puts stderr "Buffers small reads and writes of the programs that are started afterwards. Set IOBUF_PARAMS after"
    puts stderr "loading for other files than those that gain by measurement; SONDE_IOBUF=off switches the buffer off."
}
module-whatis "buffer for small reads and writes, without compiling again"

if {[info exists ::env(SONDE_PREFIX)]} {
    set prefix $::env(SONDE_PREFIX)
} else {
    set prefix /opt/sonde
}
set library [lindex [glob -nocomplain $prefix/lib/python3*/site-packages/sonde/lib/libsonde-preload.so] end]
if {$library eq ""} {
    puts stderr "There is no libsonde-preload.so in $prefix; set SONDE_PREFIX to the environment of Sonde."
    break
}
prepend-path -d " " LD_PRELOAD $library
setenv IOBUF_PARAMS "*:auto"
