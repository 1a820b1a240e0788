# SPDX-License-Identifier: Apache-2.0
"""The archive: a folder of plain files, one folder a run, made visible by an atomic rename.

This folder defines where runs are stored and in which files. It must not know how a run was started or how it is shown;
it needs no database and no server, takes no lock that a parallel file system may lack, and leaves alone what it did not
make.
"""
