# SPDX-License-Identifier: Apache-2.0
"""Files of sysctl.d: their order, patterns of names, and names that patterns leave out."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import build_site, print_server_outputs

from sonde.cli.route import _list_files
from sonde.design.routes.check_host import check_host
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.setting_names import expand_setting_globs
from sonde.design.routes.table_reader import parse_host_tables, read_host_sources

STRICT = "net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.bond0.rp_filter = 1\n"
LOOSE = "net.ipv4.conf.all.rp_filter = 2\nnet.ipv4.conf.bond0.rp_filter = 2\n"


def check_files(folder: Path, texts: list[tuple[str, str]]) -> tuple[RouteFault, ...]:
    """Checks files in this order of arguments."""
    files = []
    for name, text in [("sysctl", print_server_outputs()["sysctl"]), *texts]:
        (folder / name).write_text(text)
        files.append(folder / name)
    sources = read_host_sources(files)
    return check_host(build_site(), "nsd1", sources.live, configured_tables=sources.configured).faults


@pytest.mark.parametrize("late", ["99-hardening.conf", "sysctl.conf"])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_names_of_files_give_their_order(tmp_path: Path, late: str, is_reversed: bool) -> None:
    """As at the start, whatever the order of the arguments is."""
    texts = [("90-routes.conf", LOOSE), (late, STRICT)]
    faults = check_files(tmp_path, texts[::-1] if is_reversed else texts)
    assert {fault.kind for fault in faults} == {"strict reverse path"}
    texts = [("90-routes.conf", STRICT), ("95-routes.conf", LOOSE)]
    assert check_files(tmp_path, texts[::-1] if is_reversed else texts) == ()


def test_remedy_for_a_setting_names_its_files(tmp_path: Path) -> None:
    texts = [("90-routes.conf", LOOSE), ("99-hardening.conf", STRICT)]
    (fault,) = [fault for fault in check_files(tmp_path, texts) if "bond0" in fault.location]
    assert fault.remedy.endswith(" (99-hardening.conf, line 2 sets it, after 90-routes.conf, line 2)")
    (fault,) = [fault for fault in check_files(tmp_path, [("10-all.conf", STRICT.replace(".all.", ".*."))])
                if "bond0" in fault.location]  # fmt: skip
    assert fault.remedy.endswith(" (10-all.conf, line 2 sets it)")


def test_remedy_for_a_live_value_names_its_file(tmp_path: Path) -> None:
    line = "net.ipv4.icmp_echo_ignore_all = 1\n"
    head = "# hardening\n\n"
    for name, text in (("sysctl", print_server_outputs()["sysctl"] + line), ("99-site.conf", head + line)):
        (tmp_path / name).write_text(text)
    sources = read_host_sources([tmp_path / "sysctl", tmp_path / "99-site.conf"])
    (fault,) = check_host(build_site(), "nsd1", sources.live, configured_tables=sources.configured).faults
    assert (fault.location, fault.remedy) == (line.strip(), "set it to 0 (99-site.conf, line 3 sets it)")
    (fault,) = check_host(build_site(), "nsd1", sources.live).faults
    assert fault.remedy == "set it to 0"


def test_default_file_of_systemd_is_read(tmp_path: Path) -> None:
    text = (
        "# comment\nnet.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.*.rp_filter = 2\n"
        "-net.ipv4.conf.all.rp_filter\n-net.ipv4.ping_group_range = 0 2147483647\n"
    )
    assert check_files(tmp_path, [("50-default.conf", text)]) == ()
    faults = check_files(tmp_path, [("50-default.conf", text.replace("*.rp_filter = 2", "*.rp_filter = 1"))])
    assert [(fault.kind, fault.location) for fault in faults] == [
        ("strict reverse path", "net.ipv4.conf.bond0.rp_filter = 1 in the configuration files")
    ]


def test_patterns_come_after_names_and_leave_out_exclusions() -> None:
    settings = parse_host_tables(
        "net.ipv4.conf.*.rp_filter = 1\n-net.ipv4.conf.all.rp_filter\nnet/ipv4/conf/bond0.210/rp_filter = 2\n", "f"
    ).settings
    assert settings is not None
    assert expand_setting_globs(settings, ["bond0", "bond0.210"]) == {
        "net.ipv4.conf.default.rp_filter": "1",
        "net.ipv4.conf.bond0.rp_filter": "1",
        "net.ipv4.conf.bond0.210.rp_filter": "2",
    }


@pytest.mark.parametrize("name", ["README.sysctl", "90-routes.conf.rpmsave", "90-routes.conf~"])
def test_folder_of_settings_has_only_conf_files(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "etc" / "sysctl.d"
    folder.mkdir(parents=True)
    for file in (folder / name, folder / "90-routes.conf", tmp_path / "rules"):
        file.write_text("net.ipv4.ip_forward = 0\n")
    assert _list_files([tmp_path]) == [folder / "90-routes.conf", tmp_path / "rules"]
