# SPDX-License-Identifier: Apache-2.0
"""A table with a member of every kind: what is read, what is refused and in which words, and what its schema says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sonde.model.errors import EventError, SystemFileError
from sonde.model.tables.json_schema import SCHEMA_DRAFT, build_definitions, build_file_schema, build_table_schema
from sonde.model.tables.members import (
    declare_choice,
    declare_choices,
    declare_flag,
    declare_parameters,
    declare_plain_number,
    declare_quantity,
    declare_raw_value,
    declare_references,
    declare_settings,
    declare_table,
    declare_tables,
    declare_text,
    declare_texts,
    get_default_of_member,
    get_members,
    list_required_members,
)
from sonde.model.tables.members import declare_rates as rates_member
from sonde.model.tables.quantity import BASE_UNITS, NUMBER_PARSERS, Quantity, ReadWriteRates
from sonde.model.tables.table_reader import ReadContext, read_member, read_table


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A table inside another.

    Whose second paragraph is for us only.
    """

    id: str = declare_text("its name")
    source: str = declare_text("who says so")
    status: str = declare_choice("how sure", ("measured", "assumed"))
    size: Quantity | None = declare_quantity("size", "how large", required=True)


def require_seven(value: object) -> str | None:
    """The problem of a raw value."""
    return None if value == 7 else "is not seven."


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A member
    of every kind."""

    id: str = declare_text("what it is called", required=True, pattern="[a-z]+")
    labels: tuple[str, ...] = declare_texts("some words")
    yes: bool | None = declare_flag("whether")
    color: str = declare_choice("one of them", ("red", "green"), default_word="red")
    some: tuple[str, ...] = declare_choices("some of them", ("red", "green"))
    size: Quantity | None = declare_quantity("size", "how large")
    count: Quantity | None = declare_quantity("count", "how many", min_value=2)
    limit: float | None = declare_plain_number("duration", "how long", default_value=1.5)
    number: int | None = declare_plain_number("count", "a plain count", min_value=1)
    anything: Any = declare_raw_value("seven", {"const": 7}, require_seven)
    rate: ReadWriteRates | None = rates_member("how fast")
    parts: tuple[str, ...] = declare_references("what it is made of", "drives", "luns", allows_several=True)
    home: tuple[str, ...] = declare_references("where it is", required=True)
    inner: Inner | None = declare_table("one more", Inner)
    inners: tuple[Inner, ...] = declare_tables("several more", Inner)
    tuning: Mapping[str, Any] | None = declare_settings("what others define")
    model: Mapping[str, Quantity] | None = declare_parameters("numbers by name", {"seek": ("duration", "time to move")})
    told_elsewhere: int = 5


def read(**members: Any) -> Outer:
    return read_table(Outer, {"id": "a", "home": "h"} | members, ReadContext(EventError, "file.toml"))


def refused(**members: Any) -> str:
    with pytest.raises(EventError) as caught:
        read(**members)
    return str(caught.value)


def test_minimal_table_has_defaults() -> None:
    assert read() == Outer(
        id="a", home=("h",), labels=(), yes=None, color="red", some=(), size=None, count=None, limit=1.5, number=None,
        anything=None, rate=None, parts=(), inner=None, inners=(), tuning=None, model=None,
    )  # fmt: skip


def test_each_member_kind_is_parsed_to_its_type() -> None:
    table_read = read(
        labels="one", yes=False, color="green", some="red", size="4 KiB", count=2, limit="2 min", number=3, anything=7,
        rate="1 GB/s", parts=["d[1-2]", "l"], home=["x", "y"], inner={"size": "1 B"},
        inners=[{"size": "2 B"}, {"size": "3 B", "id": "b"}], tuning={"a": 1, "b": "c", "d": True, "e": 1.5},
        model={"seek": "8 ms", "x-own": -3.5},
    )  # fmt: skip
    fast = Quantity(1e9, "1 GB/s")
    assert table_read == Outer(
        id="a", labels=("one",), yes=False, color="green", some=("red",), size=Quantity(4096, "4 KiB"),
        count=Quantity(2, "2"), limit=120.0, number=3, anything=7,
        rate=ReadWriteRates(fast, fast), parts=("d[1-2]", "l"), home=("x", "y"), inner=Inner(size=Quantity(1, "1 B")),
        inners=(Inner(size=Quantity(2, "2 B")), Inner(id="b", size=Quantity(3, "3 B"))),
        tuning={"a": 1, "b": "c", "d": True, "e": 1.5},
        model={"seek": Quantity(0.008, "8 ms"), "x-own": Quantity(-3.5, "-3.5")},
    )  # fmt: skip
    assert read(labels=["one", "two"], some=["red", "green"]).labels == ("one", "two")
    assert read(some=["red", "green"]).some == ("red", "green")
    assert read(rate={"read": "1 GB/s"}).rate == ReadWriteRates(fast, None)
    assert read(rate={"write": "1 GB/s"}).rate == ReadWriteRates(None, fast)
    assert read(rate={"value": "1 GB/s", "note": "n"}).rate == ReadWriteRates(*[Quantity(1e9, "1 GB/s", note="n")] * 2)
    assert read(rate={}).rate == ReadWriteRates()


def test_number_inherits_the_source_of_its_table() -> None:
    def size(**inner: Any) -> Quantity:
        inner_table = read_table(Inner, inner, ReadContext(EventError, "f", source="above", status="inferred")).size
        assert inner_table is not None
        return inner_table

    assert size(size="1 B") == Quantity(1, "1 B", "above", "inferred")
    assert size(size="1 B", source="here") == Quantity(1, "1 B", "here", "inferred")
    assert size(size="1 B", status="measured") == Quantity(1, "1 B", "above", "measured")
    number = {"value": "1 B", "source": "own", "status": "fitted", "note": "n"}
    assert size(size=number, source="here", status="measured") == Quantity(1, "1 B", "own", "fitted", "n")
    assert size(size={"value": "1 B"}, source="here") == Quantity(1, "1 B", "here", "inferred")
    plain = read(size="1 B").size
    assert plain == Quantity(1, "1 B", "", "", "")
    assert (int(Quantity(2.9, "")), float(Quantity(2, ""))) == (2, 2.0)


NUMBER = "a number is written plainly or as {value, source, status, note}."
SEVERAL = "it must be a text or a list of texts: some words."


@pytest.mark.parametrize(
    ("members", "expected_sentence"),
    [
        ({"lables": "a"}, 'the file has no member "lables". Did you mean "labels"?'),
        ({"qqqqqqqq": 1}, 'the file has no member "qqqqqqqq". Allowed are id, labels, yes, color, some, size, count,'
                     " limit, number, anything, rate, parts, home, inner, inners, tuning, model."),
        ({"id": 3}, "id is 3; it must be a text: what it is called."),
        ({"id": ""}, "id is empty; write what it is called."),
        ({"id": "A"}, 'id is "A"; write what it is called.'),
        ({"id": "ab1"}, 'id is "ab1"; write what it is called.'),
        ({"home": []}, "home is empty; write where it is."),
        ({"home": ""}, "home is empty; write where it is."),
        ({"labels": 3}, f"labels is 3; {SEVERAL}"),
        ({"labels": ["a", 3]}, f'labels is ["a", 3]; {SEVERAL}'),
        ({"yes": "true"}, 'yes is "true"; write true or false without quotation marks.'),
        ({"color": "gren"}, 'color is "gren"; allowed is red, green. Did you mean "green"?'),
        ({"color": 3}, "color is 3; allowed is red, green."),
        ({"some": ["red", "blue"]}, 'some is "blue"; allowed is red, green.'),
        ({"size": 5}, 'size: 5 has no unit; write a size like "5 B", "64 GB" or "4 KiB".'),
        ({"size": " 5 B"}, 'size: " 5 B" has spaces around it; remove them.'),
        ({"size": ["5 B"]}, 'size: ["5 B"] is not one number.'),
        ({"size": {"value": {"a": 1}}}, 'size: {"a": 1} is not one number.'),
        ({"size": {"text": "5 B"}}, f'size has no member "text"; {NUMBER}'),
        ({"size": {"valeu": "5 B"}}, f'size has no member "valeu"; {NUMBER} Did you mean "value"?'),
        ({"size": {"source": "me"}}, 'size lacks "value"; a number with a source is {value = …, source = "…"}.'),
        ({"size": {"value": "1 B", "note": 3}}, "size.note is 3; it must be a text."),
        ({"size": {"value": "1 B", "status": "mesured"}},
         'size.status is "mesured"; allowed is published, measured, fitted, inferred, assumed.'
         ' Did you mean "measured"?'),
        ({"count": 1}, "count is 1; it must be at least 2."),
        ({"count": -1}, "count: -1 is not a count; write a whole number from 0."),
        ({"count": True}, "count: True is not a count; write a whole number from 0."),
        ({"count": "2"}, 'count: "2" is not a count; write a whole number from 0.'),
        ({"limit": 3}, 'limit: 3 has no unit; write a duration like "3 s" or "2 us".'),
        ({"limit": {"value": "3 s"}}, 'limit is {"value": "3 s"}; it must be one number: how long.'),
        ({"number": 0}, "number is 0; it must be at least 1."),
        ({"anything": 8}, "anything is not seven."),
        ({"rate": {"raed": "1 GB/s"}},
         'rate has no member "raed"; write one rate for both directions or {read = "…", write = "…"}.'
         ' Did you mean "read"?'),
        ({"rate": {"read": 5}}, "rate.read: 5 does not say bits or bytes; write a unit, like 200 Gbit/s or 2.4 GB/s."),
        ({"inner": 3}, "inner is 3; it must be a table of members."),
        ({"inner": {}}, 'inner lacks "size": how large.'),
        ({"inners": {}}, "inners is {}; it must be a list of tables, each written as [[inners]]."),
        ({"inners": [{"size": "1 B"}, {"size": 2}]},
         'inners.1.size: 2 has no unit; write a size like "2 B", "64 GB" or "4 KiB".'),
        ({"inners": [{"id": "b", "size": 2}]},
         'inners.b.size: 2 has no unit; write a size like "2 B", "64 GB" or "4 KiB".'),
        ({"inners": [{"id": "", "color": 2}]},
         'inners.0 has no member "color". Allowed are id, source, status, size.'),
        ({"tuning": [1]}, "tuning is [1]; it must be a table of names and values."),
        ({"tuning": {"a": [1]}}, "tuning.a is [1]; it must be a text, a number, true or false."),
        ({"model": 1}, "model is 1; it must be a table of parameters."),
        ({"model": {"seeek": "1 s"}}, 'model has no parameter "seeek". Did you mean "seek"?'),
        ({"model": {"zzz": "1 s"}}, 'model has no parameter "zzz". Known are seek; one of your own begins with x-.'),
        ({"model": {"seek": 1}}, 'model.seek: 1 has no unit; write a duration like "1 s" or "2 us".'),
        ({"model": {"x-own": "1 s"}},
         'model.x-own: "1 s" is not a number; write it without quotation marks and without a unit.'),
        ({"model": {"x-own": float("inf")}},
         "model.x-own: inf is not a number; write it without quotation marks and without a unit."),
        ({"model": {"x-own": True}},
         "model.x-own: True is not a number; write it without quotation marks and without a unit."),
    ],
)  # fmt: skip
def test_unreadable_member_is_refused_with_its_location(members: dict[str, Any], expected_sentence: str) -> None:
    assert refused(**members) == f"file.toml: {expected_sentence}"


def test_table_that_is_no_table_or_lacks_a_member_is_rejected() -> None:
    context = ReadContext(SystemFileError, "file.toml")
    with pytest.raises(SystemFileError, match=r"^file\.toml: is \[\]; it must be a table of members\.$"):
        read_table(Outer, [], context)
    with pytest.raises(SystemFileError, match=r'^file\.toml: lacks "id": what it is called\.$'):
        read_table(Outer, {"home": "h"}, context)
    inside = context.make_nested_context("here").make_nested_context("there")
    assert str(inside.make_error("is odd.")) == "file.toml: here.there is odd."
    assert str(inside.wrap_error(EventError("odd."))) == "file.toml: here.there: odd."
    assert isinstance(inside.make_error("x"), SystemFileError)
    assert read_member(get_members(Outer)["count"], 5, context) == Quantity(5, "5")


def test_declaration_lists_required_members_and_defaults() -> None:
    assert list_required_members(Outer) == ("id", "home")
    assert list(get_members(Outer))[-1] == "model", "what is declared in another way is no member"
    assert get_default_of_member(Outer, "id") is None
    assert [get_default_of_member(Outer, name) for name in ("labels", "color", "limit", "size")] == [
        (),
        "red",
        1.5,
        None,
    ]
    parts, home, count = (get_members(Outer)[name] for name in ("parts", "home", "count"))
    assert (parts.target_kinds, parts.allows_several, parts.is_shared, parts.required) == (
        ("drives", "luns"),
        True,
        False,
        False,
    )
    assert (home.target_kinds, home.allows_several, home.is_shared, home.required) == ((), False, False, True)
    assert (count.kind, count.least, count.is_plain, count.pattern, count.choices) == ("count", 2, False, "", ())
    shared = declare_references("all of them", is_shared=True).metadata["member"]
    assert (shared.allows_several, shared.is_shared) == (True, True)


def test_each_kind_of_number_has_its_reader_and_its_unit() -> None:
    written: Mapping[str, tuple[Any, float]] = {
        "size": ("2 KiB", 2048), "duration": ("3 ms", 0.003), "rate": ("8 Gbit/s", 1e9), "op_rate": ("2 kop/s", 2000),
        "share": ("40 %", 0.4), "count": (0, 0), "number": (-2.5, -2.5),
    }  # fmt: skip
    assert {kind: NUMBER_PARSERS[kind](text) for kind, (text, _) in written.items()} == {
        kind: pytest.approx(value) for kind, (_, value) in written.items()
    }
    assert dict(BASE_UNITS) == {
        "size": "bytes", "duration": "seconds", "rate": "bytes per second", "op_rate": "operations per second",
        "share": "from 0 to 1", "count": "a count", "number": "a number",
    }  # fmt: skip


SCHEMA = build_file_schema(Outer, "Outer, version 1")


def test_schema_of_a_table_matches_its_declaration() -> None:
    plain = {"type": "string"}
    assert SCHEMA["$schema"] == SCHEMA_DRAFT == "https://json-schema.org/draft/2020-12/schema"
    assert (SCHEMA["title"], SCHEMA["description"]) == ("Outer, version 1", "A member of every kind.")
    assert (SCHEMA["type"], SCHEMA["required"], SCHEMA["additionalProperties"]) == ("object", ["id", "home"], False)
    properties = SCHEMA["properties"]
    assert properties["id"] == {
        "type": "string", "minLength": 1, "pattern": "^(?:[a-z]+)$", "description": "what it is called",
    }  # fmt: skip
    assert properties["labels"] == {"anyOf": [plain, {"type": "array", "items": plain}], "description": "some words"}
    assert properties["yes"] == {"type": "boolean", "description": "whether"}
    assert properties["color"] == {"enum": ["red", "green"], "description": "one of them", "default": "red"}
    either = {"enum": ["red", "green"]}
    assert properties["some"] == {
        "anyOf": [either, {"type": "array", "items": either}], "description": "some of them",
    }  # fmt: skip
    assert properties["size"] == {"$ref": "#/$defs/size", "description": "how large"}
    least = {"type": "integer", "minimum": 2}
    assert properties["count"]["description"] == "how many"
    assert properties["count"]["anyOf"][0] == least
    assert properties["count"]["anyOf"][1]["properties"]["value"] == least
    assert properties["limit"]["type"] == "string"
    assert (properties["limit"]["description"], "default" in properties["limit"]) == ("how long", False)
    assert properties["number"] == {"type": "integer", "minimum": 1, "description": "a plain count"}
    assert properties["anything"] == {"const": 7, "description": "seven"}
    assert properties["rate"] == {"$ref": "#/$defs/rates", "description": "how fast"}
    assert properties["parts"] == {"$ref": "#/$defs/ids", "description": "what it is made of (of drives, luns)"}
    name = {"type": "string", "minLength": 1}
    assert properties["home"] == {
        "anyOf": [name, {"type": "array", "items": name, "minItems": 1}], "description": "where it is",
    }  # fmt: skip
    inner = build_table_schema(Inner)
    assert (inner["description"], inner["required"]) == ("A table inside another.", ["size"])
    assert properties["inner"] == inner | {"description": "one more"}
    assert properties["inners"] == {"type": "array", "items": inner, "description": "several more"}
    assert properties["tuning"] == {"$ref": "#/$defs/settings", "description": "what others define"}
    assert properties["model"]["properties"] == {"seek": {"$ref": "#/$defs/duration", "description": "time to move"}}
    assert properties["model"]["patternProperties"] == {"^x-": {"$ref": "#/$defs/number"}}
    assert properties["model"]["additionalProperties"] is False
    assert "told_elsewhere" not in properties


def test_schema_contains_only_the_definitions_it_uses() -> None:
    assert set(SCHEMA["$defs"]) == {"size", "rates", "rate", "ids", "settings", "duration", "number"}
    assert set(build_definitions()) == {*BASE_UNITS, "rates", "ids", "settings"}

    @dataclass
    class Plain:
        """Of words only."""

        word: str = declare_text("a word")

    assert "$defs" not in build_file_schema(Plain, "Plain")
    assert "required" not in build_file_schema(Plain, "Plain")


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("size", ["4 KiB", "4KiB", "1.5 GB", "7B", "2 PB"], ["4", "4 K", "KiB", "4 KB", "4 KiBs", 4]),
        ("limit", ["2 us", "2 µs", "3min", "1.5 h", "9ns", "4 ms"], ["2", "2 sec", "2 d", 2]),
        (
            "rate",
            ["1 GB/s", "8 Gbit/s", "9 bit/s", {"read": "1 kB/s"}, {"value": "1 MiB/s", "note": "n"}],
            ["1 GB", "8 Gb/s", {"raed": "1 GB/s"}, {"value": "1 GB/s", "status": "sure"}, {"source": "me"}, 5],
        ),
        ("count", [2, {"value": 3, "source": "me"}], [1, -2, 2.5, "2", {"value": 1}]),
        ("number", [1, 9], [0, "1"]),
        ("model", [{"seek": "8 ms"}, {"x-own": 3.5}], [{"seek": 8}, {"own": 3}, {"x-own": "3"}]),
        ("tuning", [{"a": "b", "c": 1, "d": False}], [{"a": []}, 3]),
        ("parts", ["d", ["d", "e"]], [3, [3]]),
    ],
)
def test_schema_and_reader_accept_the_same_values(member: str, good: list[Any], bad: list[Any]) -> None:
    validator = Draft202012Validator(SCHEMA)
    for value in good:
        read(**{member: value})
        assert validator.is_valid({"id": "a", "home": "h", member: value}), value
    for value in bad:
        assert refused(**{member: value})
        assert not validator.is_valid({"id": "a", "home": "h", member: value}), value


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("op_rate", ["5500 op/s", "65 kop/s", "1.2 Mop/s"], ["5500", "5 Gop/s", 5500]),
        ("share", [0, 0.4, 1, "40 %", "0.5%"], [1.1, -0.1, "40", "x %"]),
        ("number", [-1, 2.5], ["2"]),
        ("count", [0, 3], [-1, 1.5]),
    ],
)
def test_schema_definitions_accept_valid_numbers_only(kind: str, good: list[Any], bad: list[Any]) -> None:
    validator = Draft202012Validator(build_definitions()[kind])
    assert [validator.is_valid(value) for value in good] == [True] * len(good)
    assert [validator.is_valid(value) for value in bad] == [False] * len(bad)
    assert validator.is_valid({"value": good[0], "source": "s", "status": "fitted", "note": "n"})
    assert not validator.is_valid({"value": good[0], "color": "red"})
    assert not validator.is_valid({"source": "s"})
    assert build_definitions()[kind]["description"].startswith(("a ", "operations per second"))
