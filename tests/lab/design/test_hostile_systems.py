# SPDX-License-Identifier: Apache-2.0
"""Hostile text in every string member of a system file: it is refused with a sentence, or the generated scripts are
clean for shellcheck and run nothing of it."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonde.design.layout import plan
from sonde.design.layout.cray_x1_notation import format_cray_x1_commands
from sonde.design.layout.diagram import draw_layout
from sonde.design.layout.plan import make_system_file, plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.design.routes import configurations, fabric
from sonde.design.routes.configurations import (
    make_ansible_files,
    make_keyfile_files,
    make_lnet_files,
    make_networkd_files,
    make_nmstate_files,
)
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.plan import plan_routes
from sonde.design.routes.scripts import make_network_script_files, make_route_scripts
from sonde.model.errors import EXIT_BAD_INPUT, UserError
from sonde.model.system import make_system
from sonde.model.system.description import PART_KINDS, SystemFile
from sonde.model.tables.members import get_members

MARKER = "marker"
HOSTILE = (
    f"$(touch {MARKER})`touch {MARKER}`",
    f"; touch {MARKER};",
    f"' ; touch {MARKER}; '",
    f'" ; touch {MARKER}; "',
    f"\ntouch {MARKER}\n#\r\ntouch {MARKER}",
    "/../../../etc/passwd",
    "%n{{ lookup('pipe', 'touch marker') }}\\",
    "*\x1b]0;title\x07",
)
SHELL_ATTACKS = HOSTILE[:5]
# Substitution and newlines end every kind of quoting; the separators between quotes are tried at night.
ALL_ATTACKS = [pytest.param(text, marks=pytest.mark.nightly if ";" in text else ()) for text in HOSTILE]
# Members of every table that no generator reads: one table of each kind stands for all.
COMMON = ("title", "source", "status", "notes")
# Values between them that a YAML, ini or unit file must never have as a line of its own.
INJECTED_LINES = ("touch marker", "#")


def storage() -> dict[str, Any]:
    """A machine whose file systems take every branch of the layout scripts."""
    drives = [
        {"id": f"{name}[0-{count - 1}]", "server": "host", "kind": "hdd", "capacity": "4 TB",
         "device": f"/dev/disk/by-path/{name}[0-{count - 1}]", "interface": "SAS"}
        for name, count in (("x", 4), ("z", 4), ("e", 1), ("b", 1), ("o", 4))
    ]  # fmt: skip
    return {
        "schema": "sonde-system/2", "id": "storage", "title": "storage", "source": "handbook",
        "nodes": [{"id": "host", "group": "hosts", "os": "Linux", "settings": {"net.core.rmem_max": 1}}],
        "servers": [{"id": "oss1", "roles": ["oss"]}],
        "enclosures": [{"id": "box", "kind": "JBOD", "layout": "RG128", "chassis": 1, "slot": 2}],
        "controllers": [{"id": "ctl", "kind": "RC200", "address": "10.0.0.1"}],
        "drives": drives,
        "raid_groups": [
            {"id": "xg", "level": "6", "data": 2, "parity": 2, "segment": "256 KiB", "drives": "x[0-3]",
             "device": "/dev/md/xg", "layout": "left-symmetric"},
            {"id": "zg", "level": "6", "data": 2, "parity": 2, "segment": "256 KiB", "drives": "z[0-3]"},
            {"id": "og", "level": "6", "data": 2, "parity": 2, "segment": "256 KiB", "drives": "o[0-3]"},
        ],
        "luns": [{"id": f"lun{k}", "size": "1 TB", "device": f"/dev/mapper/lun{k}", "label": "L0"} for k in (0, 1)],
        "slices": [{"id": f"s{k}", "on": f"lun{k}", "start": "1 MiB", "size": "100 GB", "number": 1, "use": "data"}
                   for k in (0, 1)],
        "volumes": [{"id": "vol", "kind": "stripe", "software": "LVM", "members": ["s0", "s1"],
                     "stripe_unit": "1 MiB", "device": "/dev/vg/vol"}],
        "file_systems": [
            {"id": "fast", "kind": "xfs", "device": "vol", "purpose": "scratch", "log": "e0", "version": "5"},
            {"id": "data", "kind": "xfs", "device": "xg", "purpose": "home"},
            {"id": "tank", "kind": "zfs", "device": "zg", "purpose": "archive"},
            {"id": "more", "kind": "btrfs", "device": "b0", "settings": {"net.core.rmem_max": 1}},
            {"id": "lus", "kind": "lustre", "stripe": {"count": 1, "layout": "-c 1"}},
        ],
        "targets": [{"id": "lus-ost0", "kind": "ost", "file_system": "lus", "on": "og", "server": "oss1", "index": 0}],
        "units": [{"id": "ssu", "kind": "SSU", "file_system": "lus"}],
        "pools": [{"id": "pool", "file_system": "lus", "targets": "lus-ost0"}],
        "mounts": [{"id": "on-fast", "file_system": "fast", "path": "/scratch", "options": "noatime", "on": "host"},
                   {"id": "on-tank", "file_system": "tank", "path": "/tank", "on": "host"}],
        "telemetry": [{"id": "t", "name": "sda", "label": "{id}", "collector": "sar", "unit": "B", "where": "/proc"}],
        "logs": [{"id": "log", "where": "/var/log/messages", "format": "syslog", "clock": "UTC"}],
    }  # fmt: skip


def network() -> dict[str, Any]:
    """Two networks with an IP router and an LNet router between them."""

    def interface(name: str, device: str, address: str, nid: str = "") -> dict[str, Any]:
        return {"network": name, "device": device, "addresses": address} | ({"nids": nid} if nid else {})

    return {
        "schema": "sonde-system/2", "id": "network",
        "networks": [
            {"id": "near", "kind": "ethernet", "addresses": ["10.1.0.0/16"], "lnet": "tcp1", "topology": "fat tree",
             "mtu": "9000 B"},
            {"id": "far", "kind": "infiniband", "addresses": ["10.2.0.0/16"], "lnet": "o2ib1", "mtu": "4096 B"},
        ],
        "nodes": [{"id": "client1", "group": "clients", "os": "Linux", "software": ["Lustre 2.15"],
                   "settings": {"net.core.rmem_max": "1 2 3", "CONFIG_IP_MULTIPLE_TABLES": True},
                   "interfaces": [interface("near", "eth0", "10.1.0.100")]}],
        "servers": [{"id": "store1", "group": "stores", "interfaces": [interface("far", "ib0", "10.2.0.100")]}],
        "routers": [
            {"id": "router1", "protocol": "ip", "between": ["near", "far"],
             "interfaces": [interface("near", "eth0", "10.1.0.1"), interface("far", "ib0", "10.2.0.1")]},
            {"id": "router2", "protocol": "lnet", "between": ["near", "far"],
             "interfaces": [interface("near", "eth1", "10.1.0.2", "10.1.0.2@tcp1"),
                            interface("far", "ib1", "10.2.0.2", "10.2.0.2@o2ib1")]},
        ],
        "links": [{"id": "link", "near": "client1", "far": "router1"}],
        "paths": [{"id": "path", "to": "drive", "label": "fc0", "links": "link"}],
        "drives": [{"id": "drive", "kind": "hdd"}],
    }  # fmt: skip


def layout_files(document: Mapping[str, Any]) -> dict[str, str]:
    layout = plan_layout(make_system(document, "hostile.toml"))
    others = {
        "csm-parts-xlv.txt": format_cray_x1_commands(layout.system, layout.file_systems),
        "layout.svg": draw_layout(layout.system, layout.file_systems),
    }
    return make_layout_scripts(layout) | make_system_file(layout) | others


def route_files(document: Mapping[str, Any]) -> dict[str, str]:
    system = make_system(document, "hostile.toml")
    files = make_lnet_files(system)
    for each in find_fabrics(system):
        routes = plan_routes(each)
        files |= make_ansible_files([routes])
        for host in routes.host_plans:
            for generate in (make_network_script_files, make_networkd_files, make_keyfile_files, make_nmstate_files):
                files |= {f"{host.name}/{name}": text for name, text in generate(host).items()}
    return files


DOCUMENTS: Mapping[str, tuple[Callable[[], dict[str, Any]], Callable[[Mapping[str, Any]], dict[str, str]]]] = {
    "layout": (storage, layout_files), "routes": (network, route_files),
}  # fmt: skip


def layout_scripts_only(document: Mapping[str, Any]) -> dict[str, str]:
    return make_layout_scripts(plan_layout(make_system(document, "hostile.toml")))


def route_scripts_only(document: Mapping[str, Any]) -> dict[str, str]:
    planned = (plan_routes(each) for each in find_fabrics(make_system(document, "hostile.toml")))
    return {name: text for routes in planned for name, text in make_route_scripts(routes).items()}


SCRIPTS = {"layout": layout_scripts_only, "routes": route_scripts_only}
MODES = {"layout": ("", "go"), "routes": ("", "apply", "remove", "show")}  # of the scripts; layouts: any other is ""


def changed_tables(table: dict[str, Any], cls: type[Any], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every declared member that can hold text, and the table with that member hostile."""
    for name, member in get_members(cls).items():
        held = table.get(name)
        if member.kind in ("text", "choice", "ids", "texts", "choices"):
            plain = held if isinstance(held, str) else (held or [""])[0]
            for value in (text, plain + text) if member.kind in ("text", "texts") and plain else (text,):
                yield name, {**table, name: value if isinstance(held, str | None) else [value]}
        elif member.kind == "settings":
            yield f"{name} (name)", {**table, name: {f"net.core.{text}": "1"}}
            yield f"{name} (value)", {**table, name: {"net.core.rmem_max": text, "CONFIG_NET": text}}
        elif member.table is not None and member.kind == "table" and held:
            for inner, changed in changed_tables(held, member.table, text):
                yield f"{name}.{inner}", {**table, name: changed}
        elif member.table is not None and member.kind == "tables":
            for position, inner_table in enumerate(held or []):
                for inner, changed in changed_tables(inner_table, member.table, text):
                    tables = [*held[:position], changed, *held[position + 1 :]]  # type: ignore[index]
                    yield f"{name}.{inner}", {**table, name: tables}
        elif isinstance(held, str) and member.kind in ("size", "share", "rate", "duration"):
            yield f"{name} (note)", {**table, name: {"value": held, "note": text, "source": text}}


def hostile_documents(document: dict[str, Any], text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    top = {name: value for name, value in document.items() if name not in PART_KINDS}
    for name, changed in changed_tables(top, SystemFile, text):
        yield name, document | changed
    for kind, cls in PART_KINDS.items():
        for position, table in enumerate(document.get(kind, [])):
            for name, changed in changed_tables(table, cls, text):
                if position > 0 and name in COMMON:
                    continue
                tables = [*document[kind][:position], changed, *document[kind][position + 1 :]]
                yield f"{kind}.{table['id']}.{name}", document | {kind: tables}


def read_structured(name: str, text: str) -> None:
    """Fails when a generated file is not of the form that its name promises."""
    if name.endswith((".yml", ".yaml")):
        assert yaml.safe_load(text)
    if name.endswith((".conf", ".nmconnection")) or "network-scripts" in name:
        lines = [line.strip() for line in text.splitlines()]
        assert not set(lines) & set(INJECTED_LINES), f"{name} has a line of its own from a value"


def stub_programs(folder: Path) -> Path:
    """A folder with programs that do nothing, except `touch`, which makes the marker."""
    folder.mkdir()
    volume_tools = (
        "mdadm",
        "sgdisk",
        "partx",
        "udevadm",
        "pvcreate",
        "vgcreate",
        "lvcreate",
        "lsblk",
        "wipefs",
        "mountpoint",
    )
    file_tools = ("mkfs.xfs", "mke2fs", "mkfs.btrfs", "mkfs.lustre", "zpool", "zfs", "lctl", "mount", "mkdir")
    names = (*volume_tools, *file_tools, "sysctl", "tr", "sed")
    scripts = dict.fromkeys(names, "") | {
        "id": "echo 0", "wc": "echo 1", "readlink": "echo no-such-device", "basename": "echo no-such-device",
        "touch": 'for name; do : >"$name"; done', "ip": 'case "$*" in *"rule del"*) exit 1 ;; esac',
    }  # fmt: skip
    for name, body in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return folder


def run_script(form: str, text: str, stubs: Path, folder: Path) -> None:
    """Runs every mode of a script in an empty folder. Block devices are taken for granted: there are none."""
    path = folder / "script.sh"
    path.write_text(text.replace('[ -b "$disk" ] ||', "true ||"), encoding="utf-8")
    environment = {"PATH": str(stubs), "MGS_NID": "10.0.0.1@tcp"} | {
        line.split("{", 1)[1].split(":", 1)[0]: "/dev/none" for line in text.splitlines() if line.startswith('[ -n "${')
    }
    for mode in MODES[form]:
        done = subprocess.run(["/bin/sh", str(path), mode], cwd=folder, env=environment, capture_output=True, text=True)
        assert "not found" not in done.stderr, done.stderr
        assert done.returncode in (0, 2), done.stderr
    assert not (folder / MARKER).exists(), text


@pytest.mark.parametrize("form", DOCUMENTS)
def test_unchanged_documents_make_clean_scripts(form: str, tmp_path: Path) -> None:
    document, generate = DOCUMENTS[form]
    files = generate(document())
    scripts = {name: text for name, text in files.items() if name.endswith(".sh")}
    assert len(scripts) > 1
    stubs = stub_programs(tmp_path / "stubs")
    for text in scripts.values():
        run_script(form, text, stubs, tmp_path)
    check_with_shellcheck(scripts.values(), tmp_path)


def check_with_shellcheck(scripts: Iterable[str], folder: Path) -> None:
    if shutil.which("shellcheck") is None:
        return
    paths = []
    for number, text in enumerate(scripts):
        path = folder / f"checked-{number}.sh"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    done = subprocess.run(["shellcheck", *paths], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("text", ALL_ATTACKS, ids=ascii)
@pytest.mark.parametrize("form", DOCUMENTS)
def test_hostile_member_is_refused_or_harmless(form: str, text: str, tmp_path: Path) -> None:
    make_document, generate = DOCUMENTS[form]
    document = make_document()
    unchanged = set(generate(copy.deepcopy(document)).values())
    stubs = stub_programs(tmp_path / "stubs")
    refusals, scripts = [], {}
    for member, changed in hostile_documents(document, text):
        try:
            files = generate(changed)
        except UserError as error:
            refusals.append((member, error))
            continue
        for name, content in files.items():
            assert name.isprintable(), name
            assert not name.startswith("/"), name
            assert ".." not in name.split("/"), name
            if content not in unchanged and name.endswith(".sh"):
                scripts[content] = member
            elif content not in unchanged:
                read_structured(name, content)
    assert len(refusals) > 50
    assert [member for member, error in refusals if str(error).strip()[-1] not in ".?"] == []
    assert {error.exit_code for _, error in refusals} == {EXIT_BAD_INPUT}
    for content in scripts:
        run_script(form, content, stubs, tmp_path)
    if scripts:
        check_with_shellcheck(scripts, tmp_path)


@pytest.mark.parametrize("text", ALL_ATTACKS[: len(SHELL_ATTACKS)], ids=ascii)
@pytest.mark.parametrize("form", DOCUMENTS)
def test_scripts_quote_values_without_the_grammar(
    form: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (plan, fabric, configurations):
        monkeypatch.setattr(module, "check_names", lambda system: None)
    make_document, generate = DOCUMENTS[form]
    document = make_document()
    unchanged = set(generate(document).values())
    stubs = stub_programs(tmp_path / "stubs")
    scripts: dict[str, str] = {}
    for member, changed in hostile_documents(document, text):
        with contextlib.suppress(UserError, ValueError):
            scripts_only = SCRIPTS[form](changed)
            scripts |= {content: member for content in scripts_only.values() if content not in unchanged}
    assert len(scripts) >= 3
    for content in scripts:
        run_script(form, content, stubs, tmp_path)
