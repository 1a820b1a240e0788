# SPDX-License-Identifier: Apache-2.0
"""``sonde route`` as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LISTINGS = Path(__file__).resolve().parents[2] / "data" / "routes"


def test_a_plan_is_written_with_its_picture(sonde: Any, tmp_path: Path) -> None:
    said = sonde("route", "plan", "cumulus", "-o", tmp_path / "routes")
    assert said.code == 0, said.err
    assert {path.name for path in (tmp_path / "routes").iterdir()} == {
        "aries-to-wolf-ib.svg",
        *(f"routes-{name}.sh" for name in ("compute", "logins", "wolf-servers", "routers")),
    }
    assert "compute (ipogif0)" in said.out
    only = sonde("route", "plan", "cumulus", "--format", "network-scripts", "--class", "wolf-servers", "--json").json
    assert list(only["files"]) == [
        f"wolf-servers/etc/sysconfig/network-scripts/{name}-ib1" for name in ("rule", "route")
    ]


def test_a_check_names_faults_and_what_it_was_not_given(sonde: Any) -> None:
    said = sonde("route", "check", "cumulus", "--as", "compute", LISTINGS / "create_routes_incoming.sh")
    assert said.code == 1
    assert "all rules in one table" in said.out
    assert "Not given, so not checked: addresses, settings (sysctl), kernel options, the other side" in said.out
    both = sonde(
        *("route", "check", "cumulus", "--as", "compute", LISTINGS / "compute-route-show"),
        *("--other-side", LISTINGS / "storage-route-interface", "--json"),
    ).json
    assert "the other side, so whether replies return the same way" not in both["not_given"]


def test_a_prediction_names_the_cost_of_each_router(sonde: Any) -> None:
    (found,) = sonde("route", "simulate", "cumulus", "--clients", "10", "--json").json
    assert (found["clients"], found["servers"], len(found["one_lost"])) == (10, 6, 6)
    assert "without router3:" in sonde("route", "simulate", "cumulus", "--clients", "10").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", "cumuls"), 'Did you mean "cumulus"?'),
        (("plan", "laptop-md"), "has no router that forwards IP"),
        (("plan", "cumulus", "--class", "nobody"), 'There is no class of hosts "nobody"'),
        (("plan", "cumulus", "--format", "lnet"), "has no LNet router"),
        (("check", "cumulus", "--as", "computer", str(LISTINGS / "compute-route-show")), "Did you mean"),
        (("check", "cumulus", "--as", "compute", str(Path(__file__))), "is no address range"),
        (("simulate", "cumulus", "--connections", "0"), "connections"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(sonde: Any, words: tuple[str, ...], said: str) -> None:
    answer = sonde("route", *words)
    assert answer.code == 2
    assert len(answer.sentences) == 1
    assert said in answer.err
