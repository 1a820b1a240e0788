# SPDX-License-Identifier: Apache-2.0
"""What the engine costs, measured beside the bare system calls and beside other tools in the same minutes.

`cells` says what is measured, `contestants` how each program does it, `rounds` how they take turns and what is made of
it, `scale` starts many ranks, `instructions` counts under callgrind. `bench/engine.py` is the program.
"""
