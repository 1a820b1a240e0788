# SPDX-License-Identifier: Apache-2.0
"""Schema errors of a plan as one sentence: member, value, allowed values, and a suggestion."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sonde.model.schema_problems import find_schema_problems, format_json_value, format_member_path
from sonde.model.schemas import load_plan_schema

GOOD: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "p",
    "target": {"path": "/x"},
    "data": {"access": {"transfer": "4KiB"}, "files": {}, "io": {}},
    "phases": [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}],
}


def find_problems(member: str, member_value: Any) -> list[str]:
    """The sentences about a good plan with one member set; phases by number."""
    plan = copy.deepcopy(GOOD)
    *path, last = member.split(".")
    here: Any = plan
    for name in path:
        here = here[int(name)] if name.isdigit() else here.setdefault(name, {})
    here[last] = member_value
    return find_schema_problems(load_plan_schema(), plan)


def test_a_good_plan_has_no_problem() -> None:
    assert find_schema_problems(load_plan_schema(), GOOD) == []


@pytest.mark.parametrize(
    ("member", "member_value", "expected_sentence"),
    [
        ("data.io.direct", "true", 'data.io.direct is "true"; it must be true or false. Write true or false without'
                                   " quotation marks."),
        ("data.io.direct", "maybe", 'data.io.direct is "maybe"; it must be true or false.'),
        ("data.io.direct", 0, "data.io.direct is 0; it must be true or false. Write true or false without quotation"
                              " marks."),
        ("data.io.queue_depth", "8", 'data.io.queue_depth is "8"; it must be a whole number. Write it without quotation'
                                     " marks."),
        ("data.io.queue_depth", 2.0, "data.io.queue_depth is 2.0; it must be a whole number."),
        ("data.io.queue_depth", "eight", 'data.io.queue_depth is "eight"; it must be a whole number.'),
        ("data.io.queue_depth", 0, "data.io.queue_depth is 0; it must be at least 1."),
        ("title", 3, "title is 3; it must be a text."),
        ("phases", {}, "phases is {}; it must be a list."),
        ("data", [], "data is []; it must be a table of members."),
        ("phases", [], "phases has 0 entries; it must have at least 1."),
        ("data.access.transfer", "4k", 'data.access.transfer: "4k" does not say which unit is meant: write 4KiB'
                                       " (4,096 bytes) or 4kB (4,000 bytes)."),
        ("data.access.transfer", 4.5, 'data.access.transfer is 4.5; write "4KiB", "10MB" or a whole number of bytes.'),
        ("data.access.volume", {"of": "byte", "bytes": 1}, 'data.access.volume.of is "byte"; allowed is bytes or'
                                                             ' node_memory. Did you mean "bytes"?'),
        ("phases.1.op", "raed", 'phases.r.op is "raed"; allowed is '),
        ("phases.1.cold", 1, 'phases.r has no member "cold"'),
        ("data.direct", True, 'data has no member "direct"'),
        ("schema", "sonde-plan/9", 'schema is "sonde-plan/9"; allowed is "sonde-plan/2". Did you mean "sonde-plan/2"?'),
    ],
)  # fmt: skip
def test_each_kind_of_mistake_has_its_sentence(member: str, member_value: Any, expected_sentence: str) -> None:
    (problem,) = find_problems(member, member_value)
    assert problem == expected_sentence or (
        not expected_sentence.endswith(".") and problem.startswith(expected_sentence)
    ), problem


def test_misplaced_member_names_its_table() -> None:
    (problem,) = find_problems("data.direct", True)
    assert problem.endswith('A member of that name is "data.io.direct".')
    (near,) = find_problems("phases.1.op", "raed")
    assert "did you mean read?" in near.lower() or "read" in near.split(".")[-2]


def test_missing_member_message_explains_how_to_set_it() -> None:
    def find_problems_without_member(*path: str) -> list[str]:
        plan = copy.deepcopy(GOOD)
        here = plan
        for name in path[:-1]:
            here = here[name]
        del here[path[-1]]
        return find_schema_problems(load_plan_schema(), plan)

    assert find_problems_without_member("target", "path") == [
        '"target.path" is missing; name the directory to measure with --on DIR or path = "DIR" in [target].'
    ]
    assert find_problems_without_member("target") == [
        '"target" is missing; name the directory to measure with --on DIR.'
    ]
    assert find_problems_without_member("phases") == [
        '"phases" is missing; a plan needs at least one [[phases]] with an id and an op.'
    ]
    assert find_problems_without_member("id") == ['"id" is missing.']


def test_json_values_in_messages_are_shortened() -> None:
    assert format_json_value("x" * 58) == '"' + "x" * 58 + '"'
    assert format_json_value("x" * 59) == '"' + "x" * 58 + "…"
    assert format_json_value({"ä": 1}) == '{"ä": 1}'


@pytest.mark.parametrize(
    ("member", "member_value", "expected_sentence"),
    [
        ("title", None, "title is null; it must be a text."),
        ("id", "a b", 'id is "a b"; only letters, digits, dot, dash and underscore are allowed.'),
        ("phases.0.id", "a b", 'phases.a b.id is "a b"; only letters, digits, dot, dash and underscore are allowed.'),
        ("phases", [3], "phases.0 is 3; it must be a table of members."),
        ("phases.0.id", 3, "phases.0.id is 3; it must be a text."),
        ("notes", "x", 'notes is "x"; it must be a list.'),
        ("data.io.direct", "ON", 'data.io.direct is "ON"; it must be true or false. Write true or false without'
                                 " quotation marks."),
        ("data.io.queue_depth", " 8 ", 'data.io.queue_depth is " 8 "; it must be a whole number. Write it without'
                                       " quotation marks."),
        ("data.io.queue_depth", True, "data.io.queue_depth is true; it must be a whole number."),
        ("data.io.pause", "5", 'data.io.pause: "5" has no unit; write 5s for seconds (known: ns, us, ms, s, min, h).'),
        ("data.io.pause", " 5s", 'data.io.pause is " 5s"; remove the spaces around it.'),
        ("data.io.pause", [], 'data.io.pause is []; write "10s" or "500ms".'),
        ("data.access.transfer", [], 'data.access.transfer is []; write "4KiB", "10MB" or a whole number of bytes.'),
        ("data.access.volume", "4k", 'data.access.volume: "4k" does not say which unit is meant: write 4KiB (4,096'
                                     " bytes) or 4kB (4,000 bytes)."),
        ("data.access.volume", {"of": "bytes", "byte": 1}, 'data.access.volume has no member "byte". Did you mean'
                                                             ' "bytes"?'),
        ("data.paced.rate", "5", 'data.paced.rate: "5" is not a rate; a rate ends in "/s", like 100MB/s.'),
        ("data.paced.rate", {}, 'data.paced.rate is {}; write "1GB/s".'),
        ("meta.select.exponent", 0.001, "meta.select.exponent is 0.001; it must be at least 0.01."),
        ("data.payload.compressible", 2, "data.payload.compressible is 2; it must be at most 1."),
        ("data.files.mapping", 3, "data.files.mapping is 3; allowed is shared, per_task, per_node, per_group or many."),
        ("target.pth", 1, 'target has no member "pth". Did you mean "path"?'),
        ("volume", 1, 'The plan has no member "volume"; allowed are '),
    ],
)  # fmt: skip
def test_more_kinds_of_mistakes_have_their_sentences(member: str, member_value: Any, expected_sentence: str) -> None:
    (problem,) = find_problems(member, member_value)
    assert problem == expected_sentence or (
        expected_sentence.endswith("are ") and problem.startswith(expected_sentence)
    ), problem


def test_member_path_uses_ids_of_phases_and_indexes_elsewhere() -> None:
    document = {"phases": [{"id": "w", "before": [{"id": "x"}]}, {"id": ""}, {"id": 3}, 4]}
    named_places: tuple[tuple[list[str | int], str], ...] = (
        (["phases", 0, "before", 0, "id"], "phases.w.before.0.id"),
        (["phases", 1, "op"], "phases.1.op"),
        (["phases", 2], "phases.2"),
        (["phases", 3], "phases.3"),
        (["phases", 9, "op"], "phases.9.op"),
        (["data", "phases", 0], "data.phases.0"),
        ([], ""),
    )
    for path, text in named_places:
        assert format_member_path(path, document) == text
    assert format_json_value({"a": object}, max_characters=9).endswith("…")
    assert format_json_value("abcdef", max_characters=8) == '"abcdef"'
    assert format_json_value("abcdef", max_characters=7) == '"abcde…'


def test_problems_are_sorted_by_member_path() -> None:
    plan = copy.deepcopy(GOOD) | {"title": 3, "notes": 4}
    plan["data"]["io"] = {"direct": 5}
    assert [problem.split()[0] for problem in find_schema_problems(load_plan_schema(), plan)] == [
        "data.io.direct",
        "notes",
        "title",
    ]


def test_unknown_schema_rules_use_the_validator_message() -> None:
    rules = {"a": {"multipleOf": 2}, "b": {"exclusiveMinimum": 3}, "c": {"maxItems": 1}}
    schema = {"type": "object", "properties": rules, "maxProperties": 3, "$defs": {}}
    assert find_schema_problems(schema, {"a": 3}) == ["a: 3 is not a multiple of 2."]
    assert find_schema_problems(schema, {"b": 3}) == ["b is 3; it must be larger than 3."]
    assert find_schema_problems(schema, {"c": [1, 2]}) == ["c has 2 entries; it must have at most 1."]
    assert find_schema_problems(schema, {"d": 1, "e": 2, "f": 3, "g": 4})[0].startswith("The plan: ")


# Stands for the optional parser of jsonschema that takes long to import.
ADDRESS_PARSER = """
def is_valid_syntax(term, value):
    return (term, value) == ("iri", "http://good")
"""
IMPORTS_OF_A_CHECK = """
import sys
from sonde.model.schema_problems import find_schema_problems
find_schema_problems({"type": "object"}, {})
print("rfc3987_syntax" in sys.modules)
from jsonschema import FormatChecker
print(FormatChecker().conforms("http://good", "iri"), FormatChecker().conforms("http://bad", "iri"))
print("rfc3987_syntax" in sys.modules)
"""


def test_address_parser_is_imported_at_its_first_use(tmp_path: Path) -> None:
    (tmp_path / "rfc3987_syntax.py").write_text(ADDRESS_PARSER)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", IMPORTS_OF_A_CHECK]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.stdout.split(), result.stderr) == (["False", "True", "False", "True"], "")
