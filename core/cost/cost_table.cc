#include "core/cost/cost_table.h"

namespace aerie {

namespace {
std::string quoted(const std::string& s) { return s.empty() ? "(none)" : s; }
}  // namespace

Status check_key(const CostKey& measured, const CostKey& here) {
  const auto differ = [](const char* field, const std::string& a, const std::string& b) {
    return error(Code::mismatch, std::string(field) + ": the costs were measured with " + quoted(a) + ", here it is " + quoted(b));
  };
  if (measured.version != here.version) return differ("version", measured.version, here.version);
  if (measured.device != here.device) return differ("device", measured.device, here.device);
  if (measured.isa != here.isa) return differ("isa", measured.isa, here.isa);
  if (measured.threads != here.threads) return differ("threads", std::to_string(measured.threads), std::to_string(here.threads));
  if (measured.model != here.model) return differ("model", measured.model, here.model);
  if (measured.weights != here.weights) return differ("weights", measured.weights, here.weights);
  if (measured.kv != here.kv) return differ("kv", measured.kv, here.kv);
  return {};
}

Result<const DrafterCosts*> CostTable::find(const DrafterKey& drafter) const {
  std::string known;
  for (const DrafterCosts& d : drafters) {
    if (d.key == drafter) return &d;
    known += (known.empty() ? "" : ", ") + d.key.plugin + " " + quoted(d.key.package) + " " + quoted(d.key.weights);
  }
  return error(Code::mismatch, "drafter: no costs of " + drafter.plugin + " " + quoted(drafter.package) + " " +
                                   quoted(drafter.weights) + " (measured: " + (known.empty() ? "none" : known) + ")");
}

}  // namespace aerie
