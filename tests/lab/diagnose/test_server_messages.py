# SPDX-License-Identifier: Apache-2.0
"""Messages of servers: which kinds logs have, and what a kind says about a hypothesis."""

from __future__ import annotations

import gzip
from math import log
from pathlib import Path

import numpy as np
import pytest

from sonde.diagnose.library import find_experiment
from sonde.diagnose.likelihood import compute_message_densities
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.predictions import Prediction, SimulatedEffect, predict_messages
from sonde.diagnose.server_messages import LOGGED_BY_CHANCE, LOGGED_WITH_CAUSE, MESSAGE_EXPERIMENT, find_messages
from sonde.model.errors import UserError

LINES = {
    "rebuild": "Mar 17 08:41:00 oss3 kernel: md: recovery of RAID array md3",
    "drive": "Mar 17 08:12:33 oss3 kernel: blk_update_request: I/O error, dev sdq, sector 123456789 op 0x0:(READ)",
    "router": "Mar 17 10:34:00 n1 kernel: LNet: 4711:0:(router.c:178:lnet_notify_locked()) router 10.10.2.1@o2ib down",
    "recovery": "Mar 17 09:00:00 oss3 kernel: Lustre: fs-OST0003: Will be in recovery for at least 5:00",
    "metadata": "Mar 17 09:00:00 mds kernel: mdt: This server is not able to keep up with request traffic (cpu-bound).",
}


@pytest.mark.parametrize("kind", LINES)
def test_line_of_each_kind_is_found(tmp_path: Path, kind: str) -> None:
    log_file = tmp_path / "messages.gz"
    log_file.write_bytes(gzip.compress(f"Mar 17 08:00:00 oss3 kernel: nothing\n{LINES[kind]}\n".encode()))
    assert [name for name, is_logged in find_messages([log_file]).items() if is_logged] == [kind]


def test_log_without_known_messages_has_no_kind(tmp_path: Path) -> None:
    (tmp_path / "messages").write_bytes(b"Mar 17 08:00:00 oss3 sshd: I/O error\n\xff\xfe\0\n")
    assert not any(find_messages([tmp_path / "messages"]).values())


def test_unreadable_log_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08")
    for name in ("cut.gz", "absent"):
        with pytest.raises(UserError, match=rf"{name} cannot be read as a log"):
            find_messages([tmp_path / name])


def test_logged_message_has_its_probability() -> None:
    prediction = Prediction({}, {}, {"rebuild": np.array([0.2, 0.9]), "drive": np.array([0.1])})
    densities = compute_message_densities(prediction, [RunMeasurement({}, {}, {"rebuild": True, "drive": False})])
    assert densities[0, :, 0] == pytest.approx([log(0.2 * 0.9), log(0.9 * 0.9)])


def test_simulated_message_is_predicted_but_not_surely() -> None:
    effects = [SimulatedEffect({}, {}, {"metadata": share}) for share in (0.0, 1.0)]
    prediction = predict_messages(find_experiment(MESSAGE_EXPERIMENT), effects, ("0.5", "0.9"))
    assert prediction.messages["metadata"][[0, -1]] == pytest.approx([LOGGED_BY_CHANCE, LOGGED_WITH_CAUSE])
    assert prediction.messages["rebuild"] == pytest.approx(np.full(4, LOGGED_BY_CHANCE))
