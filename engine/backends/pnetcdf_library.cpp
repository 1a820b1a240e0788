// SPDX-License-Identifier: Apache-2.0
#include "backends/pnetcdf_library.hpp"

#include "backends/runtime_library.hpp"

#include <stdexcept>
#include <vector>

namespace sonde::backends {
namespace {

const FormatLibrarySearch pnetcdf_search{
    .title = "PnetCDF",
    .variable = "SONDE_PNETCDF_LIBRARY",
    .names = {"libpnetcdf"},
    .openmpi_names = {},
    .mpich_names = {},
    .versions = {".so.6", ".so.5", ".so.4", ".so.0d", ".so"},
    .parallel_function = "ncmpi_begin_indep_data",
    .package = "libpnetcdf-dev",
};

PnetcdfFunctions open_pnetcdf() {
    const FormatLibrary library = find_format_library(pnetcdf_search);
    if (library.handle == nullptr) {
        throw std::runtime_error(library.missing_reason);
    }
    PnetcdfFunctions f;
    const std::vector<RuntimeFunction> symbols = {
        {"ncmpi_strerror", &f.strerror},
        {"ncmpi_inq_libvers", &f.inq_libvers},
        {"ncmpi_def_dim", &f.def_dim},
        {"ncmpi_def_var", &f.def_var},
        {"ncmpi_enddef", &f.enddef},
        {"ncmpi_inq_varid", &f.inq_varid},
        {"ncmpi_inq_vartype", &f.inq_vartype},
        {"ncmpi_inq_varndims", &f.inq_varndims},
        {"ncmpi_inq_vardimid", &f.inq_vardimid},
        {"ncmpi_inq_dimlen", &f.inq_dimlen},
        {"ncmpi_begin_indep_data", &f.begin_indep_data},
        {"ncmpi_end_indep_data", &f.end_indep_data},
        {"ncmpi_sync", &f.sync},
        {"ncmpi_close", &f.close},
        {"ncmpi_put_vara_schar", &f.put_vara_schar},
        {"ncmpi_put_vara_schar_all", &f.put_vara_schar_all},
        {"ncmpi_get_vara_schar", &f.get_vara_schar},
        {"ncmpi_get_vara_schar_all", &f.get_vara_schar_all},
        {"ncmpi_create", &f.create},
        {"ncmpi_open", &f.open},
    };
    if (const char* missing = bind_functions(library.handle, symbols); missing != nullptr) {
        throw std::runtime_error(library.file + " has no " + missing +
                                 ": name a newer PnetCDF in SONDE_PNETCDF_LIBRARY");
    }
    return f;
}

}  // namespace

const PnetcdfFunctions& load_pnetcdf() {
    static const PnetcdfFunctions functions = open_pnetcdf();
    return functions;
}

std::string explain_missing_pnetcdf() {
    return find_format_library(pnetcdf_search).missing_reason;
}

}  // namespace sonde::backends
