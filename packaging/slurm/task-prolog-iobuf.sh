#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TaskProlog of Slurm: every task gets the buffer. Lines "export NAME=value" become variables of the task.
# Set the path of the library here.
library=${SONDE_IOBUF_LIBRARY:-/opt/sonde/libsonde-preload.so}

[ -r "$library" ] || exit 0
[ "${SONDE_IOBUF:-}" != off ] || exit 0
echo "export LD_PRELOAD=$library${LD_PRELOAD:+ $LD_PRELOAD}"
[ -n "${IOBUF_PARAMS:-}${SONDE_IOBUF_FILE:-}" ] || echo "export IOBUF_PARAMS=*:auto"
[ -n "${SONDE_IOBUF_SUMMARY:-}" ] || echo "export SONDE_IOBUF_SUMMARY=syslog"
