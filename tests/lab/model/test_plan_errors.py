# SPDX-License-Identifier: Apache-2.0
"""Error messages about settings and plans, word for word."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from error_text import get_error_text

from sonde.model.plan import Plan, read_plan_document
from sonde.model.settings import apply_settings, parse_setting, set_member_at_path

LIST = {"phases": [{"id": "w"}, {"id": "read"}], "tags": ["a"], "deep": {"x": 3}}
SYNTAX_HINT = "write it like"


@pytest.mark.parametrize(
    ("setting", "expected_sentence"),
    [
        ("a.b", f'--set "a.b" has no "="; {SYNTAX_HINT} --set data.access.transfer=4KiB.'),
        ("a..b=1", f'--set "a..b=1" has an empty name before the "="; {SYNTAX_HINT} data.access.transfer=4KiB.'),
        ("=1", f'--set "=1" has an empty name before the "="; {SYNTAX_HINT} data.access.transfer=4KiB.'),
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
def test_invalid_settings_have_exact_error_messages(setting: str, expected_sentence: str) -> None:
    import copy

    document: dict[str, Any] = copy.deepcopy(LIST)
    assert get_error_text(lambda text: apply_settings(document, [text]), setting) == expected_sentence
    if "=" in setting and not setting.startswith("=") and ".." not in setting:
        path, _, value = setting.partition("=")
        plain = expected_sentence.removeprefix(f'--set "{setting}": ')
        assert get_error_text(lambda value: set_member_at_path(document, path, value), value) == plain


def test_values_of_settings_that_are_neither_json_nor_toml() -> None:
    assert get_error_text(parse_setting, "a={b").startswith('--set value "{b" is neither JSON nor TOML: ')
    assert parse_setting(" a . b = 1 ")[1] == 1
    assert parse_setting("a=Infinity") == (["a"], "Infinity")
    assert parse_setting("a=[1, {b = 2}]") == (["a"], [1, {"b": 2}])


def test_settings_change_only_the_members_in_their_paths() -> None:
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
    ("members", "expected_sentence"),
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
         'The plan has no member "titel". Did you mean "title"? data has no member "acces". Did you mean "access"?'),
        ({"titel": 1, "tasks": {"threads": 0}, "data": {"acces": {}, "files": {"count": 0}, "backend": "posx"}},
         'The plan has no member "titel". Did you mean "title"? data has no member "acces". Did you mean "access"?'
         " data.files.count is 0; it must be at least 1. (1 more after that.)"),
    ],
)  # fmt: skip
def test_invalid_plan_members_have_exact_error_messages(members: dict[str, Any], expected_sentence: str) -> None:
    assert (
        get_error_text(lambda members: Plan.from_document(plan(**members), "origin"), members)
        == f"origin: {expected_sentence}"
    )


def test_invalid_plan_files_have_exact_error_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str, text: str) -> str:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return get_error_text(lambda members: read_plan_document(str(members)), file).replace(f"{tmp_path}/", "")

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
    assert get_error_text(read_plan_document, "-").startswith("standard input is not valid JSON: ")
    monkeypatch.setattr("sys.stdin", io.StringIO("titel = 1"))
    assert get_error_text(Plan.read, "-").startswith("standard input: ")


def test_plan_exposes_its_members_and_defaults() -> None:
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
