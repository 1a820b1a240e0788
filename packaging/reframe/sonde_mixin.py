# SPDX-License-Identifier: Apache-2.0
"""ReFrame mixin: a test measures with `sonde run` and reports the rate of each phase as a performance variable.

    import reframe as rfm
    from sonde_mixin import SondeMixin

    @rfm.simple_test
    class ScratchTest(rfm.RunOnlyRegressionTest, SondeMixin):
        valid_systems = ['*']
        valid_prog_environs = ['*']
        sonde_directory = '/scratch'
        reference = {'*': {'write': (10e9, -0.15, None, 'B/s')}}

Numbers that are not of storage (cached, too short, …) are left out, so that no reference is compared with them.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ


class SondeMixin(rfm.RegressionTestPlugin):
    """Runs a plan once. The test fails if the run fails or if its data is wrong."""

    # Plan file, or name of a shipped plan.
    sonde_plan = variable(str, value="quick")  # noqa: F821 # ReFrame defines it in class bodies
    # Directory to measure.
    sonde_directory = variable(str)  # noqa: F821
    # Archive of the runs; relative to the stage directory.
    sonde_archive = variable(str, value="sonde-archive")  # noqa: F821
    # More options of `sonde run`, like --tasks 8.
    sonde_options = variable(typ.List[str], value=[])  # noqa: F821
    # Classifications of the numbers that are reported.
    sonde_classifications = variable(typ.List[str], value=["storage", "burst"])  # noqa: F821

    @run_before("run")  # noqa: F821
    def set_sonde_command(self):
        self.executable = "sonde"
        options = ["--on", self.sonde_directory, "--archive", self.sonde_archive, "--json", "--no-report"]
        self.executable_opts = ["run", self.sonde_plan, *options, *self.sonde_options]

    @sanity_function  # noqa: F821
    def check_run_is_done(self):
        return sn.assert_found(r'"status": "done"', self.stdout)

    @run_before("performance")  # noqa: F821
    def set_sonde_performance(self):
        output = os.path.join(self.stagedir, str(sn.evaluate(self.stdout)))
        with open(output, encoding="utf-8") as file:
            phases = json.load(file)["phases"]
        self.perf_variables = {
            phase["phase"]: sn.make_performance_function(sn.defer(rate), unit)
            for phase in phases
            if phase.get("classification") in self.sonde_classifications
            for rate, unit in [_find_rate(phase)]
            if rate
        }


def _find_rate(phase):
    """Returns the rate of a phase and its unit: bytes if it transferred any, else operations."""
    if phase.get("bytes") and phase.get("bytes_per_s"):
        return phase["bytes_per_s"], "B/s"
    return phase.get("ops_per_s"), "op/s"
