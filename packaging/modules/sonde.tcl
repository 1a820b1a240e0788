#%Module1.0
# SPDX-License-Identifier: Apache-2.0
# Environment Modules: SONDE_PREFIX is the environment that Sonde was installed into. Copied as sonde/VERSION.
proc ModulesHelp {} {
    puts stderr "Measures, explains and improves the I/O of parallel file systems. Begin with: sonde doctor"
}
module-whatis "storage measurement, comparison and diagnosis"

if {[info exists ::env(SONDE_PREFIX)]} {
    set prefix $::env(SONDE_PREFIX)
} else {
    set prefix /opt/sonde
}
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path XDG_DATA_DIRS $prefix/share
