// SPDX-License-Identifier: Apache-2.0
#include "phases/gather.hpp"

namespace sonde::phases {

using nlohmann::json;

json gather(ranks::Team& team, const json& mine) {
    const std::string all = team.reduce(mine.dump(-1, ' ', false, json::error_handler_t::replace),
                                        [](const std::string& a, const std::string& b) {
                                            json joined = json::parse(a);
                                            const json more = json::parse(b);
                                            joined.insert(joined.end(), more.begin(), more.end());
                                            return joined.dump();
                                        });
    return team.place().root() ? json::parse(all) : json::array();
}

}  // namespace sonde::phases
