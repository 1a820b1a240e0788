# SPDX-License-Identifier: Apache-2.0
"""Tables as files for others: CSV, JSON and Parquet, there whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as csv
import pyarrow.parquet as parquet

from sonde.model.confined_files import open_atomic_replacement
from sonde.model.errors import MachineError, UserError


def write_table(table: Any, table_file: Path) -> None:
    """Writes `table` in the format that the suffix names. Raises UserError for another suffix."""
    writers: Mapping[str, Callable[[Any, BinaryIO], None]] = {
        ".csv": _write_csv,
        ".json": _write_json,
        ".parquet": _write_parquet,
    }
    if table_file.suffix not in writers:
        raise UserError(f'"{table_file}" does not say its format: a table ends in {", ".join(writers)}.')
    try:
        with open_atomic_replacement(table_file, creates_directory=True) as file:
            writers[table_file.suffix](table, file)
    except OSError as reason:
        raise MachineError(f"{table_file} cannot be written: {reason.strerror}.") from None


def convert_lists_to_text(table: Any) -> Any:
    """The table with lists as text, for formats without lists."""
    for position, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = compute.binary_join(table[field.name].cast(pa.list_(pa.string())), " ")
            table = table.set_column(position, field.name, texts)
    return table


def _write_csv(table: Any, output_file: BinaryIO) -> None:
    csv.write_csv(convert_lists_to_text(table), output_file)


def _write_json(table: Any, output_file: BinaryIO) -> None:
    output_file.write(b"[")
    for position, row in enumerate(table.to_pylist()):
        text = json.dumps(
            {name: _replace_non_finite_numbers(value) for name, value in row.items()}, ensure_ascii=False, default=str
        )
        output_file.write(f"{',' * bool(position)}\n {text}".encode())
    output_file.write(b"\n]\n")


def _replace_non_finite_numbers(cell_value: Any) -> Any:
    """JSON has no word for what is not a number."""
    return None if isinstance(cell_value, float) and not abs(cell_value) < float("inf") else cell_value


def _write_parquet(table: Any, output_file: BinaryIO) -> None:
    parquet.write_table(table, output_file, compression="zstd")
