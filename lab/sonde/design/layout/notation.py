# SPDX-License-Identifier: Apache-2.0
"""The same plan in the words of the Cray X1: csmadd for LUNs, parts for slices, xlv_make for volumes, mkfs for XFS.

For reference, and for holding a plan against listings of that time: there are no such commands any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.layout.geometry import MIB, csm_layout, csm_words
from sonde.design.layout.laid import Laid
from sonde.design.layout.stores import Store
from sonde.model.errors import UserError
from sonde.model.system import System
from sonde.model.system.storage import Enclosure, Slice

# Slice 0 begins a disk with system file systems; data lie in slice 11, as in the talk's examples.
_DATA_SLICE = 11
# A slice or LUN with more than this of what it is cut from is written as "what is left".
_ALL = 0.95


def notation(system: System, laid: Sequence[Laid], *, binary: bool = False) -> str:
    """Everything that a system with LUNs can be written as, one block for each tool. Empty where there are none.

    With `binary` sizes of LUNs are powers of 1024, and csmadd has its option -G.
    """
    stores = [store for one in laid for store in (*one.stores, *([one.log] if one.log is not None else []))]
    luns = list(dict.fromkeys(inner.id for store in stores for inner in store.walk() if inner.kind == "luns"))
    if not luns:
        return ""
    blocks = [list(_csm(system, binary)), *([*_parts(system, lun)] for lun in luns)]
    blocks += [list(_volume(one)) for one in laid]
    blocks += [[_mkfs(one)] for one in laid if one.table.kind == "xfs"]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _csm(system: System, binary: bool) -> Iterator[str]:
    """csmadd CHASSIS SLOT LAYOUT SIZES SIZES: for each group the sizes of its LUNs in GB, 0 is what is left."""
    for item in system.items("enclosures"):
        box = item.table
        assert isinstance(box, Enclosure)
        if not box.layout or box.chassis is None or box.slot is None:
            continue
        try:
            geometries = csm_layout(box.layout)
        except UserError:
            continue
        groups = [one.id for one in system.items("raid_groups") if item.id in _boxes(system, one.id)]
        sizes = [_lun_sizes(system, group, binary) for group in groups]
        if len(groups) == len(geometries):
            yield f"csmadd {'-G ' if binary else ''}{int(box.chassis)} {int(box.slot)} {box.layout} {' '.join(sizes)}"


def _boxes(system: System, group: str) -> set[str | None]:
    return {system.reference(drive, "enclosure") for drive in system.references(group, "drives")}


def _lun_sizes(system: System, group: str, binary: bool) -> str:
    luns = [one.id for one in system.items("luns") if group in system.references(one.id, "raid_group")]
    whole, sizes = system.capacity_of(group), [system.capacity_of(one) for one in luns]
    if not luns or None in sizes or whole is None:
        return "0"
    known = [one for one in sizes if one is not None]
    words = [csm_words(one, binary=binary).removesuffix("GB") for one in known]
    if sum(known) > _ALL * whole:
        words[-1] = "0"
    return ":".join(words)


def _parts(system: System, lun: str) -> Iterator[str]:
    """A configuration file of parts, and its command."""
    disk = getattr(system.item(lun).table, "device", "") or lun
    slices = [one for one in system.items("slices") if lun in system.references(one.id, "on")]
    if not slices:
        return
    yield f"# /etc/parts/{disk.rsplit('/', 1)[-1]}.cf"
    yield "# Partno type size"
    steps = [int(one.table.alignment) for one in slices
             if isinstance(one.table, Slice) and one.table.alignment is not None]  # fmt: skip
    if steps and max(steps) > MIB:
        yield f"modulo {max(steps) // MIB}M"
    for at, item in enumerate(slices):
        table = item.table
        assert isinstance(table, Slice)
        number = _number(table, item.position, at, alone=len(slices) == 1)
        if table.share is not None:
            size = f"{100 * float(table.share):g}%"
        else:
            own, whole = system.capacity_of(item.id) or 0, system.capacity_of(lun) or 0
            size = "100%" if own > _ALL * whole else f"{own // MIB}M"
        raw = "-t raw " if table.use in ("swap", "log") or table.use.endswith("-log") else ""
        yield f"part {number} {raw}{size}" + (f"  # {table.use}" if table.use else "")
    depth = getattr(system.item(lun).table, "queue_depth", None)
    queue = f"-q {int(depth)} " if depth is not None else ""
    yield f"/sbin/parts -w {queue}-v -c /etc/parts/{disk.rsplit('/', 1)[-1]}.cf {disk}"


def _number(table: Slice, position: int, at: int, *, alone: bool) -> int:
    told = re.search(r"s(\d+)$", table.device)
    if told:
        return int(told[1])
    if table.number is not None:
        return int(table.number) + position
    return _DATA_SLICE if alone else at


def _volume(laid: Laid) -> Iterator[str]:
    """xlv_make: the log first, then a stripe over all members, unit in blocks of 512 B."""
    store = laid.store
    if store.kind != "volumes" or store.unit is None:
        return
    yield "/usr/sbin/xlv_make"
    yield f"vol {store.id}"
    if laid.log is not None:
        yield from ("log", "plex", f"ve {_short(laid.log)}", "end")
    yield from ("data", "plex", f"ve -stripe -stripe_unit {store.unit // 512} {' '.join(map(_short, store.members))}")
    yield "end"


def _short(store: Store) -> str:
    """The name of a slice as XLV writes it: pm1d1L1s11."""
    if getattr(store.table, "device", ""):
        return store.label.rsplit("/", 1)[-1]
    number = getattr(store.table, "number", None)
    disk = store.members[0].label.rsplit("/", 1)[-1] if store.members else store.id
    return f"{disk}s{int(number) if number is not None else _DATA_SLICE}"


def _mkfs(laid: Laid) -> str:
    words = ["/sbin/mkfs"]
    striped = laid.store.kind == "volumes"
    if laid.unit and not striped:
        # both are the full stripe, in blocks of 512 B; of a striped volume mkfs asks the volume itself
        words.append(f"-d sunit={laid.unit // 512},swidth={laid.width // 512}")
    if laid.log is None and laid.log_size:
        words.append(f"-l size={laid.log_size // laid.block}b")
    name = f"/dev/xlv/{laid.store.id}" if striped else f"/dev/dsk/{_short(laid.store)}"
    return " ".join([*words, name])
