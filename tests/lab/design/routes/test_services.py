# SPDX-License-Identifier: Apache-2.0
"""Files for systemd-networkd and NetworkManager, applied by these programs in a namespace: the kernel has the same
rules and routes as after the script of iproute2."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_fabric import made

from sonde.design.routes.configurations import keyfile_files, networkd_files
from sonde.design.routes.plan import HostPlan, plan_routes
from sonde.design.routes.scripts import host_script

NETWORKD = Path("/lib/systemd/systemd-networkd")
DEVICE, NAMESPACE = "eth0", f"sonde-services-{os.getpid()}"
ADDRESS = {4: "10.1.0.100/16", 6: "fd01::64/64"}
PATIENCE_S = 20.0

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
    ),
]


def ip(*words: str) -> str:
    done = subprocess.run(["ip", "-n", NAMESPACE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def namespace() -> Iterator[None]:
    """A host with the device of the plan; it has no address yet."""
    if subprocess.run(["ip", "netns", "add", NAMESPACE], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed here")
    try:
        ip("link", "set", "lo", "up")
        ip("link", "add", DEVICE, "mtu", "9000", "type", "veth", "peer", "name", "other", "mtu", "9000")
        for name in ("other", DEVICE):
            ip("link", "set", name, "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", NAMESPACE], capture_output=True, check=False)


def seen(version: int) -> list[str]:
    """Rules and routes of the plan in the kernel, without who put them there and with which metric."""
    text = ip(f"-{version}", "rule") + ip(f"-{version}", "route", "show", "table", "all")
    lines = re.sub(r"\n\t", " ", text).splitlines()
    ours = [one for one in lines if " table local" not in one and "proto kernel" not in one and "fe80" not in one]
    plain = [re.sub(r" (proto|metric|pref) \S+| onlink", "", one).strip() for one in ours]
    return sorted(re.sub(r"\s+", " ", one) for one in plain if not one.startswith(("multicast", "ff00")))


def by_script(host: HostPlan, tmp_path: Path, version: int) -> list[str]:
    """What the script leaves in the kernel; the namespace is empty again afterwards."""
    ip("addr", "add", ADDRESS[version], "dev", DEVICE, *(["nodad"] if version == 6 else []))
    plan = plan_routes(made(3, clients=1, servers=1, version=version))
    script = tmp_path / "routes.sh"
    script.write_text(host_script(plan, host, script.name))
    words = ["ip", "netns", "exec", NAMESPACE, "sh", str(script)]
    subprocess.run([*words, "apply"], check=True, capture_output=True)
    wanted = seen(version)
    subprocess.run([*words, "remove"], check=True, capture_output=True)
    ip("addr", "flush", "dev", DEVICE, "scope", "global")
    return wanted


def inside(script: str) -> subprocess.Popen[bytes]:
    """A shell in the namespace with /run of its own; /sys is read-only, so that nobody waits for a device manager."""
    prepared = f"mount -o remount,ro /sys && mount -t tmpfs none /run && {script}"
    return subprocess.Popen(
        ["ip", "netns", "exec", NAMESPACE, "unshare", "-m", "sh", "-c", prepared],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def becomes(wanted: list[str], version: int, process: subprocess.Popen[bytes]) -> list[str]:
    """What is seen when it is as wanted, or when patience ends."""
    try:
        end = time.monotonic() + PATIENCE_S
        while (now := seen(version)) != wanted and time.monotonic() < end and process.poll() is None:
            time.sleep(0.1)
        return now
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(not NETWORKD.exists(), reason="systemd-networkd is not installed")
@pytest.mark.parametrize("version", [4, 6])
def test_networkd_makes_the_same_rules_and_routes(namespace: None, tmp_path: Path, version: int) -> None:
    host = plan_routes(made(3, clients=1, servers=1, version=version)).of("clients")
    wanted = by_script(host, tmp_path, version)
    folder = tmp_path / "network"
    for name, text in networkd_files(host).items():
        if "systemd/network" in name:
            path = folder / name.split("systemd/network/")[1]
            path.parent.mkdir(parents=True)
            path.write_text(text)
    site = f"[Match]\nName={DEVICE}\n[Network]\nAddress={ADDRESS[version]}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
    (folder / f"50-{DEVICE}.network").write_text(site)
    copied = f"mkdir -p /run/systemd/netif/links && cp -r {folder} /run/systemd/ && chmod -R a+rX /run/systemd"
    tmp_path.chmod(0o755)
    assert becomes(wanted, version, inside(f"{copied} && exec {NETWORKD}")) == wanted
    assert len(wanted) > 6, "rules, tables and the multipath route"


@pytest.mark.skipif(
    shutil.which("NetworkManager") is None or shutil.which("dbus-daemon") is None,
    reason="NetworkManager is not installed (it is not installed for tests: it would take over this machine's network)",
)
@pytest.mark.parametrize("version", [4, 6])
def test_network_manager_makes_the_same_rules_and_routes(namespace: None, tmp_path: Path, version: int) -> None:
    host = plan_routes(made(3, clients=1, servers=1, version=version)).of("clients")
    wanted = by_script(host, tmp_path, version)
    (text,) = [text for name, text in keyfile_files(host).items() if name.endswith(".nmconnection")]
    site = configparser.ConfigParser(strict=False, interpolation=None)
    site.optionxform = str  # type: ignore[method-assign,assignment]
    site.read_string(text)
    site["connection"].update({"type": "ethernet", "uuid": "aaaaaaaa-0000-4000-8000-000000000001"})
    for other, method in ((4, "disabled"), (6, "disabled")):
        if other == version:
            site[f"ipv{version}"].update({"method": "manual", "address1": ADDRESS[version]})
        else:
            site[f"ipv{other}"] = {"method": method}
    folder = tmp_path / "etc"
    (folder / "system-connections").mkdir(parents=True)
    file = folder / "system-connections" / f"{DEVICE}.nmconnection"
    with file.open("w") as out:
        site.write(out, space_around_delimiters=False)
    file.chmod(0o600)
    managed = f"[main]\nplugins=keyfile\nno-auto-default=*\n[device]\nmatch-device=interface-name:{DEVICE}\nmanaged=1\n"
    (folder / "NetworkManager.conf").write_text(managed)
    started = (
        f"mkdir -p /run/dbus && mount --bind {folder} /etc/NetworkManager && dbus-daemon --system --fork --nopidfile"
        " --print-pid=3 3>/run/bus && trap 'kill $(cat /run/bus)' EXIT && trap 'kill $child' TERM &&"
        " { NetworkManager --no-daemon & child=$!; wait $child; wait $child; }"
    )
    assert becomes(wanted, version, inside(started)) == wanted
