# SPDX-License-Identifier: Apache-2.0
"""Each principle of fast I/O is advised where a plan does not follow it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.plan import Plan
from sonde.model.plan_advice import find_plan_advice
from sonde.model.volume import compute_phase_volumes

MEMORY = 8 << 30


def advise(data: dict[str, Any], tasks: int = 4, op: str = "write") -> list[str]:
    document = {"id": "p", "target": {"path": "/x"}, "data": data, "phases": [{"id": "w", "op": op}]}
    plan = Plan.from_document(document, "test")
    return find_plan_advice(plan, compute_phase_volumes(plan, tasks), MEMORY)


def access(transfer: str, volume: str, **members: Any) -> dict[str, Any]:
    return {"transfer": transfer, "volume": volume, **members}


@pytest.mark.parametrize(
    ("data", "expected_advice"),
    [
        ({"access": access("1MiB", "16MiB")}, []),
        ({"access": access("1000000B", "16MB")}, ["calls of 977 KiB begin between pages"]),
        ({"access": access("64KiB", "16MiB")}, ["calls of 64 KiB pay the cost of a call often"]),
        ({"access": access("64KiB", "16MiB", order="random_permute")}, []),
        ({"access": access("1MiB", "2GiB")}, ["exceeds half of the memory (8 GiB)"]),
        ({"access": access("4KiB", "1MiB", order="random_permute"), "io": {"direct": True, "queue_depth": 8}},
         ["get no write-behind"]),
        ({"access": access("1MiB", "16MiB"), "io": {"direct": True}}, ["each task waits for each direct call"]),
        ({"access": access("1MiB", "2GiB"), "io": {"direct": True, "queue_depth": 8}},
         ["allocate blocks call by call"]),
        ({"access": access("1MiB", "2GiB"), "io": {"direct": True, "queue_depth": 8, "preallocate": "unwritten"}}, []),
        ({"access": access("64KiB", "16MiB"), "backend": "null"}, []),
    ],
)  # fmt: skip
def test_plan_gets_the_advice_of_its_principle(data: dict[str, Any], expected_advice: list[str]) -> None:
    sentences = advise(data)
    assert len(sentences) == len(expected_advice), sentences
    for sentence, part in zip(sentences, expected_advice, strict=True):
        assert sentence.startswith("w: ")
        assert part in sentence


def test_one_stream_is_advised_to_use_more_hardware() -> None:
    (sentence,) = advise({"access": access("1MiB", "16MiB")}, tasks=1)
    assert "one stream uses one path" in sentence


def test_reads_are_not_advised_to_preallocate() -> None:
    data = {"access": access("1MiB", "2GiB"), "io": {"direct": True, "queue_depth": 8}}
    assert advise(data, op="read") == []
