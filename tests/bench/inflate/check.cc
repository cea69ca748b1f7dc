#include "check.h"

#include <algorithm>
#include <vector>

#include "core/model/model.h"
#include "core/session/session.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie::inflate {

namespace {

Result<std::vector<int32_t>> greedy(const std::string& path, int64_t n) {
  AERIE_ASSIGN(auto device, kernels::make_cpu_device({}));
  AERIE_ASSIGN(auto package, Package::open(path));
  std::vector<int32_t> prompt{1, 17, 42, 23, 5};
  SessionOptions o;
  o.ignore_eos = true;
  ModelOptions options;
  options.kv_positions = n + 512;
  AERIE_ASSIGN(auto model, Model::open(std::shared_ptr<kernels::Device>(std::move(device)), package, options));
  o.max_context = std::min<int64_t>(n + static_cast<int64_t>(prompt.size()), model->config().max_context);
  for (int32_t& t : prompt) t %= model->config().vocab_used;
  AERIE_ASSIGN(auto session, Session::create(model, o));
  AERIE_TRY(session->append(prompt));
  std::vector<int32_t> out;
  while (static_cast<int64_t>(out.size()) < n) {
    StepResult r;
    AERIE_TRY(session->step(static_cast<int32_t>(n - static_cast<int64_t>(out.size())), std::chrono::microseconds(0), &r));
    for (const EmittedToken& t : r.tokens) out.push_back(t.id);
    if (r.state == StepState::done) break;
  }
  return out;
}

}  // namespace

Result<Comparison> compare_greedy(const std::string& small, const std::string& big, int64_t n) {
  AERIE_ASSIGN(const auto a, greedy(small, n));
  AERIE_ASSIGN(const auto b, greedy(big, n));
  Comparison c;
  c.tokens = std::max(a.size(), b.size());
  while (c.same < a.size() && c.same < b.size() && a[c.same] == b[c.same]) ++c.same;
  return c;
}

}  // namespace aerie::inflate
