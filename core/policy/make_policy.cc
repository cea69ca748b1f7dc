#include "core/policy/tree_policy.h"

namespace aerie {

Result<std::unique_ptr<TreePolicy>> make_policy(const PolicySpec& spec) {
  if (spec.name == "chain") {
    if (spec.length < 1 || spec.length > kMaxTreeNodes - 1)
      return error(Code::invalid_argument, "chain: length " + std::to_string(spec.length) + " is not in 1.." +
                                               std::to_string(kMaxTreeNodes - 1));
    return make_chain_policy(spec.length);
  }
  if (spec.name == "static") {
    if (spec.paths.empty()) return make_eagle_static_policy();
    return make_static_policy(spec.paths);
  }
  if (spec.name == "eagle2") return make_eagle2_policy({spec.total, spec.depth, spec.top_k});
  if (spec.name == "backbone") return make_backbone_policy(spec.levels, spec.top_k);
  if (spec.name == "cast") return make_cast_policy(spec.cast);
  if (spec.name == "auto") return make_auto_policy();
  return error(Code::not_found, "no tree policy \"" + spec.name + "\"; there are chain, static, eagle2, backbone, cast, auto");
}

}  // namespace aerie
