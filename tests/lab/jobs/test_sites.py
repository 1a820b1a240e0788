# SPDX-License-Identifier: Apache-2.0
"""Sites files: members, mistakes, and which site is selected."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_builders import SITE_MEMBERS

from sonde.launch.sites import SITE_FILE_MEMBERS, Site, find_site, read_sites
from sonde.model.errors import UserError


def read_sites_text(tmp_path: Path, text: str) -> dict[str, Site]:
    file = tmp_path / "sites.toml"
    file.write_text(text)
    return read_sites([file])


def test_site_members_are_read(tmp_path: Path) -> None:
    text = f"""[big]
{SITE_MEMBERS}title = "Big"
partition = "work"
modules = ["cray-mpich", "sonde"]
options = {{ qos = "debug", exclusive = true }}
environment = {{ MPICH_X = 1 }}
time = "2 h"
nodes = 4
tasks_per_node = 32
"""
    big = read_sites_text(tmp_path, text)["big"]
    assert (big.time_s, big.nodes, big.tasks_per_node, big.modules) == (7200, 4, 32, ("cray-mpich", "sonde"))
    assert big.options == {"qos": "debug", "exclusive": "true"}
    assert big.environment == {"MPICH_X": "1"}


def test_later_file_replaces_a_site_of_the_same_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text(f'[x]\n{SITE_MEMBERS}account = "a"\n[y]\n{SITE_MEMBERS}')
    second.write_text(f'[x]\n{SITE_MEMBERS}account = "b"\n')
    sites = read_sites([first, second, tmp_path / "absent.toml"])
    assert (sites["x"].account, sorted(sites)) == ("b", ["x", "y"])


WRONG_SITES = {
    "x = 1": "a site is a table",
    "[x]\nlauncher = 'srun'": "lacks scheduler",
    "[x]\nscheduler = 'slurm'": "lacks launcher",
    "[x]\nscheduler = 'slrm'\nlauncher = 'srun'": "allowed are slurm",
    "[x]\nscheduler = 'slurm'\nlauncher = 'sruns'": 'is "sruns"; allowed are',
    f"[x]\n{SITE_MEMBERS}partion = 'w'": 'no member "partion". Did you mean',
    f"[x]\n{SITE_MEMBERS}nodes = 0": "whole number from 1",
    f"[x]\n{SITE_MEMBERS}nodes = true": "whole number from 1",
    f"[x]\n{SITE_MEMBERS}nodes = '4'": "whole number from 1",
    f"[x]\n{SITE_MEMBERS}modules = 'a'": "list of texts",
    f"[x]\n{SITE_MEMBERS}setup = [1]": "list of texts",
    f"[x]\n{SITE_MEMBERS}environment = ['A=b']": "table of texts",
    f"[x]\n{SITE_MEMBERS}options = {{ a = [1] }}": "table of texts",
    f"[x]\n{SITE_MEMBERS}account = 7": "text in quotation marks",
    f"[x]\n{SITE_MEMBERS}time = '30'": "time limit of a minute or more",
    f"[x]\n{SITE_MEMBERS}time = 30": "time limit of a minute or more",
    f"[x]\n{SITE_MEMBERS}time = '5 s'": "time limit of a minute or more",
    "[x": "cannot be read",
}


@pytest.mark.parametrize("text", WRONG_SITES)
def test_wrong_sites_file_is_one_sentence_with_its_member(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read_sites_text(tmp_path, text)
    sentence = str(raised.value)
    assert WRONG_SITES[text] in sentence
    assert str(tmp_path / "sites.toml") in sentence
    assert "\n" not in sentence


def test_unique_site_is_selected_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SONDE_SITES", str(tmp_path / "sites.toml"))
    with pytest.raises(UserError, match="which does not exist"):
        find_site(None)
    (tmp_path / "sites.toml").write_text(f"[a]\n{SITE_MEMBERS}")
    assert find_site(None).name == "a"
    (tmp_path / "sites.toml").write_text(f"[alpha]\n{SITE_MEMBERS}[beta]\n{SITE_MEMBERS}")
    with pytest.raises(UserError, match="name one with --site: alpha, beta"):
        find_site(None)
    with pytest.raises(UserError, match=r'no site "alpa".*Did you mean'):
        find_site("alpa")


def test_site_members_are_documented() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tasks" / "cluster.md").read_text(encoding="utf-8")
    assert [name for name in SITE_FILE_MEMBERS if f"`{name}`" not in page] == []
