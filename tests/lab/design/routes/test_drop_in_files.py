# SPDX-License-Identifier: Apache-2.0
"""Drop-ins of systemd-networkd whose file has another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.routes.inactive_profile import InactiveProfile
from sonde.design.routes.table_reader import read_host_sources

NETWORK = "[Match]\nName=eth2\n\n[Network]\nAddress=10.160.0.1/20\n"
DROP_IN = "[Route]\nDestination=10.150.0.0/16\nGateway=10.160.15.1\n"
DROP_IN_PATH = "etc/systemd/network/50-eth2.network.d/routes.conf"


def read_inactive_profiles(folder: Path, network_files: list[str]) -> tuple[InactiveProfile, ...]:
    files = []
    for name, text in ((DROP_IN_PATH, DROP_IN), *((name, NETWORK) for name in network_files)):
        files.append(folder / name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(text)
    sources = read_host_sources(files)
    assert sources.live.routes
    return sources.live.inactive_profiles


def test_drop_in_of_a_renamed_file_is_inactive(tmp_path: Path) -> None:
    (profile,) = read_inactive_profiles(tmp_path, ["etc/systemd/network/60-eth2.network"])
    assert (profile.origin, profile.devices) == ("50-eth2.network.d/routes.conf", ("eth2",))
    assert "there is no 50-eth2.network, only 60-eth2.network" in profile.effect
    assert profile.remedy == "rename the folder to 60-eth2.network.d"


@pytest.mark.parametrize("network_files", [
    [], ["etc/systemd/network/50-eth2.network"], ["etc/systemd/network/20-other.network"],
    ["run/systemd/network/50-eth2.network", "etc/systemd/network/60-eth2.network"],
    ["run/systemd/network/60-eth2.network"],
])  # fmt: skip
def test_drop_in_of_another_file_stays_active(tmp_path: Path, network_files: list[str]) -> None:
    assert read_inactive_profiles(tmp_path, network_files) == ()
