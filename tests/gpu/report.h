// What a run on a GPU measured, against what it should reach.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace aerie::gpu_bench {

// `results`: {"device": .., "date": .., "checks": [{"name", "state": ok | failed | skipped}], "bench": what gpu_bench printed,
// "inflated": what aerie bench --json printed with "target_bytes" and "drafters": {file: {"pass_bytes"}} added, "torch":
// what torch_decode.py printed}; whatever is missing is a bar that was not measured.
// {"bars": [{"name", "measured", "limit", "better": "less" | "more", "holds": true | false | null}], "lines": [...]}
nlohmann::ordered_json make_report(const nlohmann::json& results);

// For people; Markdown.
std::string report_table(const nlohmann::json& results, const nlohmann::json& report);

}  // namespace aerie::gpu_bench
