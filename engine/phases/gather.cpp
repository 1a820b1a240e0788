// SPDX-License-Identifier: Apache-2.0
#include "phases/gather.hpp"

namespace sonde::phases {

using nlohmann::json;

json gather_list(ranks::Team& team, const json& own_list) {
    const std::string joined = team.reduce_text(own_list.dump(-1, ' ', false, json::error_handler_t::replace),
                                                [](const std::string& a, const std::string& b) {
                                                    json list = json::parse(a);
                                                    const json more = json::parse(b);
                                                    list.insert(list.end(), more.begin(), more.end());
                                                    return list.dump();
                                                });
    return team.location().is_root() ? json::parse(joined) : json::array();
}

}  // namespace sonde::phases
