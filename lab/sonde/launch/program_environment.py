# SPDX-License-Identifier: Apache-2.0
"""The programming environment of a shell: loaded environment modules and the versions that they set."""

from __future__ import annotations

from collections.abc import Mapping

# Set by modules of Cray's and of other programming environments; the Cray Developer Toolkit (CDT) sets CRAYPE_VERSION.
_VERSION_VARIABLES = (
    "PE_ENV",
    "CRAYPE_VERSION",
    "CRAY_MPICH_VERSION",
    "CRAY_CC_VERSION",
    "EBVERSIONFOSS",
    "EBVERSIONINTEL",
)


def list_loaded_modules(environment: Mapping[str, str]) -> list[str]:
    """Returns the loaded modules (Tcl modules and Lmod) in order, then the versions of the programming environment as
    NAME=VALUE."""
    modules = [name for name in environment.get("LOADEDMODULES", "").split(":") if name]
    return modules + [f"{name}={environment[name]}" for name in _VERSION_VARIABLES if environment.get(name)]
