# SPDX-License-Identifier: Apache-2.0
"""Numbers of the formats: whatever the model reads, the schema allows; what the schema refuses, the model refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

from sonde.model.errors import SystemFileError
from sonde.model.tables.json_schema import build_definitions
from sonde.model.tables.quantity import NUMBER_PARSERS
from sonde.model.tables.table_reader import ReadContext, read_quantity

UNITS = [
    "",
    "B",
    "kB",
    "KB",
    "KiB",
    "kiB",
    "MB",
    "GiB",
    "TB",
    "PiB",
    "b",
    "bit",
    "kbit",
    "Gbit",
    "op",
    "kop",
    "Mop",
    "%",
    "ns",
    "us",
    "µs",
    "ms",
    "s",
    "min",
    "h",
    "m",
    "d",
]
NUMBER_TEXTS = st.one_of(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["0", "1", "64", "2.5", "100", "100.0", "007", "1e3", "-1", ".5", "5."]),
        st.sampled_from(["", " ", "  "]),
        st.sampled_from(UNITS),
        st.sampled_from(["", "/s"]),
    ),
    st.integers(-3, 200),
    st.floats(-2, 200, allow_nan=False),
    st.booleans(),
    st.text(max_size=6),
)


@pytest.mark.parametrize("quantity_kind", sorted(NUMBER_PARSERS))
@given(NUMBER_TEXTS)
@example(" 4 KiB")
@example("4 KiB\n")
@example("\u0664 KiB")
def test_values_accepted_by_the_model_are_accepted_by_the_schema(quantity_kind: str, written: object) -> None:
    allowed = Draft202012Validator(build_definitions()[quantity_kind])
    try:
        read_quantity(quantity_kind, written, ReadContext(SystemFileError, "x", ("n",)))
    except SystemFileError:
        return
    assert allowed.is_valid(written)
    assert allowed.is_valid({"value": written, "source": "s", "status": "assumed", "note": "n"})
    assert not allowed.is_valid({"value": written, "sorce": "s"})
