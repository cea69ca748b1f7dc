#include "core/model/measure.h"

#include <algorithm>

#include "core/kv/kv_image.h"

namespace aerie {

namespace {

using Sequences = std::vector<std::unique_ptr<KvSequence>>;

Status record_pass(const Model& model, const Sequences& sequences, int32_t context, int32_t n, Plan& plan) {
  RowsBuilder rows;
  const auto token = [&] { return measured_token(rows.size(), model.config().vocab_used); };
  for (const auto& kv : sequences) {  // a root and its children
    rows.sequence(*kv);
    rows.plain(token(), context - 1);
    for (int32_t r = 1; r < n; ++r) {
      const int32_t slot = kv->scratch_slot(r - 1);
      rows.tree(token(), context, {&slot, 1});
    }
  }
  model.logits(plan, model.forward(plan, rows.stage(plan), {}, {}));
  return {};
}

Status fill_state(KvSequence& kv, int64_t position, PassTimer& timer) {
  StateSequence& state = kv.state();
  if (!state) return {};
  const std::vector<float> zeros(static_cast<size_t>(state.pool()->floats()));
  const kernels::Upload upload{state.pool()->cache().at(state.next()), zeros.data(), static_cast<int64_t>(zeros.size() * sizeof(float))};
  AERIE_TRY(timer.time([&](Plan& plan) { return plan.add(upload), Status(); }).status());
  state.advance(position);
  return state.reserve();
}

}  // namespace

// First in one position, then in copies of it.
Status fill_context(const Model& model, const Sequences& sequences, int32_t context, PassTimer& timer) {
  constexpr size_t kAtOnce = 4096;  // copies
  const std::vector<uint8_t> zeros(static_cast<size_t>(model.pool()->shape().bytes_per_slot()));
  const int32_t from = sequences[0]->slot(0);
  std::vector<kernels::Op> uploads;
  upload_kv(*sequences[0], 1, zeros.data(), &uploads);
  const auto one = [&](Plan& plan) {
    for (const kernels::Op& op : uploads) plan.add(op);
    return Status();
  };
  AERIE_TRY(timer.time(one).status());
  for (const auto& kv : sequences) AERIE_TRY(fill_state(*kv, context - 1, timer));
  std::vector<int32_t> to;
  for (const auto& kv : sequences)
    for (int64_t at = 0; at < context; ++at)
      if (kv->slot(at) != from) to.push_back(kv->slot(at));
  const std::vector<int32_t> source(std::min(to.size(), kAtOnce), from);
  for (size_t i = 0; i < to.size(); i += kAtOnce) {
    const std::span<const int32_t> some = std::span<const int32_t>(to).subspan(i, std::min(kAtOnce, to.size() - i));
    AERIE_TRY(timer.time([&](Plan& plan) {
      const int32_t* const src = plan.stage(std::span<const int32_t>(source).first(some.size()));
      const int32_t* const dst = plan.stage(some);
      for (const kernels::KvCache& cache : model.pool()->caches()) plan.add(kernels::KvCopy{cache, src, dst, static_cast<int32_t>(some.size())});
      return Status();
    }).status());
  }
  return {};
}

Result<CostGrid> measure_target(const Model& model, const MeasureOptions& options) {
  const int64_t longest = model.config().max_context - 1;
  std::vector<int32_t> contexts = options.contexts.empty() ? default_contexts(longest) : options.contexts;
  std::sort(contexts.begin(), contexts.end());
  std::vector<int32_t> rows = options.rows.empty() ? default_row_counts() : options.rows;
  std::sort(rows.begin(), rows.end());
  std::vector<CostPoint> points;
  for (const int32_t batch : options.batches) {
    std::vector<int32_t> counts = rows;  // a deadline may leave fewer; a batch's contexts all have the same
    for (const int32_t context : contexts) {
      Sequences sequences;
      Status room;
      for (int32_t b = 0; b < batch && room.ok(); ++b) {
        sequences.push_back(std::make_unique<KvSequence>(model.pool(), context + 1, rows.back()));
        room = sequences.back()->reserve(context);
      }
      const bool first = context == contexts.front() && batch == options.batches.front();
      if (!room.ok() && first) return room.at("profile");
      if (!room.ok()) break;
      const size_t index_bytes = static_cast<size_t>(batch) * (size_t{64 << 10} + static_cast<size_t>(context)) + (size_t{1} << 20);
      AERIE_ASSIGN(const auto timer, PassTimer::create(model.device(), options, index_bytes));
      const Status filled = context > 1 ? fill_context(model, sequences, context, *timer) : Status();  // of one the pass itself writes
      if (filled.code() == Code::limit && !first) break;
      AERIE_TRY(filled);
      Result<std::vector<CostPoint>> some = sample_row_counts(*model.device(), batch, context, counts, options, [&](int32_t n) {
        return timer->time([&](Plan& plan) { return record_pass(model, sequences, context, n, plan); });
      });
      if (!some.ok() && some.status().code() == Code::limit && !first) break;
      if (!some.ok()) return some.status();
      if (context == contexts.front()) counts.resize(some->size());
      if (some->size() < counts.size()) break;
      points.insert(points.end(), some->begin(), some->end());
    }
  }
  return CostGrid::make(std::move(points));
}

}  // namespace aerie
