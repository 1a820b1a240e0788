# SPDX-License-Identifier: Apache-2.0
"""Checks the components of a server that are no block devices: adapters, enclosures, settings, and the kernel log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.attribute_rules import apply_rules
from sonde.design.layout.check_services import find_service_faults
from sonde.design.layout.component_rules import COMPONENT_RULES, SOUND_STATES
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import ObservedStorage
from sonde.model.units import format_bytes, format_count_with_noun

# Errors of these kinds also happen on sound servers: this many are a fault.
_LEAST_COUNTS = {"resets of a link": 3, "errors of PCI Express": 5, "timeouts": 2}
_OF_FILE_SYSTEMS = "errors of a file system"
_ERROR_COSTS = {
    "errors of PCI Express": "packets are repeated, or the link runs with fewer lanes: the device is slower",
    _OF_FILE_SYSTEMS: "its structure is damaged, or it stopped: programs get errors",
    "hung tasks": "a program has waited for more than two minutes for storage",
    "resets of a link": "requests wait for seconds while the link is set up again",
    "adapter faults": "all drives behind it wait while it is reset",
}
_ERROR_REMEDIES = {
    "bad sectors": "smartctl -a shows whether it wears out; scrub its array, and replace it if the number grows",
    "errors of PCI Express": "reseat the card or drive, look at its slot and riser (lspci -vv: LnkSta, UESta)",
    _OF_FILE_SYSTEMS: "stop its use, save the log, then check it (xfs_repair -n, e2fsck -fn)",
    "hung tasks": "look which device is slow at that time (iostat -x), and for errors before this message",
    "adapter faults": "update its firmware, look at its temperature and slot; replace it if it happens again",
}
_ADAPTER_STATUS, _BATTERY_FAILED = "adapter not optimal", "cache battery failed"
_SLOW_SWAP_KIB = 1024 * 1024
_FIRMWARE = ("version_fw", "fw_version", "fwrev")
_PEER_ATTRIBUTES = (*_FIRMWARE, "speed", "rev", "current_link_speed", "current_link_width")


def find_component_faults(observed_storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of components."""
    attributes = _join_attributes(observed_storage)
    yield from _drop_consequences([
        each
        for (kind, name), values in attributes.items()
        for each in apply_rules(COMPONENT_RULES, kind, name, values)
    ])  # fmt: skip
    for (kind, name), values in attributes.items():
        if kind == "swap":
            yield from _check_used_swap(name, values)
        if kind == "adapter":
            yield from _check_link(name, values)
    for disk in observed_storage.disks.values():
        yield from _check_link(disk.name, disk.settings)
    yield from _compare_models(attributes)
    yield from _find_kernel_errors(observed_storage)
    yield from find_service_faults(observed_storage)


def _join_attributes(observed_storage: ObservedStorage) -> dict[tuple[str, str], dict[str, str]]:
    """The attributes of each component by kind and name. Volumes of ssacli have `adapter_cache`, the kind of drives of
    an adapter with a cache, because volumes of flash do without it."""
    attributes: dict[tuple[str, str], dict[str, str]] = {}
    for each in observed_storage.components:
        if each.kind not in ("service", "kernel errors"):
            attributes.setdefault((each.kind, each.name), {}).update(each.attributes)
    for (kind, name), values in attributes.items():
        adapter = _name_adapter(name)
        if kind == "RAID volume" and attributes.get(("RAID adapter", adapter), {}).get("Cache Board Present") == "True":
            drives = [drive for (part, drive_name), drive in attributes.items()
                      if part == "RAID drive" and _name_adapter(drive_name) == adapter]  # fmt: skip
            is_flash = any("Solid State" in drive.get("Interface Type", "") for drive in drives)
            values["adapter_cache"] = "flash" if is_flash else "rotating"
    return attributes


def _name_adapter(part_name: str) -> str:
    """The adapter of a part: c0 of "c0 v0/1" for storcli, slot 0 of "slot 0 volume 1" for ssacli."""
    return " ".join(part_name.split()[: 2 if part_name.startswith("slot ") else 1])


def list_unknown_states(observed_storage: ObservedStorage) -> list[str]:
    """The states that tools print and that are neither sound nor the subject of a rule, with their parts."""
    parts_by_state: dict[tuple[str, str, str], list[str]] = {}
    for (kind, name), values in _join_attributes(observed_storage).items():
        for (part, attribute), sound in SOUND_STATES.items():
            value = values.get(attribute, "")
            patterns = [rule.faulty for rule in COMPONENT_RULES if (rule.part, rule.attribute) == (kind, attribute)]
            if part == kind and value and not any(re.fullmatch(pattern, value) for pattern in (sound, *patterns)):
                parts_by_state.setdefault((kind, attribute, value), []).append(name)
    return [f"the {attribute} {value} of the {kind} {join_first_names(names)}, which no rule is about"
            for (kind, attribute, value), names in parts_by_state.items()]  # fmt: skip


def _drop_consequences(
    results: Sequence[LayoutFault | CheckedItem],
) -> Iterator[LayoutFault | CheckedItem]:
    """The results of parts without the status of an adapter of which another part has a fault, and
    without the write-through cache of a volume whose adapter has a failed battery."""
    faults = [each for each in results if isinstance(each, LayoutFault)]
    causes = [f"{fault.location} " for fault in faults if fault.kind != _ADAPTER_STATUS]
    adapters_without_battery = {_name_adapter(fault.location) for fault in faults if fault.kind == _BATTERY_FAILED}
    for each in results:
        if isinstance(each, LayoutFault):
            if each.kind == _ADAPTER_STATUS and any(cause.startswith(f"{each.location} ") for cause in causes):
                continue
            if each.kind == "write-through cache" and _name_adapter(each.location) in adapters_without_battery:
                continue
        yield each


def find_component_differences(
    storage_by_host: Mapping[str, ObservedStorage], hosts: Sequence[str]
) -> Iterator[LayoutFault | CheckedItem]:
    """Settings of processors and memory, and firmware of adapters, in which hosts with the same storage differ."""
    values: dict[str, dict[str, str]] = {}
    for host in hosts:
        for each in storage_by_host[host].components:
            names = {"processors": each.attributes, "memory": each.attributes.keys() - {"min_free_kbytes"},
                     "adapter": each.attributes.keys() & set(_FIRMWARE)}.get(each.kind, ())  # fmt: skip
            for name in names:
                title = f"{name} of the {each.kind} {each.name}".removesuffix(f" {each.kind}")
                values.setdefault(title, {})[host] = each.attributes[name]
    for title, by_host in values.items():
        if len(by_host) < len(hosts):
            continue
        yield CheckedItem(title, ", ".join(hosts))
        if len(set(by_host.values())) > 1:
            texts = ", ".join(f"{value} on {host}" for host, value in by_host.items())
            yield LayoutFault(
                "hosts differ", ", ".join(hosts), f"{title} is {texts}",
                "after a failover targets behave in another way than before", "set the same on all of them", (title,),
            )  # fmt: skip


def _check_used_swap(path: str, values: Mapping[str, str]) -> Iterator[LayoutFault | CheckedItem]:
    yield CheckedItem("used swap", path)
    size, used = int(values["kib"]), int(values["used_kib"])
    if used > _SLOW_SWAP_KIB and 2 * used > size:
        yield LayoutFault(
            "memory is short", path, f"{format_bytes(used * 1024)} of {format_bytes(size * 1024)} of swap are used",
            "services wait for pages that come back from the swap space, and the page cache has little memory",
            "find what takes the memory (smem, ps; the ARC of ZFS and the caches of Lustre have limits), then swapoff"
            " and swapon", ("used_kib",),
        )  # fmt: skip


def _read_number(text: str) -> float:
    match = re.match(r"[\d.]+", text)
    return float(match[0]) if match else 0.0


def _check_link(name: str, values: Mapping[str, str]) -> Iterator[LayoutFault | CheckedItem]:
    """The link of a device to the processor: lanes and rate against what the device, and the port above it, can do."""
    width, most_lanes = values.get("current_link_width", ""), values.get("max_link_width", "")
    speed, most_speed = (values.get(f"{prefix}_link_speed", "") for prefix in ("current", "max"))
    if not (_read_number(width) and _read_number(most_lanes)):
        return
    yield CheckedItem("link of PCI Express", name)
    texts = []
    if _read_number(width) < _read_number(most_lanes):
        port = values.get("port_max_link_width", "")
        reason = f" (the port above it has {port})" if 0 < _read_number(port) < _read_number(most_lanes) else ""
        texts.append(f"{width} of {most_lanes} lanes{reason}")
    reachable = min(_read_number(most_speed), _read_number(values.get("port_max_link_speed", "")) or 1e9)
    if 0 < _read_number(speed) < reachable:
        texts.append(f"{speed} instead of {most_speed}")
    if texts:
        yield LayoutFault(
            "slow link of PCI Express", name, f"its link runs with {' and '.join(texts)}",
            "it moves at most that fraction of its rate: all drives behind an adapter share it",
            "put it in a slot with as many lanes, or reseat it; look at riser and cable, and at lspci -vv (LnkSta)",
            ("current_link_width", "current_link_speed"),
        )  # fmt: skip


def _compare_models(attributes: Mapping[tuple[str, str], Mapping[str, str]]) -> Iterator[LayoutFault | CheckedItem]:
    """Firmware, rate and link of adapters, and of enclosures, of one model."""
    groups: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for (kind, name), values in attributes.items():
        titles = ("board_name", "model_name", "modelname", "model")
        model = next((values[title] for title in titles if values.get(title)), "")
        if kind in ("adapter", "enclosure") and model and "Linkdown" not in values.get("port_state", ""):
            groups.setdefault((kind, model.strip()), {})[name] = values
    for (kind, model), parts in groups.items():
        for attribute in _PEER_ATTRIBUTES if len(parts) > 1 else ():
            values = {name: each[attribute].strip() for name, each in parts.items() if each.get(attribute)}
            if len(values) > 1:
                yield CheckedItem(f"{attribute} of each {kind}", ", ".join(values))
            if len(set(values.values())) > 1:
                texts = ", ".join(f"{value} on {name}" for name, value in values.items())
                yield LayoutFault(
                    "differs from its peers", ", ".join(values), f"{attribute} of the {kind}s {model}: {texts}",
                    f"one {kind} has other errors and rates than the other: paths that should be equal are not",
                    "give all of them the same firmware, cable and port", (attribute,), tuple(values),
                )  # fmt: skip


def _name_logged_device(observed_storage: ObservedStorage, logged_name: str) -> str:
    """The drive that the kernel log names by its SCSI address, its port of ATA or its controller of NVMe."""
    for disk in observed_storage.disks.values():
        names = (disk.settings.get("hctl"), disk.settings.get("ata_port"), re.sub(r"(nvme\d+)n\d+$", r"\1", disk.name))
        if disk.kind == "disk" and logged_name in names:
            return disk.name
    return logged_name


def _find_kernel_errors(observed_storage: ObservedStorage) -> Iterator[LayoutFault]:
    """One fault of each device that the kernel log has errors of, with all of their kinds."""
    counts: dict[str, Counter[str]] = {}
    last: dict[tuple[str, str], str] = {}
    for each in observed_storage.components:
        if each.kind == "kernel errors":
            device, kind = _name_logged_device(observed_storage, each.name), each.attributes["kind"]
            counts.setdefault(device, Counter())[kind] += int(each.attributes["count"])
            last[device, kind] = each.attributes["last"]
    for device, device_counts in counts.items():
        kinds = [kind for kind, count in device_counts.items() if count >= _LEAST_COUNTS.get(kind, 1)]
        kinds.sort(key=lambda kind: kind not in _ERROR_REMEDIES)
        if kinds:
            texts = [f"{format_count_with_noun(device_counts[kind], 'line')} about {kind}" for kind in kinds]
            yield LayoutFault(
                "errors in the kernel log", device,
                f"the kernel log has {' and '.join(texts)}, the last: {last[device, kinds[0]]}",
                _ERROR_COSTS.get(kinds[0], "requests fail or take seconds, and its array may give it up"),
                _ERROR_REMEDIES.get(kinds[0], "look at cable, slot, path and smartctl -a, and replace what fails"),
                ("kernel errors",),
                (device, *(_list_mount_points(observed_storage, device) if kinds[0] == _OF_FILE_SYSTEMS else ())),
            )  # fmt: skip


def _list_mount_points(observed_storage: ObservedStorage, device_name: str) -> list[str]:
    """Where the file system on a device is mounted."""
    disk = observed_storage.disks.get(device_name)
    names = {device_name, disk.settings.get("name", device_name) if disk is not None else device_name}
    return [each.location for each in observed_storage.file_systems if each.device.rpartition("/")[2] in names]
