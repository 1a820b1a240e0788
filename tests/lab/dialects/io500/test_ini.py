# SPDX-License-Identifier: Apache-2.0
"""The ini file of IO500 means what it means to IO500, and what is wrong with one is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.dialects.io500.hashes import compute_part_seed
from sonde.dialects.io500.ini import DEFAULT_CONFIG, format_settings_as_ini, parse_ini, read_ini_file
from sonde.dialects.io500.keys import SECTIONS
from sonde.model.errors import MachineError, UserError

ROOT = Path(__file__).resolve().parents[4]
DATA = ROOT / "tests" / "data" / "io500"

# The file, and the hash that IO500 itself (isc26_v2) prints for it with --config-hash.
HASHES = {"# nothing\n": "9736CCCB", (DATA / "short.ini").read_text(): "84659473"}


@pytest.mark.parametrize(("text", "wanted"), HASHES.items(), ids=["nothing", "short"])
def test_settings_hash_equals_io500_hash(text: str, wanted: str) -> None:
    assert parse_ini(text, "x.ini").settings_hash == wanted


def test_ini_ignores_case_order_and_comments() -> None:
    text = "[ior-HARD] # here\n segmentcount=7 ; there\n\n[Global]\nDATADIR = a b \n"
    text += "resultdir =\nverbosity = 2\nVerbosity=3\n"
    config = parse_ini(text, "x.ini")
    assert config.get_number("ior-hard", "segmentCount") == 7
    assert config.get_required_text("global", "datadir") == "a b"
    assert config.get_required_text("global", "resultdir") == "./results"
    assert config.get_number("global", "verbosity") == 3
    assert config.get_text("find", "nproc") is None


@pytest.mark.parametrize(
    ("flag_text", "expected_flag"), [("TRUE", True), ("true", True), ("1", True), ("False", False), ("0", False)]
)
def test_flags_have_four_names(flag_text: str, expected_flag: bool) -> None:
    assert parse_ini(f"[find]\nrun = {flag_text}\n", "x.ini").get_flag("find", "run") is expected_flag


@pytest.mark.parametrize("extra", [True, False])
def test_default_settings_survive_formatting_and_parsing(extra: bool) -> None:
    text = format_settings_as_ini(DEFAULT_CONFIG, with_descriptions=True, with_extended=extra)
    assert parse_ini(text, "x.ini").values == DEFAULT_CONFIG.values
    assert ("[mdworkbench]" in text) is extra
    assert [line.strip("[]") for line in text.splitlines() if line.startswith("[")] == [
        section.name for section in SECTIONS if extra or not section.extra
    ]


WRONG_INI_FILES = {
    "key = 1\n": ("x.ini, line 1", "key stands before the first [section]"),
    "[glob]\n": ("line 1", "no section [glob]", 'Did you mean "global"?'),
    "[global]\n\ndata-dir = x\n": ("line 3", '[global] has no key "data-dir"', 'Did you mean "datadir"?'),
    "[ior-easy]\nsegmentCount = 3\n": ('[ior-easy] has no key "segmentCount"', "It belongs to [ior-hard]"),
    "[debug]\nstonewall-time = 5m\n": ("line 2", 'stonewall-time is "5m"', "must be an integer"),
    "[mdtest-easy]\nn = -1\n": ('[mdtest-easy] n is "-1"', "from 0 on"),
    "[find]\nrun = yes\n": ('run is "yes"', "TRUE or FALSE"),
    "[mdworkbench]\nwaitingTime = long\n": ("waitingTime", "must be a number"),
    "[global]\nthis is nothing\n": ("line 2", '"this is nothing" is neither'),
    "[global]\ndatadir = /a#b\n": ("line 2", "neither [section] nor key"),
    "[global\n": ("line 1", "neither [section] nor key"),
    "[find]\npfind-queue-length = 9\n": ("[find] pfind-queue-length must be at least 10",),
    "[find]\nnproc = 0\n": ("at least one task",),
    "[debug]\nstonewall-time = 0\n": ("stonewall-time must be at least 1",),
    "[mdworkbench]\nfilesPerProc = 5\n": ("needs both precreatePerSet and filesPerProc",),
}


@pytest.mark.parametrize("text", WRONG_INI_FILES, ids=[repr(text) for text in WRONG_INI_FILES])
def test_invalid_ini_gets_one_sentence_with_the_location(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_ini(text, "x.ini")
    for part in WRONG_INI_FILES[text]:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_ini_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"[global]\n\xff\xfe")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    for name, says in (
        ("gone", "There is no ini file"),
        ("binary", "byte 9 is not UTF-8"),
        ("large", "larger than 1 MiB"),
        (".", "is a directory"),
    ):
        with pytest.raises((UserError, MachineError), match=says):
            read_ini_file(tmp_path / name)


def test_seeds_equal_io500_seeds() -> None:
    """The expected seeds of these time stamps are those that IO500 printed (-G of its command lines)."""
    assert compute_part_seed("ior-easy", "STAMP1") == 879429251
    assert compute_part_seed("mdtest-easy", "STAMP1") == 1760233232
    assert compute_part_seed("mdtest-easy", "2026.11.22-03.30.06") == -1572285381
    assert compute_part_seed("", "") == 4711


def test_every_section_and_key_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "reference" / "io500.md").read_text(encoding="utf-8")
    table_text = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    for section in SECTIONS:
        assert f"`{section.name}`" in table_text, section.name
        for key in section.keys:
            assert f"`{key.name}`" in table_text, key.name
