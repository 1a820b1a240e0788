# SPDX-License-Identifier: Apache-2.0
"""Columns of the index as they are read fast: texts that repeat stay codes into a small dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet
from numpy.typing import NDArray

_RUN_FOLDER_PATTERN = r"^(\d{4}-(0[1-9]|1[0-2])/)?[^./\x00][^/\x00]*$"


def read_table_columns(table_file: Path, column_names: Sequence[str], table_schema: Any) -> Any:
    """These columns of one file as a table of one chunk, text as dictionaries. Raises OSError or ArrowException."""
    texts = [name for name in column_names if pa.types.is_string(table_schema.field(name).type)]
    try:
        source = parquet.ParquetFile(table_file, read_dictionary=texts, page_checksum_verification=True)
        # One thread: the files are small, and starting threads for each takes longer than reading it.
        table = source.read(columns=list(column_names), use_threads=False)
        return table.select(list(column_names)).combine_chunks()
    except (KeyError, ValueError, TypeError, OverflowError, MemoryError) as reason:
        # A damaged footer makes pyarrow say all kinds of things.
        raise pa.ArrowInvalid(f"{table_file} is damaged: {reason}") from reason


def check_folder_column(table: Any) -> None:
    """Raises ArrowInvalid when the column `folder`, where there is one, holds more than a run, or a month and a run,
    below the archive: an index is only a cache, and nobody follows it out of the archive."""
    if "folder" in table.column_names:
        texts = combine_chunks(table["folder"])
        texts = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
        if not compute.all(compute.match_substring_regex(texts, _RUN_FOLDER_PATTERN), min_count=0).as_py():
            raise pa.ArrowInvalid("the index names a folder outside the archive")


def select_columns_with_dictionaries(table: Any, column_names: Sequence[str]) -> Any:
    """Selects columns of a table in memory, with texts encoded as dictionaries as `read_table_columns` returns them."""
    chosen = table.select(list(column_names)).combine_chunks()
    for position, name in enumerate(column_names):
        if pa.types.is_string(chosen.schema.field(name).type):
            chosen = chosen.set_column(position, name, chosen[name].dictionary_encode())
    return chosen


def decode_dictionaries(table: Any, table_schema: Any) -> Any:
    """The table with texts as texts."""
    return table.cast(pa.schema([table_schema.field(name) for name in table.column_names]))


def apply_predicate_to_distinct_texts(text_column: Any, text_predicate: Callable[[Any], Any]) -> Any:
    """`text_predicate` of each text in a column, computed once per distinct text; null counts as false."""
    array = combine_chunks(text_column)
    if not pa.types.is_dictionary(array.type):
        return compute.fill_null(text_predicate(array), False)
    answers = compute.fill_null(text_predicate(array.dictionary), False).to_numpy(zero_copy_only=False)
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return pa.array(np.append(answers, False)[codes])


def combine_chunks(arrow_column: Any) -> Any:
    """The column as one array."""
    if not isinstance(arrow_column, pa.ChunkedArray):
        return arrow_column
    combined = arrow_column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) and combined.num_chunks == 1 else combined


class CodedTextColumn:
    """Texts of many files as one list of different texts and a code for each row; -1 stands for null."""

    def __init__(self, text_columns: Iterable[Any], has_unique_codes: bool) -> None:
        """`has_unique_codes`: the same text has the same code wherever it comes from. Without it texts are never
        compared."""
        texts, codes, offset = [], [], 0
        for column in text_columns:
            array = combine_chunks(column)
            of_file = array.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
            codes.append(np.where(of_file >= 0, of_file + offset, -1))
            texts.append(array.dictionary)
            offset += len(array.dictionary)
        self.texts = pa.concat_arrays(texts) if texts else pa.array([], pa.string())
        self.codes: NDArray[np.int32] = np.concatenate(codes) if codes else np.array([], np.int32)
        if has_unique_codes:
            encoded = self.texts.dictionary_encode()
            renamed = np.append(encoded.indices.to_numpy(zero_copy_only=False), -1).astype(np.int32)
            self.texts, self.codes = encoded.dictionary, renamed[self.codes]

    def get_text(self, row_index: int) -> str | None:
        """The text of one row."""
        code = int(self.codes[row_index])
        return None if code < 0 else str(self.texts[code].as_py())

    def get_texts(self, row_indices: NDArray[np.int64]) -> list[str]:
        """The texts of these rows, "" for null."""
        codes = self.codes[row_indices]
        texts: list[str] = self.texts.take(pa.array(np.maximum(codes, 0))).to_pylist() if len(self.texts) else []
        return (
            [text if code >= 0 else "" for text, code in zip(texts, codes, strict=True)]
            if texts
            else [""] * len(row_indices)
        )
