# SPDX-License-Identifier: Apache-2.0
"""Finds the runs of a selection in a table of the index, on whole columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from sonde.store.columns import combine_chunks, test_each_value
from sonde.store.selection import Selection


def select_wanted_rows(wanted: Selection, runs: Any) -> Any:
    """True for each row of `runs` that is meant; rows of foreign folders never are. Needs `wanted.columns()`."""
    problems = compute.is_null(combine_chunks(runs["problem"]))
    return functools.reduce(compute.and_, _make_text_tests(wanted, runs), problems)


def _make_text_tests(wanted: Selection, runs: Any) -> Iterator[Any]:
    for text, columns in (
        (wanted.plan, ("plan", "title")),
        (wanted.target, ("target", "file_system", "storage")),
        (wanted.system, ("system", "host")),
    ):
        if text:
            yield functools.reduce(
                compute.or_, [test_each_value(runs[name], _make_substring_test(text)) for name in columns]
            )
    if wanted.source == "sonde":
        yield compute.is_null(combine_chunks(runs["source"]))
    elif wanted.source:
        yield test_each_value(runs["source"], _make_substring_test(wanted.source))
    for name in ("status", "validity"):
        if word := getattr(wanted, name):
            yield test_each_value(runs[name], _make_equality_test(word))
    if wanted.plan_hash:
        yield test_each_value(runs["plan_hash"], lambda texts: compute.starts_with(texts, wanted.plan_hash))
    if not wanted.calibrations:
        yield test_each_value(runs["role"], lambda texts: compute.not_equal(texts, "calibration"))
    if wanted.ids is not None:
        ids = pa.array(wanted.ids, pa.string())
        yield test_each_value(runs["run"], lambda texts: compute.is_in(texts, ids))
    for word, column in [*((tag, "tags") for tag in wanted.tags), (wanted.finding, "findings")]:
        if word:
            yield _lists_holding(runs[column], word)
    yield from _make_number_masks(wanted, runs)


def _make_number_masks(wanted: Selection, runs: Any) -> Iterator[Any]:
    for name in ("tasks", "nodes"):
        count = getattr(wanted, name)
        if count is not None:
            yield compute.fill_null(compute.equal(combine_chunks(runs[name]), count), False)
    if wanted.since_s is not None:
        yield compute.greater_equal(combine_chunks(runs["started_s"]), wanted.since_s)
    if wanted.until_s is not None:
        yield compute.less(combine_chunks(runs["started_s"]), wanted.until_s)


def _make_equality_test(word: str) -> Callable[[Any], Any]:
    return lambda texts: compute.equal(texts, word)


def _make_substring_test(text: str) -> Callable[[Any], Any]:
    return lambda texts: compute.match_substring(texts, text, ignore_case=True)


def _lists_holding(lists: Any, word: str) -> Any:
    """Which lists hold the word."""
    chunk = combine_chunks(lists)
    hits_by_row = np.zeros(len(chunk), dtype=bool)
    hits = compute.fill_null(compute.equal(compute.list_flatten(chunk), word), False)
    hits_by_row[compute.list_parent_indices(chunk).filter(hits).to_numpy()] = True
    return pa.array(hits_by_row)
