# SPDX-License-Identifier: Apache-2.0
"""Finds the runs of a selection in a table of the index, on whole columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from sonde.store.columns import apply_predicate_to_distinct_texts, combine_chunks
from sonde.store.selection import Selection


def make_selection_mask(selection: Selection, run_table: Any) -> Any:
    """True for each selected row of `run_table`; rows of foreign folders are never selected. Needs
    `wanted.columns()`."""
    problems = compute.is_null(combine_chunks(run_table["problem"]))
    return functools.reduce(compute.and_, _make_text_masks(selection, run_table), problems)


def _make_text_masks(selection: Selection, run_table: Any) -> Iterator[Any]:
    for text, columns in (
        (selection.plan, ("plan", "title")),
        (selection.target, ("target", "file_system", "storage")),
        (selection.system, ("system", "host")),
    ):
        if text:
            yield functools.reduce(
                compute.or_,
                [apply_predicate_to_distinct_texts(run_table[name], _make_substring_test(text)) for name in columns],
            )
    if selection.source == "sonde":
        yield compute.is_null(combine_chunks(run_table["source"]))
    elif selection.source:
        yield apply_predicate_to_distinct_texts(run_table["source"], _make_substring_test(selection.source))
    for name in ("status", "validity"):
        if word := getattr(selection, name):
            yield apply_predicate_to_distinct_texts(run_table[name], _make_equality_test(word))
    if selection.plan_hash:
        yield apply_predicate_to_distinct_texts(
            run_table["plan_hash"], lambda texts: compute.starts_with(texts, selection.plan_hash)
        )
    if not selection.calibrations:
        yield apply_predicate_to_distinct_texts(
            run_table["role"], lambda texts: compute.not_equal(texts, "calibration")
        )
    if selection.ids is not None:
        ids = pa.array(selection.ids, pa.string())
        yield apply_predicate_to_distinct_texts(run_table["run"], lambda texts: compute.is_in(texts, ids))
    for word, column in [*((tag, "tags") for tag in selection.tags), (selection.finding, "findings")]:
        if word:
            yield _mask_lists_with_text(run_table[column], word)
    yield from _make_number_masks(selection, run_table)


def _make_number_masks(selection: Selection, run_table: Any) -> Iterator[Any]:
    for name in ("tasks", "nodes"):
        count = getattr(selection, name)
        if count is not None:
            yield compute.fill_null(compute.equal(combine_chunks(run_table[name]), count), False)
    if selection.since_s is not None:
        yield compute.greater_equal(combine_chunks(run_table["started_s"]), selection.since_s)
    if selection.until_s is not None:
        yield compute.less(combine_chunks(run_table["started_s"]), selection.until_s)


def _make_equality_test(expected_text: str) -> Callable[[Any], Any]:
    return lambda texts: compute.equal(texts, expected_text)


def _make_substring_test(substring: str) -> Callable[[Any], Any]:
    return lambda texts: compute.match_substring(texts, substring, ignore_case=True)


def _mask_lists_with_text(list_column: Any, searched_text: str) -> Any:
    """Marks the rows whose list contains the text."""
    chunk = combine_chunks(list_column)
    hits_by_row = np.zeros(len(chunk), dtype=bool)
    hits = compute.fill_null(compute.equal(compute.list_flatten(chunk), searched_text), False)
    hits_by_row[compute.list_parent_indices(chunk).filter(hits).to_numpy()] = True
    return pa.array(hits_by_row)
