# SPDX-License-Identifier: Apache-2.0
"""Configuration files that their manager does not apply at the start of the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, make_files_of_format, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables

KEYFILE, NETWORK = "bond0.nmconnection", "routes-4.conf"


def make_files(file_format: str) -> dict[str, str]:
    return {name.rpartition("/")[2]: text for name, text in make_files_of_format(file_format).items()}


@pytest.mark.parametrize("is_beside_live_outputs", [True, False])
@pytest.mark.parametrize(
    ("file_format", "name", "old", "new", "option", "expected_sentence"),
    [
        ("networkmanager", KEYFILE, "[ipv4]", "autoconnect=false\n\n[ipv4]", "autoconnect=false", "apply this profile"),
        ("networkmanager", KEYFILE, "[ipv4]", "[ipv4]\nmethod=disabled", "[ipv4] method=disabled", "this IP version"),
        ("networkd", NETWORK, "[Rout", "[Link]\nUnmanaged=yes\n\n[Rout", "Unmanaged=yes", "use this interface"),
        ("networkd", NETWORK, "[Rout", "[Link]\nActivationPolicy=manual\n\n[Rout", "ActivationPolicy=manual",
         "bring this interface up"),
    ],
)  # fmt: skip
def test_file_that_is_not_applied_is_reported(
    tmp_path: Path, file_format: str, name: str, old: str, new: str, option: str, expected_sentence: str,
    is_beside_live_outputs: bool,
) -> None:  # fmt: skip
    files = make_files(file_format)
    live = print_server_outputs() if is_beside_live_outputs else {}
    assert check_outputs(tmp_path, live | files).faults == ()
    files[name] = files[name].replace(old, new, 1)
    (fault,) = check_outputs(tmp_path, live | files).faults
    where = " in the configuration files" if is_beside_live_outputs else ""
    assert (fault.kind, fault.location) == ("not applied at the start", f"{name}, {option}{where}")
    assert expected_sentence in fault.problem


@pytest.mark.parametrize("line", ["autoconnect=true", "autoconnect-priority=0"])
def test_profile_that_is_applied_has_no_fault(tmp_path: Path, line: str) -> None:
    files = make_files("networkmanager")
    files[KEYFILE] = files[KEYFILE].replace("[ipv4]", f"{line}\n\n[ipv4]\nmethod=manual")
    assert check_outputs(tmp_path, files).faults == ()


def test_table_of_a_profile_is_that_of_its_routes() -> None:
    text = "[connection]\ninterface-name=ib0\n[ipv4]\nroute-table=7\nroute1=10.1.0.0/16,10.2.0.1\n"
    text += "route2=10.3.0.0/16,10.2.0.1\nroute2_options=table=9\n"
    routes = parse_host_tables(text, KEYFILE).routes
    assert [(route.destination, route.table) for route in routes or ()] == [("10.1.0.0/16", "7"), ("10.3.0.0/16", "9")]
