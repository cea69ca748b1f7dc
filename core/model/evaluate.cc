#include "core/model/evaluate.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr int64_t kRows = 64;  // of a pass, as many as a prompt's

Status check(const LlamaConfig& config, std::span<const int32_t> tokens, const EvaluateOptions& options) {
  if (tokens.size() > static_cast<size_t>(config.max_context))
    return error(Code::limit, "evaluate: " + std::to_string(tokens.size()) + " tokens, the context is " +
                                  std::to_string(config.max_context));
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= config.vocab_size)
      return error(Code::invalid_argument, "evaluate: token " + std::to_string(i) + " is " + std::to_string(tokens[i]) +
                                               ", the vocabulary has " + std::to_string(config.vocab_size));
  for (const int32_t tap : options.taps)
    if (tap != kFinalFeature && (tap < 0 || tap > config.layers))
      return error(Code::invalid_argument, "evaluate: tap " + std::to_string(tap) + ": the model has " +
                                               std::to_string(config.layers) + " layers");
  return {};
}

// Rows [begin, end) of the text.
void record(const Model& model, Plan& plan, const KvSequence& kv, std::span<const int32_t> tokens, int64_t begin,
            int64_t end, const EvaluateOptions& options) {
  const int64_t n = end - begin, vocab = model.config().vocab_size;
  const auto width = static_cast<int64_t>(options.taps.size()) * model.config().hidden;
  RowsBuilder rows;
  rows.sequence(kv);
  for (int64_t i = begin; i < end; ++i) rows.plain(tokens[static_cast<size_t>(i)], i);
  const bool tapped = options.features && width > 0;
  const kernels::Tensor features = tapped ? plan.scratch(n, width) : kernels::Tensor{};
  const kernels::Tensor hidden = model.forward(plan, rows.stage(plan), options.taps, features);
  if (tapped) plan.add(kernels::Download{options.features + begin * width, features.data, n * width * 4});
  if (!options.logits) return;
  const kernels::Tensor logits = model.logits(plan, hidden);
  plan.add(kernels::Download{options.logits + begin * vocab, logits.data, n * vocab * 4});
}

}  // namespace

Status evaluate(const Model& model, std::span<const int32_t> tokens, const EvaluateOptions& options) {
  AERIE_TRY(check(model.config(), tokens, options));
  const auto n = static_cast<int64_t>(tokens.size());
  if (n == 0) return {};
  KvSequence kv(model.pool(), n, 0);
  AERIE_ASSIGN(const auto plan, Plan::create(model.device(), (size_t{1} << 20) + static_cast<size_t>(n)));
  AERIE_ASSIGN(const auto queue, model.device()->make_queue());
  for (int64_t begin = 0; begin < n; begin += kRows) {
    if (options.keep_going && !options.keep_going(begin)) return error(Code::cancelled, "evaluate: cancelled");
    AERIE_TRY(kv.reserve(n));
    plan->clear();
    record(model, *plan, kv, tokens, begin, std::min(begin + kRows, n), options);
    AERIE_TRY(plan->submit(*queue));
    AERIE_ASSIGN(const kernels::RunState state, queue->advance(kernels::kNoDeadline));
    if (state != kernels::RunState::done) return error(Code::internal, "evaluate: a pass did not finish");
    kv.state().advance(std::min(begin + kRows, n));
  }
  if (options.keep_going) (void)options.keep_going(n);
  return {};
}

}  // namespace aerie
