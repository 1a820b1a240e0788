# SPDX-License-Identifier: Apache-2.0
"""Ramble application: measures a file system with Sonde. Figures of merit are the rates of the phases."""

from ramble.appkit import *


class Sonde(ExecutableApplication):
    """Measures, explains and improves the I/O of parallel file systems."""

    name = "sonde"

    tags("storage", "io", "benchmark")

    executable(
        "measure",
        "sonde run {plan} --on {target_directory} --archive {experiment_run_dir}/archive --no-report --quiet"
        " --tasks {tasks} {sonde_options}",
        use_mpi=False,
    )
    # One line for each phase: phase,classification,bytes_per_s,ops_per_s
    executable(
        "list_rates",
        "sonde query 'SELECT phase, classification, bytes_per_s, ops_per_s FROM phases ORDER BY started_s, position'"
        " --archive {experiment_run_dir}/archive --export csv",
        use_mpi=False,
        redirect="{experiment_run_dir}/rates.csv",
    )

    workload("measure", executables=["measure", "list_rates"])

    workload_variable("plan", default="quick", description="Plan file or shipped plan", workloads=["measure"])
    workload_variable("target_directory", default=".", description="Directory to measure", workloads=["measure"])
    workload_variable("tasks", default="1", description="Streams of I/O", workloads=["measure"])
    workload_variable("sonde_options", default="", description="More options of sonde run", workloads=["measure"])

    _line = r"^(?P<phase>[\w.-]+),(?P<about>\w+),(?P<bytes_per_s>[0-9.e+]*),(?P<ops_per_s>[0-9.e+]*)$"
    figure_of_merit_context("phase", regex=_line, output_format="{phase} ({about})")
    figure_of_merit(
        "bytes per second",
        log_file="{experiment_run_dir}/rates.csv",
        fom_regex=_line,
        group_name="bytes_per_s",
        units="B/s",
        contexts=["phase"],
    )
    figure_of_merit(
        "operations per second",
        log_file="{experiment_run_dir}/rates.csv",
        fom_regex=_line,
        group_name="ops_per_s",
        units="op/s",
        contexts=["phase"],
    )

    success_criteria("rates", mode="string", match=_line, file="{experiment_run_dir}/rates.csv")
