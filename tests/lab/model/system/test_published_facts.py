# SPDX-License-Identifier: Apache-2.0
"""Figures that the five documents publish about their machines are computed from the described systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from sonde.model.system import System, read_system
from sonde.model.system.network import Router
from sonde.model.system.network import StoragePath as Path_
from sonde.model.system.service import FileSystem, Pool, Unit
from sonde.model.system.storage import Enclosure, RaidGroup
from sonde.model.tables.quantity import Quantity

SYSTEMS = Path(__file__).resolve().parents[4] / "systems"


def system(name: str) -> System:
    return read_system(SYSTEMS / f"{name}.toml")


def peak(quantity: Quantity | None) -> float:
    assert quantity is not None
    return float(quantity)


def write_peak(part: FileSystem | Unit | Pool) -> float:
    assert part.peak is not None
    return peak(part.peak.write)


def test_edison_has_the_published_table_of_file_systems() -> None:
    edison = system("edison")
    table = {
        name: (
            write_peak(cast(FileSystem, edison.get_part(name).table)) / 1e9,
            len(edison.find_units(name)),
            len(edison.find_servers(name, "oss")),
            len(edison.find_targets(name, "ost")),
        )
        for name in ("fs1", "fs2", "fs3")
    }
    assert table == {"fs1": (48, 12, 24, 96), "fs2": (48, 12, 24, 96), "fs3": (72, 18, 36, 144)}
    assert sum(row[0] for row in table.values()) == 168
    capacity = [peak(cast(FileSystem, edison.get_part(name).table).capacity) for name in table]
    assert capacity == [2.1e15, 2.1e15, 3.2e15]


def test_edison_states_4_gb_per_s_per_unit_of_each_file_system() -> None:
    edison = system("edison")
    for name in ("fs1", "fs2", "fs3"):
        units = edison.find_units(name)
        peak_rate = write_peak(cast(FileSystem, edison.get_part(name).table))
        assert peak_rate / len(units) == 4e9
        assert sum(write_peak(cast(Unit, edison.get_part(unit).table)) for unit in units) == peak_rate


def test_edison_unit_matches_the_published_parts() -> None:
    edison = system("edison")
    for unit in edison.list_part_ids("units"):
        servers = edison.find_servers(unit)
        assert len(servers) == 2
        assert edison.find_partner(servers[0]) == servers[1]
        assert edison.find_partner(servers[1]) == servers[0]
        assert [len(edison.find_targets(server)) for server in servers] == [4, 4]
        assert len(edison.find_targets(unit)) == 8
    group = edison.find_first_reference("fs3-ost143", "on")
    assert group == "fs3-md143"
    assert len(edison.find_references(group, "drives")) == 10
    assert edison.find_references(group, "spares") == ("fs3-box18-d80", "fs3-box18-d81")
    assert edison.find_first_reference("fs3-ost143", "server") == "fs3-oss36"
    assert edison.find_failover_server("fs3-ost143") == "fs3-oss35"
    assert edison.compute_capacity("fs3-ost143") == 8 * 3 * 10**12
    assert len(edison.list_part_ids("nodes")) == 5576 + 12


def test_edison_has_the_published_cores_and_memory() -> None:
    nodes = [node for node in system("edison").resolve()["nodes"] if node.get("group") == "compute"]
    assert sum(node["cores"] for node in nodes) == 133_824
    assert round(sum(node["memory"] for node in nodes) / 1e12) == 357
    logins = [node for node in system("edison").resolve()["nodes"] if node.get("role") == "login"]
    assert [login["memory"] for login in logins] == [512 * 10**9] * 12


def test_edison_sees_the_file_system_of_the_centre_through_dvs() -> None:
    mounts = {mount["id"]: mount for mount in system("edison").resolve()["mounts"]}
    assert mounts["global-on-compute"]["through"] == "dvs"
    assert {mounts[f"fs{number}-on-compute"]["through"] for number in (1, 2, 3)} == {"native"}


@pytest.mark.parametrize(("lun", "blocks"), [("rs1-L10", 1_138_601_984), ("rs1-L08", 71_162_368 * 8)])
def test_the_rs200_luns_have_the_published_blocks(lun: str, blocks: int) -> None:
    assert system("cray-x1").compute_capacity(lun) == blocks * 512


def test_an_8_and_1_lun_of_the_rs200_is_583_gb_or_543_gib() -> None:
    size = system("cray-x1").compute_capacity("rs1-L10")
    assert size is not None
    assert round(size / 1000**3) == 583
    assert round(size / 1024**3) == 543


def test_rs200_parts_match_the_published_counts() -> None:
    x1 = system("cray-x1")
    drives = [item.id for item in x1.list_parts("drives") if item.id.startswith("rs1-")]
    assert len(drives) == 56
    assert {x1.find_first_reference(drive, "enclosure") for drive in drives} == {f"rs1-s{slot}" for slot in range(2, 6)}
    assert x1.find_first_reference("rs1-a", "enclosure") == x1.find_first_reference("rs1-b", "enclosure") == "rs1-c1"


@pytest.mark.parametrize(
    ("group", "expected_stripe"),
    [
        ("rs2-s2-g2", 256 * 1024),  # 2x2, 128 KiB
        ("rs1-s2-g2", 512 * 1024),  # 4x2, 128 KiB
        ("rs1-s2-g1", 512 * 1024),  # 4+1, 128 KiB
        ("rs1-s4-g1", 1024 * 1024),  # 4+1, 256 KiB
        ("rs1-s4-g2", 2048 * 1024),  # 8+1, 256 KiB
        ("rs2-s5-g1", 1664 * 1024),  # 13+1, 128 KiB
    ],
)
def test_stripes_of_the_cray_x1_match_the_published_table(group: str, expected_stripe: int) -> None:
    assert system("cray-x1").compute_full_stripe(group) == expected_stripe


def test_striped_volume_sums_six_slices_on_two_subsystems() -> None:
    x1 = system("cray-x1")
    assert x1.compute_capacity("xlv0") == 6_831_611_904 * 512
    assert x1.compute_capacity("large") == 853_951_488 * 4096
    luns = [x1.find_first_reference(piece, "on") for piece in x1.find_references("xlv0", "members")]
    owners = [x1.find_first_reference(lun, "controller") for lun in luns if lun]
    assert sorted({str(owner) for owner in owners}) == ["rs2-a", "rs2-b", "rs3-a", "rs3-b"]
    assert x1.compute_capacity("rs3-L06s4") == 262_144 * 512


def test_a_lun_of_the_rs200_has_two_active_and_two_standby_paths() -> None:
    x1 = system("cray-x1")
    paths = [item.table for item in x1.list_parts("paths") if x1.find_first_reference(item.id, "to") == "rs1-L10"]
    assert sorted(cast(Path_, path).state for path in paths) == ["active", "active", "standby", "standby"]


def test_the_routers_of_cumulus_have_the_addresses_of_the_listings() -> None:
    cumulus = system("cumulus")
    assert len(cumulus.list_part_ids("routers")) == 6
    addresses = [
        [address.address for address in cumulus.find_addresses(name)] for name in cumulus.list_part_ids("routers")
    ]
    assert addresses == [[f"10.100.0.{end}", f"10.10.1.{end}"] for end in range(91, 97)]
    assert [address.prefix for address in cumulus.find_addresses("router1")] == [16, 24]
    assert [peak(cast(Router, item.table).weight) for item in cumulus.list_parts("routers")] == [1] * 6
    assert len([name for name in cumulus.list_part_ids("nodes") if name.startswith("nid")]) == 112
    assert cumulus.compute_capacity("wolf") == 8 * 10**15


def test_contradictions_of_the_cumulus_slides_are_documented() -> None:
    notes = " ".join(system("cumulus").notes)
    assert all(word in notes for word in ("10.10.0.11", "table 1", "10.40.1.0/24", "10.132.0.7", "tcp_mem"))


def test_sonexion_1300_servers_sum_to_the_published_rate() -> None:
    sonexion = system("sonexion-1300").resolve()
    rates = {server["id"]: server["rate"] for server in sonexion["servers"] if "rate" in server}
    assert sum(rate["write"] for rate in rates.values()) == 3757e6
    assert sum(rate["read"] for rate in rates.values()) == 4601e6


def test_sonexion_1300_ost_fails_over_to_the_other_server() -> None:
    sonexion = system("sonexion-1300")
    assert [sonexion.find_failover_server(f"ost{number}") for number in (0, 3, 4, 7)] == [
        "oss2",
        "oss2",
        "oss1",
        "oss1",
    ]
    assert sonexion.find_partner("oss1") is None  # only their targets say who takes over
    assert len(sonexion.find_targets("ssu1")) == 8


def test_rs200_bricks_have_the_drives_of_their_layouts() -> None:
    """A layout is called RG, bricks, groups, data drives as one hexadecimal digit."""
    x1 = system("cray-x1")
    for item in x1.list_parts("enclosures"):
        layout = cast(Enclosure, item.table).layout
        if not layout:
            continue
        groups = [group for group in x1.list_parts("raid_groups") if group.id.startswith(f"{item.id}-")]
        data = sum(int(cast(RaidGroup, group.table).data or 0) for group in groups)
        assert layout == f"RG1{len(groups)}{data:X}"
        used = {drive for group in groups for drive in x1.find_references(group.id, "drives")}
        spares = {drive for group in groups for drive in x1.find_references(group.id, "spares")}
        assert len(used | spares) == 14
        assert {x1.find_first_reference(drive, "enclosure") for drive in used | spares} == {item.id}


def test_sonexion_1300_metadata_unit_matches_the_published_parts() -> None:
    sonexion = system("sonexion-1300")
    in_box = [
        item
        for item in sonexion.list_parts("drives")
        if sonexion.find_first_reference(item.id, "enclosure") == "mmu-box"
    ]
    assert len(in_box) == 24
    assert len(sonexion.find_references("mmu-journal", "drives")) == 2
    assert sonexion.compute_capacity("mmu-journal") == 100 * 10**9
    assert sonexion.find_partner("mmu-server1") == "mmu-server2"


def test_cumulus_mounts_wolf_natively_and_through_six_nodes() -> None:
    mounts = {mount["id"]: mount for mount in system("cumulus").resolve()["mounts"]}
    assert mounts["wolf-native"]["through"] == "native"
    assert "via" not in mounts["wolf-native"]
    assert mounts["wolf-dvs"]["via"] == [f"router{number}" for number in range(1, 7)]
    server = system("cumulus").resolve()["servers"][0]
    tuned = [name for name in server["settings"] if name.startswith("net.")]
    assert len(tuned) == 18


def test_cray_x1_system_node_forwards_eleven_times_the_calls() -> None:
    nodes = {node["id"]: node["model"]["call_rate"] for node in system("cray-x1").resolve()["nodes"]}
    assert nodes == {"os-node": 5500.0, "app-node": 500.0}
    links = {link["id"]: link for link in system("cray-x1").resolve()["networks"]}
    assert (links["spc"]["rate"]["read"], links["fc"]["rate"]["read"]) == (500e6, 200e6)


def test_root_lun_of_the_cray_x1_has_the_published_slices() -> None:
    x1 = system("cray-x1")
    capacity = x1.compute_capacity("rs1-L00")
    assert capacity == 80 * 10**9
    assert [x1.compute_capacity(f"root-s{number}") for number in range(4)] == [
        capacity * part // 100 for part in (25, 15, 30, 30)
    ]


def test_the_hpcs_pools_have_the_published_table() -> None:
    demo = system("hpcs-demo")
    table = {
        pool: (
            len(demo.find_units(pool)),
            len(demo.find_servers(pool)),
            len(demo.find_targets(pool)),
            demo.count_pool_clients(pool),
            write_peak(cast(Pool, demo.get_part(pool).table)) / 1e9,
        )
        for pool in demo.list_part_ids("pools")
    }
    assert table == {"FS1": (1, 2, 8, 32, 3), "FS2": (2, 4, 16, 64, 6), "FS3": (4, 8, 32, 128, 12)}
    assert len(demo.list_part_ids("units")) == 7
    assert len(demo.find_targets("demo", "ost")) == 56
    routers = demo.resolve()["routers"]
    storage = [
        side["rate"]["read"] for router in routers for side in router["interfaces"] if side["network"] == "storage"
    ]
    assert sum(storage) > 20e9


def quantities(part: Any) -> Iterator[Quantity]:
    """Every number in a table and in the tables inside it."""
    if isinstance(part, Quantity):
        yield part
    elif is_dataclass(part):
        for member in fields(part):
            yield from quantities(getattr(part, member.name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from quantities(value)
    elif isinstance(part, tuple):
        for value in part:
            yield from quantities(value)


@pytest.mark.parametrize("path", sorted(SYSTEMS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_number_of_a_described_system_has_a_source(path: Path) -> None:
    numbers = [number for source in read_system(path).index.sources for number in quantities(source.table)]
    assert len(numbers) > 5
    assert [number for number in numbers if not number.source or not number.status] == []
