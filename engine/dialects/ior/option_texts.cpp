// SPDX-License-Identifier: Apache-2.0
// Help texts of the options, and hints on the replacements of options of older IOR versions.
#include "dialects/ior/options.hpp"

#include <algorithm>
#include <map>

namespace sonde::dialects::ior {

std::string explain_refusal(const std::string& option) {
    static const std::map<std::string, std::string> former_options{
        {"H", "is --mpiio.showHints today"},
        {"I", "is --hdf5.individualDataSets today, which IOR itself refuses"},
        {"J", "is --hdf5.setAlignment=BYTES today"},
        {"n", "is --hdf5.noFill today"},
        {"p", "is --mpiio.preallocate today"},
        {"P", "(a shared file pointer) is not in IOR 4 any more"},
        {"q", "(quit on error) is not in IOR 4 any more; a run of Sonde ends at an error, -K keeps the file"},
        {"S", "is --mpiio.useStridedDatatype today, which is not built into Sonde"},
        {"U", "is --mpiio.hintsFileName=FILE today"},
        {"V", "is --mpiio.useFileView today"},
        {"quitOnError", "is not in IOR 4 any more; a run of Sonde ends at an error"},
        {"storeFileOffset", "is -l offset today"},
        {"useSharedFilePointer", "is not in IOR 4 any more"},
        {"showHints", "is --mpiio.showHints today"},
        {"showHelp", "is -h today"}};
    const auto match = former_options.find(option);
    return match == former_options.end() ? std::string() : match->second;
}

std::string help_text() {
    std::string text = "Synopsis sonde-engine ior [options]: the command line of IOR 4.1, run by Sonde\n";
    for (const IorOption& option : options()) {
        if (option.help.empty()) {
            continue;
        }
        std::string names = option.letter != 0 ? std::string("-") + option.letter : std::string();
        if (!option.long_name.empty()) {
            names += (names.empty() ? "--" : ", --") + std::string(option.long_name);
        }
        if (names.empty()) {
            names = "-O " + std::string(option.directive);
        }
        names += option.argument_count == IorOption::ArgumentCount::value ? "=X" : "";
        names.resize(std::max<std::size_t>(names.size() + 1, 40), ' ');
        text += "  " + names + std::string(option.help) +
                (option.letter != 0 && !option.directive.empty() ? " (" + std::string(option.directive) + ")" : "") +
                "\n";
    }
    text +=
        "  -f FILE                                 script: IOR START, key=value lines, RUN, IOR STOP\n"
        "  -O key=value,…                          directives: the names in brackets, and those above\n"
        "  -h, --help                              this text\n";
    return text;
}

}  // namespace sonde::dialects::ior
