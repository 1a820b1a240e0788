# SPDX-License-Identifier: Apache-2.0
"""Datasets of a ZFS pool: mount points, and those that are not to be mounted."""

from __future__ import annotations

import json

import pytest
from planted_layout_faults import check_outputs, make_server_outputs

from sonde.design.layout.faults import LayoutFault

MOUNT = {"target": "/tank/a", "source": "tank/a", "fstype": "zfs", "options": "rw,noatime"}


def find_faults(second: dict[str, str], *mounts: dict[str, str]) -> list[LayoutFault]:
    """The faults of a server with the datasets tank/a, which is sound, and tank/b."""
    first = {"mountpoint": "/tank/a", "mounted": "yes"} | ({"canmount": "on"} if "canmount" in second else {})
    rows = [f"tank/{name}  {key}  {value}  local" for name, values in (("a", first), ("b", second))
            for key, value in values.items()]  # fmt: skip
    outputs = make_server_outputs() | {"zfs": "\n".join(["NAME  PROPERTY  VALUE  SOURCE", *rows]) + "\n"}
    if mounts:
        filesystems = [*json.loads(outputs["findmnt"])["filesystems"], *mounts]
        outputs["findmnt"] = json.dumps({"filesystems": filesystems})
    return list(check_outputs(outputs).faults)


@pytest.mark.parametrize("more", [{}, {"canmount": "on"}])
def test_two_datasets_with_one_mount_point_are_one_fault(more: dict[str, str]) -> None:
    (fault,) = find_faults({"mountpoint": "/tank/a", "mounted": "yes"} | more, MOUNT, MOUNT | {"source": "tank/b"})
    assert (fault.kind, fault.location) == ("mount point twice", "tank/a, tank/b")
    assert "/tank/a" in fault.problem
    assert "2 file systems are mounted here" in fault.consequences[0]


def test_second_dataset_that_is_not_mounted_is_explained() -> None:
    (fault,) = find_faults({"mountpoint": "/tank/a", "mounted": "no", "canmount": "on"}, MOUNT)
    assert (fault.kind, fault.location) == ("mount point twice", "tank/a, tank/b")
    assert "it is not mounted at its mount point" in fault.consequences[0]


def test_unmounted_dataset_of_two_gets_another_mount_point() -> None:
    """Also where no output shows canmount. zfs mount -a would mount it over the other one, or fail."""
    (fault,) = find_faults({"mountpoint": "/tank/a", "mounted": "no"}, MOUNT)
    assert (fault.kind, fault.location) == ("mount point twice", "tank/a, tank/b")
    assert fault.problem == "they have the same mount point, /tank/a; tank/b is not mounted"
    assert fault.remedy.startswith("zfs inherit mountpoint tank/b ")
    assert "do not zfs mount -a before" in fault.remedy


def test_read_only_property_explains_the_mount() -> None:
    second = {"mountpoint": "/tank/b", "mounted": "yes", "readonly": "on"}
    mount = {"target": "/tank/b", "source": "tank/b", "fstype": "zfs", "options": "ro,noatime"}
    (fault,) = find_faults(second, MOUNT, mount)
    assert (fault.kind, fault.location) == ("mounted read-only", "tank/b")
    (fault,) = find_faults(second | {"readonly": "off"}, MOUNT, mount)
    assert (fault.kind, fault.location) == ("mounted read-only", "/tank/b")


@pytest.mark.parametrize("second", [
    {"mountpoint": "/tank/a", "mounted": "no", "canmount": "off"},
    {"mountpoint": "/tank/b", "mounted": "no", "canmount": "noauto"},
    {"mountpoint": "legacy", "mounted": "no", "canmount": "on"}, {"mountpoint": "none", "mounted": "no"},
    {"mountpoint": "/tank/b", "mounted": "yes", "canmount": "on"}])  # fmt: skip
def test_dataset_without_a_mount_is_sound(second: dict[str, str]) -> None:
    assert find_faults(second, MOUNT) == []


def test_dataset_that_should_be_mounted_is_reported() -> None:
    (fault,) = find_faults({"mountpoint": "/tank/b", "mounted": "no", "canmount": "on"}, MOUNT)
    assert (fault.kind, fault.location) == ("not mounted", "tank/b")


def test_dataset_that_an_import_does_not_mount_is_reported() -> None:
    second = {"mountpoint": "/tank/b", "mounted": "yes", "canmount": "noauto"}
    (fault,) = find_faults(second, MOUNT)
    assert (fault.kind, fault.location) == ("not mounted at a start", "tank/b")
    assert find_faults(second | {"mountpoint": "/"}, MOUNT) == []


def test_file_system_mounted_over_another_is_reported() -> None:
    (fault,) = find_faults(
        {"mountpoint": "/tank/b", "mounted": "yes"},
        {"target": "/scratch", "source": "/dev/mapper/vg-new", "fstype": "xfs", "options": "rw,noatime,largeio"},
    )
    assert (fault.kind, fault.location) == ("mounted over", "/scratch")


def find_dataset_kinds(values: dict[str, str], sibling: str = "yes") -> list[tuple[str, str]]:
    """Kinds and locations of the faults of a dataset next to two others; `sibling` is whether the second is mounted."""
    rows = [f"tank/{name}  {key}  {value}  local" for name, facts in (
        ("a", {"mountpoint": "/tank/a", "canmount": "on", "mounted": "yes"}),
        ("c", {"mountpoint": "/tank/c", "canmount": "on" if sibling == "yes" else "noauto", "mounted": sibling}),
        ("b", values)) for key, value in facts.items()]  # fmt: skip
    outputs = make_server_outputs() | {"zfs": "\n".join(["NAME  PROPERTY  VALUE  SOURCE", *rows]) + "\n"}
    return [(fault.kind, fault.location) for fault in check_outputs(outputs).faults]


def test_unmounted_dataset_with_mounted_siblings_is_reported() -> None:
    values = {"mountpoint": "/tank/b", "canmount": "noauto", "mounted": "no"}
    assert find_dataset_kinds(values) == [("not mounted", "tank/b")]
    assert find_dataset_kinds(values, sibling="no") == []
    for sound in ({"canmount": "off"}, {"mountpoint": "/"}, {"mountpoint": "legacy"}, {"mounted": "yes"}):
        assert ("not mounted", "tank/b") not in find_dataset_kinds(values | sound)
