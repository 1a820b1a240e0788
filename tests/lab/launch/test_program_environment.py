# SPDX-License-Identifier: Apache-2.0
"""The modules of a shell, as Tcl modules, Lmod and the programming environments of Cray set them."""

from __future__ import annotations

from sonde.launch.program_environment import list_loaded_modules


def test_modules_and_versions_keep_their_order() -> None:
    environment = {"LOADEDMODULES": "PrgEnv-cray/8.3::cdt/1.15", "PE_ENV": "CRAY", "CRAYPE_VERSION": "2.7", "HOME": "/"}
    assert list_loaded_modules(environment) == ["PrgEnv-cray/8.3", "cdt/1.15", "PE_ENV=CRAY", "CRAYPE_VERSION=2.7"]
    assert list_loaded_modules({}) == []
