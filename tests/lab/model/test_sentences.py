# SPDX-License-Identifier: Apache-2.0
"""Every sentence about a size, a range, an address, a setting, a plan or a file, word for word."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.model import errors
from sonde.model.addresses import expand_address_range, parse_address, parse_network
from sonde.model.bundled_files import find_bundled_toml_files, find_system_file, is_file_reference
from sonde.model.errors import (
    DataMismatchError,
    MachineError,
    PlanError,
    RunFailedError,
    SondeError,
    StoppedError,
    UserError,
    escape_unprintable,
    format_as_sentence,
    suggest_close_name,
)
from sonde.model.event import read_events_file
from sonde.model.experiment import read_experiment
from sonde.model.file_text import read_text_file
from sonde.model.plan import Plan, read_plan_document
from sonde.model.ranges import MAX_NAMES, expand_name_range
from sonde.model.schemas import read_schema_text
from sonde.model.settings import apply_settings, parse_setting, set_member_at_path
from sonde.model.system import read_system
from sonde.model.units import parse_bytes, parse_duration, parse_link_rate, parse_op_rate, parse_rate, parse_share


def error_of(work: Callable[[Any], object], value: Any) -> str:
    """What is said against a value; empty when it is taken."""
    try:
        work(value)
    except SondeError as reason:
        return str(reason)
    return ""


SIZES = "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"
KNOWN = "ns, us, ms, s, min, h"


@pytest.mark.parametrize(
    ("parse", "value", "sentence"),
    [
        (parse_bytes, True, "true is not a size; write a number and a unit, like 4KiB."),
        (parse_bytes, -1, "-1 is not a size; a size is between 0 and 9223372036854775807 bytes."),
        (parse_bytes, 2**63, "9223372036854775808 is not a size; a size is between 0 and 9223372036854775807 bytes."),
        (parse_bytes, 2**63 - 1, ""),
        (parse_bytes, 1.5, "1.5 is not a size; write a whole number of bytes, or a number and a unit, like 4KiB."),
        (parse_bytes, "-1 B", '"-1 B" is negative; a size is written like 4KiB or 10MB.'),
        (parse_bytes, "many", '"many" is not a size; write a number and a unit, like 4KiB or 10MB.'),
        (parse_bytes, " 10 ", '" 10 " has no unit; write 10B, 10KiB or 10MiB.'),
        (parse_bytes, "4k", '"4k" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000 bytes).'),
        (parse_bytes, "1.5M", '"1.5M" does not say which unit is meant: write 1.5MiB (1,572,864 bytes) or 1.5MB'
                              " (1,500,000 bytes)."),
        (parse_bytes, "0.0001gb", '"0.0001gb" does not say which unit is meant: write 0.0001GiB (107,374.1824 bytes) or'
                                  " 0.0001GB (100,000 bytes)."),
        (parse_bytes, "4Kib", '"4Kib" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000'
                              " bytes)."),
        (parse_bytes, "4XB", f'"4XB" has the unknown unit "XB"; sizes end in one of {SIZES}.'),
        (parse_bytes, "0.3B", '"0.3B" is 0.3 bytes, which is not a whole number.'),
        (parse_bytes, "9000PiB", '"9000PiB" is more than a file can hold (9223372036854775807 bytes).'),
        (parse_bytes, "9223372036854775807B", ""),
        (parse_bytes, "9223372036854775808B",
         '"9223372036854775808B" is more than a file can hold (9223372036854775807 bytes).'),
        (parse_duration, False, "false is not a duration; write a number and a unit, like 10s."),
        (parse_duration, -1, "-1 is not a duration; durations are not negative and not infinite."),
        (parse_duration, "-1s", '"-1s" is negative; a duration is written like 10s or 500ms.'),
        (parse_duration, "10", f'"10" has no unit; write 10s for seconds (known: {KNOWN}).'),
        (parse_duration, "5 m", '"5 m" has the unknown unit "m"; write min for minutes or ms for milliseconds.'),
        (parse_duration, "5 SEC", '"5 SEC" has the unknown unit "SEC"; write s.'),
        (parse_duration, "5 hr", '"5 hr" has the unknown unit "hr"; write h.'),
        (parse_duration, "5 d", '"5 d" has the unknown unit "d"; write h.'),
        (parse_duration, "5 weeks", f'"5 weeks" has the unknown unit "weeks"; durations end in {KNOWN}.'),
        (parse_rate, True, "true is not a rate; write a number and a unit, like 100MB/s."),
        (parse_rate, 0, "0 is not a rate; a rate is larger than 0 bytes per second."),
        (parse_rate, "-1MB/s", '"-1MB/s" is negative; a rate is written like 100MB/s.'),
        (parse_rate, "100MB", '"100MB" is not a rate; a rate ends in "/s", like 100MB/s.'),
        (parse_rate, "1M/s", '"1M/s" does not say which unit is meant: write 1MiB/s (1,048,576 bytes) or 1MB/s'
                             " (1,000,000 bytes)."),
        (parse_rate, "1Mbit/s", '"1Mbit/s" has the unknown unit "Mbit/s"; rates are written like 100MB/s or 1GiB/s.'),
        (parse_rate, "0MB/s", '"0MB/s" is zero; a rate is larger than 0 bytes per second.'),
        (parse_link_rate, 5, "5 does not say bits or bytes; write a unit, like 200 Gbit/s or 2.4 GB/s."),
        (parse_link_rate, "0 Gbit/s", '"0 Gbit/s" is zero; a rate is larger than 0 bytes per second.'),
        (parse_link_rate, "5 Gb/s", '"5 Gb/s" may be bits or bytes; write 5 Gbit/s or 5 GB/s.'),
        (parse_link_rate, "5 Kbps", '"5 Kbps" may be bits or bytes; write 5 kbit/s or 5 kB/s.'),
        (parse_link_rate, "5 b/s", '"5 b/s" may be bits or bytes; write 5 bit/s or 5 B/s.'),
        (parse_link_rate, "5 GB", '"5 GB" is not a rate; a rate ends in "/s", like 100MB/s.'),
        (parse_link_rate, "x", '"x" is not a rate; write a number and a unit, like 200 Gbit/s or 2.4 GB/s.'),
        (parse_link_rate, "5 GB/s", ""),
        (parse_op_rate, 5, "5 has no unit; write operations per second like 5500 op/s."),
        (parse_op_rate, "5", '"5" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "5 op", '"5 op" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "5 Gop/s",
         '"5 Gop/s" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.'),
        (parse_op_rate, "0 op/s", '"0 op/s" is zero; a rate of operations is larger than 0.'),
        (parse_op_rate, "?", '"?" is not a rate of operations; write a number and a unit, like 5500 op/s.'),
        (parse_share, "40", '"40" is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, True, 'True is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, None, 'None is not a share; write a number from 0 to 1, or percent like "40 %".'),
        (parse_share, 1.5, '"1.5" is outside 0 to 1 (0 % to 100 %).'),
        (parse_share, "101 %", '"101 %" is outside 0 to 1 (0 % to 100 %).'),
        (parse_share, -0.1, '"-0.1" is outside 0 to 1 (0 % to 100 %).'),
    ],
)  # fmt: skip
def test_what_is_no_quantity(parse: Callable[[Any], float], value: Any, sentence: str) -> None:
    assert error_of(parse, value) == sentence


@pytest.mark.parametrize(
    ("value", "share"), [(0, 0.0), (1, 1.0), (0.4, 0.4), ("40 %", 0.4), (" 100% ", 1.0), ("0 %", 0.0)]
)
def test_a_share_is_a_number_or_percent(value: Any, share: float) -> None:
    assert parse_share(value) == share
    assert isinstance(parse_share(value), float)


@pytest.mark.parametrize(
    ("work", "text", "sentence"),
    [
        (expand_name_range, "a[1", '"a[1" has a bracket without its partner; a range is written like oss[001-036].'),
        (expand_name_range, "a1]", '"a1]" has a bracket without its partner; a range is written like oss[001-036].'),
        (
            expand_name_range,
            "a[x]",
            '"a[x]": "x" is not a number or a range of them; write it like [001-036] or [1,3,5].',
        ),
        (
            expand_name_range,
            "a[1, ]",
            '"a[1, ]": "" is not a number or a range of them; write it like [001-036] or [1,3,5].',
        ),
        (expand_name_range, "a[1-3:0]", '"a[1-3:0]" has a step of 0; a step is 1 or more.'),
        (expand_name_range, "a[03-1]", '"a[03-1]" runs from 03 down to 1; write the smaller number first.'),
        (
            expand_name_range,
            "a[1-4000001]",
            '"a[1-4000001]" stands for more than 4,000,000 names, which cannot be meant.',
        ),
        (
            expand_name_range,
            "a[1-2000][1-2001]",
            '"a[1-2000][1-2001]" stands for 4,002,000 names; more than 4,000,000 cannot be meant.',
        ),
        (parse_address, "10.0.0", '"10.0.0" is not an IPv4 or IPv6 address; write it like 10.100.0.91 or fd00::91.'),
        (parse_network, "ten", '"ten" is not an address range; write it like 10.100.0.0/16 or fd00:100::/64.'),
        (parse_network, "10.0.0.7/24", '"10.0.0.7/24" is an address inside a range, not a range; write 10.0.0.0/24.'),
        (
            expand_address_range,
            "10.0.0.1 .. fd00::1",
            '"10.0.0.1 .. fd00::1" runs from IPv4 to IPv6; write both ends in one.',
        ),
        (
            expand_address_range,
            "10.0.0.2 .. 10.0.0.1",
            '"10.0.0.2 .. 10.0.0.1" runs downwards; write the smaller address first.',
        ),
        (
            expand_address_range,
            "10.0.0.0 .. 10.61.9.0",
            '"10.0.0.0 .. 10.61.9.0" stands for 4,000,001 addresses; more than 4,000,000 cannot be meant.',
        ),
        (expand_address_range, "10.0.0.1 .. 10.0.0.1", ""),
    ],
)
def test_what_is_no_range(work: Callable[[str], object], text: str, sentence: str) -> None:
    assert error_of(work, text) == sentence


def test_a_range_may_step_and_have_blanks_around_it() -> None:
    assert MAX_NAMES == 4_000_000
    assert expand_name_range("a[0-9:3]x") == ("a0x", "a3x", "a6x", "a9x")
    assert str(parse_address(" 10.0.0.1 ")) == "10.0.0.1"
    assert str(parse_network(" 10.0.0.0/8 ")) == "10.0.0.0/8"


LIST = {"phases": [{"id": "w"}, {"id": "read"}], "tags": ["a"], "deep": {"x": 3}}
LIKE = "write it like"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("a.b", f'--set "a.b" has no "="; {LIKE} --set data.access.transfer=4KiB.'),
        ("a..b=1", f'--set "a..b=1" has an empty name before the "="; {LIKE} data.access.transfer=4KiB.'),
        ("=1", f'--set "=1" has an empty name before the "="; {LIKE} data.access.transfer=4KiB.'),
        ("deep.x.y=1", '--set "deep.x.y=1": deep.x is 3, which has no members.'),
        ("deep.x.y.z=1", '--set "deep.x.y.z=1": deep.x is 3, which has no members.'),
        (
            "phases.raed.op=x",
            '--set "phases.raed.op=x": phases has no entry "raed"; it has w, read. Did you mean "read"?',
        ),
        ("phases.2.op=x", '--set "phases.2.op=x": phases has 2 entries, counted from 0; there is no 2.'),
        ("tags.1=x", '--set "tags.1=x": tags has 1 entry, counted from 0; there is no 1.'),
        ("tags.b=x", '--set "tags.b=x": tags has no entry "b"; it has none.'),
    ],
)
def test_what_cannot_be_set(setting: str, sentence: str) -> None:
    import copy

    document: dict[str, Any] = copy.deepcopy(LIST)
    assert error_of(lambda text: apply_settings(document, [text]), setting) == sentence
    if "=" in setting and not setting.startswith("=") and ".." not in setting:
        path, _, value = setting.partition("=")
        plain = sentence.removeprefix(f'--set "{setting}": ')
        assert error_of(lambda value: set_member_at_path(document, path, value), value) == plain


def test_values_of_settings_that_are_neither_json_nor_toml() -> None:
    assert error_of(parse_setting, "a={b").startswith('--set value "{b" is neither JSON nor TOML: ')
    assert parse_setting(" a . b = 1 ")[1] == 1
    assert parse_setting("a=Infinity") == (["a"], "Infinity")
    assert parse_setting("a=[1, {b = 2}]") == (["a"], [1, {"b": 2}])


def test_settings_change_what_they_name_and_nothing_else() -> None:
    document: dict[str, Any] = {"phases": [{"id": "w"}, {"id": "r"}], "access": {"volume": 1, "x": 2}, "segments": 5}
    apply_settings(document, ["phases.0=null", "access.segments=3", "volume=4", "new.deep.er=true", "absent=null"])
    assert document == {
        "phases": [{"id": "r"}], "access": {"segments": 3, "x": 2}, "segments": 5, "volume": 4,
        "new": {"deep": {"er": True}},
    }  # fmt: skip
    value = {"list": [1]}
    set_member_at_path(document, "phases.r.own", value)
    value["list"].append(2)
    assert document["phases"] == [{"id": "r", "own": {"list": [1]}}]
    set_member_at_path(document, "backend", None)
    assert "backend" not in document


def plan(**members: Any) -> dict[str, Any]:
    return {"id": "p", "target": {"path": "/x"}, "phases": [{"id": "w", "op": "write"}], **members}


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}, {"id": "w", "op": "read"}]},
         'phases.0 and phases.2 have the same id "w"; ids must differ.'),
        ({"data": {"access": {"segments": 1, "volume": "1GiB"}}},
         "data.access has both segments and volume; give exactly one of them."),
        ({"phases": [{"id": "w", "op": "write", "access": {"segments": 1, "volume": "1GiB"}}]},
         "phases.w.access has both segments and volume; give exactly one of them."),
        ({"data": {"access": {"transfer": 0}}},
         "phases.w: access.transfer is 0; an operation must move at least one byte."),
        ({"data": {"access": {"transfer": "4KiB", "block": "6KiB"}}},
         "phases.w: access.block (6KiB) is not a multiple of access.transfer (4KiB); change both, or leave block out:"
         " then it is the transfer."),
        ({"data": {"access": {"block": 0}}},
         "phases.w: access.block (0) is not a multiple of access.transfer (1MiB); change both, or leave block out: then"
         " it is the transfer."),
        ({"data": {"access": {"block": "4KiB"}},
          "phases": [{"id": "w", "op": "write", "access": {"transfer": "3KiB"}}]},
         "phases.w: access.block (4KiB) is not a multiple of access.transfer (3KiB); the block is that of data, so give"
         " phases.w.access a block, too."),
        ({"phases": [{"id": "w", "op": "write", "access": {"transfer": "3KiB", "block": "4KiB"}}]},
         "phases.w: access.block (4KiB) is not a multiple of access.transfer (3KiB); change one of them."),
        ({"phases": [{"id": "w", "op": "write", "access": {"block": "3KiB"}}]},
         "phases.w: access.block (3KiB) is not a multiple of access.transfer (1MiB); change one of them."),
        ({"data": {"acces": {}}, "titel": 1},
         'The plan has no member "titel". Did you mean "title"? (1 more after that.)'),
    ],
)  # fmt: skip
def test_what_no_plan_may_say(members: dict[str, Any], sentence: str) -> None:
    assert error_of(lambda members: Plan.from_document(plan(**members), "origin"), members) == f"origin: {sentence}"


def test_what_is_no_document_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str, text: str) -> str:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return error_of(lambda members: read_plan_document(str(members)), file).replace(f"{tmp_path}/", "")

    assert of("a.json", "[1]") == "a.json: a plan is a table of members, not list."
    assert of("a.json", '{"a":') == "a.json is not valid JSON: Expecting value (at line 1, column 6)."
    assert of("a.json", '{"a": 1,\n "a": 2}') == (
        'a.json: the member "a" appears twice in one table; keep one of them.'
    )
    assert of("a.json", '{"a": NaN}') == "a.json: NaN is not a number that a plan can hold."
    assert of("a.json", '{"a":' * 100_000) == (
        "a.json is not valid JSON: it is nested too deeply, in more than 100 levels."
    )
    assert of("a.toml", "{").startswith("a.toml is not valid TOML: ")
    assert of("plan", ' {"a": 1}') == ""
    assert of("plan", "a = 1") == ""
    assert of("A.JSON", '{"a": 1}') == ""
    assert of("b.TOML", '{"a": 1}').startswith("b.TOML is not valid TOML: ")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1'))
    assert error_of(read_plan_document, "-").startswith("standard input is not valid JSON: ")
    monkeypatch.setattr("sys.stdin", io.StringIO("titel = 1"))
    assert error_of(Plan.read, "-").startswith("standard input: ")


def test_a_plan_hands_out_what_it_says_and_what_it_leaves_out() -> None:
    bare = Plan.from_document(plan(), "some where/my plan.toml")
    assert (bare.id, bare.title, bare.target, bare.processes, bare.threads, bare.stage_count) == (
        "p", "p", Path("/x"), 1, 1, 1,
    )  # fmt: skip
    assert (bare.time_limit_s, bare.document["schema"], bare.origin) == (
        None,
        "sonde-plan/2",
        "some where/my plan.toml",
    )
    separate = {"op": "read", "process": "separate"}
    phases = [{"id": "w", **separate}, {"id": "r", **separate}, {"id": "s", "op": "read"}]
    changed_plan = bare.with_settings(["title=T", "tasks.processes=2", "tasks.threads=3", "limits.time=2min"])
    assert (changed_plan.title, changed_plan.processes, changed_plan.threads, changed_plan.time_limit_s) == (
        "T",
        2,
        3,
        120.0,
    )
    assert Plan.from_document(plan(phases=phases), "x").stage_count == 2, "the first one starts an engine anyway"
    assert changed_plan.to_json().startswith('{\n  "id": "p",\n')
    assert changed_plan.to_json().endswith("}\n")
    assert Plan.from_document(plan(title="ä"), "x").to_json().count("ä") == 1
    unnamed = {name: value for name, value in plan().items() if name != "id"}
    assert Plan.from_document(unnamed, "/a/--my plan!.toml").id == "my-plan"
    assert Plan.from_document(unnamed, "/a/!!.toml").id == "plan"


def test_what_is_no_text_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(path: Path, largest: int = 1 << 20, regular: bool = False) -> str:
        message = error_of(lambda path: read_text_file(path, "plan file", largest, PlanError, regular), path)
        return message.replace(f"{tmp_path}/", "").replace(str(tmp_path), "HERE")

    assert of(tmp_path) == "HERE is a directory, not a plan file."
    assert of(tmp_path / "a") == "There is no plan file a."
    file = tmp_path / "b"
    file.write_bytes(b"x" * (1 << 20))
    assert of(file) == ""
    assert read_text_file(file, "plan file", 1 << 20, PlanError) == "x" * (1 << 20)
    file.write_bytes(b"x" * ((1 << 20) + 1))
    assert of(file) == "b is larger than 1 MiB; that cannot be a plan file."
    file.write_bytes(b"ab\xff")
    assert of(file) == "b is not a text file: byte 2 is not UTF-8."
    null = Path("/dev/null")
    assert of(null, regular=True) == "/dev/null is not a regular file, so it is no plan file."
    assert of(null) == ""
    file.write_bytes(b"x")

    def broken(*_: Any, **__: Any) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", broken)
    assert of(file) == "b cannot be read: Input/output error."


def test_files_that_come_with_sonde_are_known_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    systems = find_bundled_toml_files("systems")
    assert list(systems) == sorted(systems)
    assert systems["hpcs-demo"].name == "hpcs-demo.toml"
    assert find_system_file("hpcs-demo") == str(systems["hpcs-demo"])
    assert error_of(find_system_file, "hpcs-dmeo") == (
        f'There is no system file "hpcs-dmeo" and no described system of that name; described are {", ".join(systems)}.'
        ' Did you mean "hpcs-demo"?'
    )
    assert [is_file_reference(name, ["a"]) for name in ("a/b", "a.toml", "a.json", "a.txt", "a")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    (tmp_path / "hpcs-demo").touch()
    assert find_system_file("hpcs-demo") == str(systems["hpcs-demo"]), "a planted file does not count"
    (tmp_path / "own").touch()
    assert find_system_file("own") == "own"
    assert find_bundled_toml_files("no-such-folder") == {}
    inside = find_bundled_toml_files("systems", include_subfolders=True)
    assert set(systems) < set(inside), "those in folders of the folder too"


def test_a_schema_that_is_not_there_is_said() -> None:
    assert error_of(read_schema_text, "plan/none.json") == (
        "The schema file plan/none.json is missing from this installation; install sonde again."
    )


def test_errors_end_commands_with_their_codes() -> None:
    codes = (errors.EXIT_OK, errors.EXIT_FAILED, errors.EXIT_BAD_INPUT, errors.EXIT_ENVIRONMENT)
    assert (*codes, errors.EXIT_MISMATCH, errors.EXIT_INTERRUPTED) == (0, 1, 2, 3, 4, 5)
    kinds = (RunFailedError, UserError, PlanError, MachineError, DataMismatchError, StoppedError)
    assert [kind.exit_code for kind in kinds] == [1, 2, 2, 3, 4, 5]


def test_an_error_stays_on_its_line() -> None:
    assert str(UserError("a\nb\x1b[31m ä")) == "a\\nb\\x1b[31m ä"
    assert escape_unprintable("plain ä") == "plain ä"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", ""), ("  ", ""), ("a", "A."), (" a. ", "A."), ("why?", "Why?"), ("go!", "Go!"), ("ABC d", "ABC d.")],
)
def test_a_clause_becomes_a_sentence(text: str, sentence: str) -> None:
    assert format_as_sentence(text) == sentence


@pytest.mark.parametrize(
    ("word", "names", "near"),
    [
        ("dirct", ["direct", "dirty"], ' Did you mean "direct"?'),
        ("zzz", ["direct"], ""),
        ("DIRECT", ["other", "direct"], ' Did you mean "direct"?'),
        ("QUEUE-DEPTH", ["queue_depth"], ' Did you mean "queue_depth"?'),
        ("queue_depth", ["QUEUE-DEPTH"], ' Did you mean "QUEUE-DEPTH"?'),
        ("abcde", ["abxyz"], ""),
        ("abcde", ["abcyz"], ' Did you mean "abcyz"?'),
        ("x", [], ""),
    ],
)
def test_the_nearest_known_word_is_meant(word: str, names: list[str], near: str) -> None:
    assert suggest_close_name(word, iter(names)) == near


@pytest.mark.parametrize(
    ("read", "name", "description", "mib"),
    [
        (read_plan_document, "a.toml", "plan file", 16),
        (read_events_file, "a.toml", "file of events", 256),
        (read_system, "a.toml", "system file", 256),
        (read_experiment, "a.toml", "experiment file", 16),
    ],
)
def test_a_file_that_is_too_large_to_be_meant_is_not_read(
    read: Callable[[Any], object], name: str, description: str, mib: int, tmp_path: Path
) -> None:
    """A hole takes no space."""
    file = tmp_path / name
    file.touch()
    os.truncate(file, (mib << 20) + 1)
    assert error_of(read, str(file)) == f"{file} is larger than {mib} MiB; that cannot be a {description}."
