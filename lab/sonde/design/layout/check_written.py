# SPDX-License-Identifier: Apache-2.0
"""Compares the attributes that the scripts of a plan write with the observed ones, and lists those not compared.

`COMPARISONS` has a row for each option of each command in a script: its comparison, or the reason why there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_planned_devices import DEVICE_SUBJECTS
from sonde.design.layout.faults import MAKE_AS_PLANNED, LayoutFault
from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage
from sonde.design.layout.observe_written import (
    Observer,
    PlanView,
    observe_array_drives,
    observe_array_layouts,
    observe_array_levels,
    observe_array_spares,
    observe_array_versions,
    observe_bitmaps,
    observe_bytes_per_inode,
    observe_extent_sizes,
    observe_labels,
    observe_log_units,
    observe_partition_names,
    observe_partitions,
    observe_physical_starts,
    observe_pool_properties,
    observe_reserved_space,
    observe_stripe_counts,
    observe_stripe_sizes,
    observe_vdevs,
)
from sonde.design.layout.observe_written_lustre import (
    observe_backends,
    observe_failover_nodes,
    observe_management_nodes,
    observe_management_targets,
    observe_request_sizes,
    observe_target_file_systems,
    observe_target_names,
    observe_target_numbers,
)
from sonde.design.layout.written_attributes import WrittenAttribute

_SET_REMEDY = "set it as the script of sonde layout plan does"


@dataclass(frozen=True)
class AttributeComparison:
    """How an attribute is compared: `subject` is the subject of its comparisons. Without `observe` another rule makes
    them."""

    subject: str
    observe: Observer | None = None
    cost: str = ""
    remedy: str = MAKE_AS_PLANNED
    attribute: str = ""  # its name in observations, where peers are compared by it


_NAMES_REASON = "nothing depends on the name"
_NO_DEVICE_REASON = (
    "the plan names no device for it, or no output shows its links in /dev, its WWN or its serial number"
)
_PARTITIONS_REASON = "the partitions are compared, not the disk that the command names"
_ANSWER_REASON = "it changes how a tool asks or rounds, not what it makes"
_SHELL_VARIABLE_REASON = "the script takes it from a variable of the shell; give lnet of the network in the system file"
_UNASSIGNED_REASON = "the outputs show it, but not for which of their parts it was planned (lsblk and findmnt tell)"
_FSTAB_REASON = "the mount is compared, not the line of fstab"
_SWAP_REASON = "no output of swap is read"
_BTRFS_REASON = "no output of btrfs is read"
_EXTERNAL_JOURNAL_REASON = "dumpe2fs prints the UUID of an external journal, not its device"

# The reasons for which attributes are not compared.
REASONS: Mapping[tuple[str, str], str] = {
    ("mdadm", "--create"): _NAMES_REASON, ("mdadm", "--name"): _NAMES_REASON, ("mdadm", "--run"): _ANSWER_REASON,
    ("mdadm", ""): _NO_DEVICE_REASON,
    ("sgdisk", ""): _PARTITIONS_REASON, ("sgdisk", "--clear"): _ANSWER_REASON,
    ("sgdisk", "--set-alignment"): _ANSWER_REASON,
    ("partx", "--update"): _ANSWER_REASON, ("settle", ""): _ANSWER_REASON,
    ("pvcreate", ""): _NO_DEVICE_REASON, ("vgcreate", ""): _NO_DEVICE_REASON, ("lvcreate", ""): _NAMES_REASON,
    ("lvcreate", "--name"): _NAMES_REASON,
    ("mkfs.xfs", ""): _NO_DEVICE_REASON, ("mke2fs", ""): _NO_DEVICE_REASON, ("mkfs.btrfs", ""): _NO_DEVICE_REASON,
    ("mkfs.btrfs", "--label"): _BTRFS_REASON,
    ("mkswap", ""): _SWAP_REASON, ("mkswap", "--label"): _SWAP_REASON, ("swapon", ""): _SWAP_REASON,
    ("zpool", "-O mountpoint"): "zfs set replaces it at once", ("zfs", ""): _NAMES_REASON,
    ("printf", ""): _FSTAB_REASON, ("mount", ""): _NO_DEVICE_REASON, ("mkdir", ""): _NAMES_REASON,
    ("mkdir", "-p"): _ANSWER_REASON,
    ("mkfs.lustre", ""): _NO_DEVICE_REASON,
    ("mkfs.lustre", "--mkfsoptions -J device"): _EXTERNAL_JOURNAL_REASON,
    ("require_mount", ""): "the bitmaps in that folder are compared", ("lctl", ""): _ANSWER_REASON,
    ("lctl", "-P"): _ANSWER_REASON,
    ("chmod", ""): "only on this machine the permissions of a directory are read",
}  # fmt: skip

COMPARISONS: Mapping[tuple[str, str], AttributeComparison] = {
    # ---- arrays, slices and volumes
    ("mdadm", "--level"): AttributeComparison(
        "the planned RAID level", observe_array_levels,
        "another number of drives may fail, and writes take another number of transfers", attribute="level"),
    ("mdadm", "--raid-devices"): AttributeComparison("the planned number of drives", observe_array_drives,
                                            "another stripe, and other drives may fail", attribute="devices"),
    ("mdadm", "--chunk"): AttributeComparison("the planned chunk"),
    ("mdadm", "--bitmap"): AttributeComparison(
        "the planned position of the bitmap", observe_bitmaps,
        "writes of the bitmap go to other drives than planned",
        "mdadm --grow --bitmap=none, then --bitmap= with the planned position", "bitmap_position"),
    ("mdadm", "--metadata"): AttributeComparison("the planned version of metadata", observe_array_versions,
                                        "data begins at another place of the drives", attribute="metadata"),
    ("mdadm", "--layout"): AttributeComparison("the planned layout of copies or parity", observe_array_layouts,
                                      "data and parity or copies lie on other drives: reads have another rate",
                                      "save the data, then mdadm --grow --layout= with the planned one", "layout"),
    ("mdadm", "--spare-devices"): AttributeComparison(
        "the planned number of spares", observe_array_spares,
        "after the loss of fewer drives than planned nothing takes over", "mdadm --manage --add a drive", "spares"),
    ("sgdisk", "--new"): AttributeComparison(
        "the planned slices", observe_partitions, "slices begin or end at other places",
        attribute="start"),
    ("sgdisk", "--change-name"): AttributeComparison(
        "the planned names of partitions", observe_partition_names,
        "what uses /dev/disk/by-partlabel takes another one",
        "sgdisk --change-name as the script of sonde layout plan does"),
    ("pvcreate", "--dataalignment"): AttributeComparison("the planned begin of data in a physical volume",
                                                observe_physical_starts, "extents do not begin at stripes",
                                                attribute="data_start"),
    ("vgcreate", "--physicalextentsize"): AttributeComparison("the planned size of extents", observe_extent_sizes,
                                                     "volumes begin and end at other places",
                                                     attribute="extent_bytes"),
    ("lvcreate", "--stripes"): AttributeComparison("the planned number of stripes", observe_stripe_counts,
                                          "another number of members works for a task", attribute="stripes"),
    ("lvcreate", "--stripesize"): AttributeComparison("the planned stripe size", observe_stripe_sizes,
                                             "requests of the preferred size leave members out",
                                             attribute="stripe_unit"),
    ("lvcreate", "--extents"): AttributeComparison("the planned capacity"),
    # ---- local file systems
    ("mkfs.xfs", "-L"): AttributeComparison("the planned label", observe_labels, "the line of fstab does not find it",
                                 "umount it, then xfs_admin -L with the planned label, or correct the system file"),
    ("mkfs.xfs", "-b size"): AttributeComparison("the planned block"),
    ("mkfs.xfs", "-d agsize"): AttributeComparison("the planned agsize in blocks"),
    ("mkfs.xfs", "-d size"): AttributeComparison("the planned capacity"),
    ("mkfs.xfs", "-d sunit"): AttributeComparison("the planned sunit"),
    ("mkfs.xfs", "-d swidth"): AttributeComparison("the planned swidth"),
    ("mkfs.xfs", "-d noalign"): AttributeComparison("the planned sunit"),
    ("mkfs.xfs", "-l logdev"): AttributeComparison("the planned position of the log"),
    ("mkfs.xfs", "-l size"): AttributeComparison("the planned size of the log"),
    ("mkfs.xfs", "-l su"): AttributeComparison("the planned stripe unit of the log", observe_log_units,
                                      "commits are written in pieces that are no whole segment", attribute="log_unit"),
    ("mke2fs", "-t"): AttributeComparison("the planned kind"),
    ("mke2fs", "-L"): AttributeComparison("the planned label", observe_labels, "the line of fstab does not find it",
                                 "e2label with the planned label, or correct the system file"),
    ("mke2fs", "-b"): AttributeComparison("the planned block"),
    ("mke2fs", "-E stride"): AttributeComparison("the planned sunit"),
    ("mke2fs", "-E stripe_width"): AttributeComparison("the planned swidth"),
    ("mke2fs", "-J size"): AttributeComparison("the planned size of the log"),
    ("mke2fs", "-m"): AttributeComparison("the planned space for root", observe_reserved_space,
                                 "users cannot use it", "tune2fs -m 0", attribute="reserved"),
    ("mke2fs", "-T"): AttributeComparison("the planned bytes for each inode", observe_bytes_per_inode,
                                 "inodes take space that files need, and make checks longer"),
    # ---- ZFS
    ("zpool", ""): AttributeComparison("the planned vdevs", observe_vdevs, "other drives may fail, and another rate",
                                     attribute="vdevs"),
    **{("zpool", f"{flag} {name}"): AttributeComparison(f"the planned {name}", observe_pool_properties, cost, remedy,
                                                          name)
       for flag, name, cost, remedy in (
           ("-o", "ashift", "writes smaller than a sector of the drives, or lost space", MAKE_AS_PLANNED),
           ("-O", "recordsize", "requests to the drives have another size", _SET_REMEDY),
           ("-O", "atime", "every read writes", _SET_REMEDY),
           ("-O", "xattr", "attributes lie in hidden directories, and take further requests", _SET_REMEDY),
           ("-O", "compression", "another amount of data is written, and processors have another load", _SET_REMEDY),
    )},
    ("zfs", "mountpoint"): AttributeComparison("the planned mountpoint", observe_pool_properties,
                                      "programs write to another file system", _SET_REMEDY),
    # ---- mounts and queues
    ("mount", "-o noatime"): AttributeComparison("mount options"),
    **{("mount", f"-o {name}"): AttributeComparison(f"the planned {name}")
       for name in ("logbsize", "largeio", "swalloc", "stripe")},
    ("mount", "-o logdev"): AttributeComparison("the planned position of the log"),
    **{("queue", f"{folder}/{name}"): AttributeComparison(f"the planned {name}") for folder, name in (
        ("queue", "read_ahead_kb"), ("queue", "scheduler"), ("queue", "max_sectors_kb"), ("queue", "nr_requests"),
        ("device", "queue_depth"), ("md", "stripe_cache_size"), ("md", "group_thread_cnt"))},
    # ---- Lustre
    ("mkfs.lustre", "--fsname"): AttributeComparison("the planned file system of targets", observe_target_file_systems,
                                            "its clients do not see these targets"),
    **{("mkfs.lustre", option): AttributeComparison("the planned targets", observe_target_names,
                                           "clients look for another target, or two stand for one", attribute="index")
       for option in ("--index", "--mdt", "--ost")},
    ("mkfs.lustre", "--mgs"): AttributeComparison("the planned management target", observe_management_targets,
                                         "no target can register"),
    ("mkfs.lustre", "--mgsnode"): AttributeComparison("the planned management servers", observe_management_nodes,
                                             "it does not find the management server, or not after a failover",
                                             "unmount it, then tunefs.lustre --mgsnode= with the planned ones",
                                             attribute="management"),
    ("mkfs.lustre", "--servicenode"): AttributeComparison(
        "the planned failover servers", observe_failover_nodes, "its data is out of reach while its server is down",
        "unmount it, then tunefs.lustre --erase-params with all of its planned parameters", "failover"),
    ("mkfs.lustre", "--backfstype"): AttributeComparison(
        "the planned backend", observe_backends, "other settings apply to it"),
    **{("mkfs.lustre", f"--mkfsoptions {option}"): AttributeComparison(
        subject, observe_target_numbers, cost, remedy, attribute)
       for option, subject, attribute, cost, remedy in (
           ("-b", "the planned block of targets", "block", "metadata take another amount of space", MAKE_AS_PLANNED),
           ("-E stride", "the planned stride of targets", "unit", "bitmaps of all groups may lie on one drive",
            MAKE_AS_PLANNED),
           ("-E stripe_width", "the planned stripe width of targets", "width", "allocations do not begin at stripes",
            "unmount it, then tune2fs -E stripe_width= with the planned one in blocks"),
           ("-J size", "the planned journal of targets", "log", "a smaller one limits creates and writes, a larger one"
            " takes memory of the server",
            "unmount it, then tune2fs -O ^has_journal, e2fsck -f, and tune2fs -J size= with the planned size"),
    )},
    ("lctl", "brw_size"): AttributeComparison("the planned brw_size", observe_request_sizes,
                                     "requests to the drives are no whole stripes", _SET_REMEDY),
}  # fmt: skip


def find_written_faults(
    observed_storage: ObservedStorage, file_systems: Sequence[ObservedFileSystem], written: Sequence[WrittenAttribute]
) -> Iterator[LayoutFault | CheckedItem]:
    """Observed values that differ from the written ones. `file_systems` are those that the plan is for."""
    view = PlanView(observed_storage, tuple(file_systems), tuple(written))
    for key in dict.fromkeys(attribute.key for attribute in written):
        comparison = COMPARISONS.get(key)
        if comparison is None or comparison.observe is None:
            continue
        for observation in comparison.observe(view, key):
            yield CheckedItem(comparison.subject, observation.location)
            if not observation.agrees:
                name = comparison.subject.removeprefix("the planned ")
                yield LayoutFault(
                    "not as planned", observation.location,
                    f"{name}: {observation.observed}; planned is {observation.planned}",
                    observation.cost or comparison.cost, comparison.remedy,
                    (comparison.attribute,) if comparison.attribute else (), planned=observation.planned,
                )  # fmt: skip


def list_not_compared(
    written: Sequence[WrittenAttribute],
    checked_subjects: Collection[str],
    observed_storage: ObservedStorage | None = None,
) -> tuple[str, ...]:
    """Written attributes that were not compared, with the reason; attributes of one reason in one text."""
    view = PlanView(
        observed_storage or ObservedStorage(), (observed_storage or ObservedStorage()).file_systems, tuple(written)
    )
    names_by_reason: dict[str, dict[str, None]] = {}
    for program, option in dict.fromkeys(attribute.key for attribute in written):
        comparison = COMPARISONS.get((program, option))
        subjects = {DEVICE_SUBJECTS.get((program, option), ""), comparison.subject if comparison is not None else ""}
        if subjects & set(checked_subjects):
            continue
        name = f"{program} {option}" if option else f"the arguments of {program}"
        if comparison is None:
            reason = REASONS.get((program, option), "no rule reads it")
        else:
            values = [attribute.value for attribute in written if attribute.key == (program, option)]
            is_variable = all(value.startswith("$") and "(" not in value for value in values)
            reason = (
                _SHELL_VARIABLE_REASON
                if is_variable
                else _UNASSIGNED_REASON
                if _is_shown_elsewhere(view, (program, option), comparison)
                else "no output shows it"
            )
        names_by_reason.setdefault(reason, {})[name] = None
    return tuple(f"{', '.join(names)}, because {reason}" for reason, names in names_by_reason.items())


def _is_shown_elsewhere(view: PlanView, key: tuple[str, str], comparison: AttributeComparison) -> bool:
    """Whether outputs show an attribute of some part, which they do not connect to the planned file system."""
    name = key[1].rpartition("/")[2]
    disks = view.storage.disks.values()
    if key[0] == "queue":
        return any(name in {**disk.queue, **disk.settings} or (name == "queue_depth" and disk.queue_depth is not None)
                   for disk in disks)  # fmt: skip
    if key[0] == "mount":
        return any(each.options for each in view.storage.file_systems)
    if comparison.observe is None:
        return False
    unassigned = PlanView(view.storage, (), view.written)
    return any(True for each in (view, unassigned) for _ in comparison.observe(each, key))
