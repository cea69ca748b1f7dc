#include "tests/bench/regret/recording.h"

#include <algorithm>

namespace aerie::bench {

namespace {

constexpr int32_t kWidth = 12, kFrontier = 12, kLevels = 10;
constexpr int32_t kTail = 24;  // tokens behind the last position, for trees that reach beyond it

// Draws as wide a tree as any policy asks for, and verifies nothing of it: a cycle is one token.
class Recorder final : public TreePolicy {
 public:
  Recorder(bool one_pass, std::vector<WideTree>* out) : one_pass_(one_pass), out_(out) {}
  const char* name() const override { return "recorder"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<Recorder>(*this); }
  int32_t width() const override { return kWidth; }
  bool draw_order() const override { return false; }

  void begin(const CycleLimits& limits) override {
    level_ = 0;
    max_depth_ = limits.max_depth;
    out_->emplace_back();
    out_->back().nodes.resize(1);
  }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override {
    frontier->clear();
    if (level_ >= std::min(kLevels, max_depth_)) return false;
    for (int32_t i = level_ == 0 ? 0 : 1; i < tree.size(); ++i)
      if (tree[i].depth == level_ && tree.first_child(i) < 0) frontier->push_back(i);
    std::sort(frontier->begin(), frontier->end(), [&](int32_t a, int32_t b) { return ranks_before(tree, a, b); });
    const size_t most = one_pass_ ? 1 : kFrontier;  // of a one-pass drafter all nodes of a level have the same children
    if (frontier->size() > most) frontier->resize(most);
    std::sort(frontier->begin(), frontier->end());
    ++level_;
    return !frontier->empty();
  }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override {
    selected->clear();
    std::vector<int32_t> order{0};  // breadth first: children side by side
    std::vector<WideNode>& nodes = out_->back().nodes;
    nodes.assign(static_cast<size_t>(tree.size()), {});
    for (size_t at = 0; at < order.size(); ++at) {
      const int32_t i = order[at];
      WideNode& n = nodes[at];
      n.token = tree[i].token;
      n.confidence = tree[i].confidence;
      n.children = tree.child_count(i);
      n.first_child = n.children > 0 ? static_cast<int32_t>(order.size()) : -1;
      for (int32_t c = tree.first_child(i); c >= 0; c = tree.next_sibling(c)) order.push_back(c);
    }
  }

 private:
  bool one_pass_;
  std::vector<WideTree>* out_;
  int32_t level_ = 0, max_depth_ = 0;
};

}  // namespace

Result<Recording> record(const std::shared_ptr<Model>& model, const std::shared_ptr<Drafter>& drafter,
                         const std::vector<std::vector<int32_t>>& prompts, const RecordOptions& options) {
  Recording out;
  out.name = drafter->id();
  const bool one_pass = drafter->needs().levels > 1;
  out.kind = drafter->host_tokens() ? DrafterKind::host : one_pass ? DrafterKind::one_pass : DrafterKind::levels;
  if (drafter->needs().max_depth > 0) out.max_depth = drafter->needs().max_depth;
  if (one_pass) out.max_depth = std::min(out.max_depth, drafter->needs().levels);
  for (size_t i = 0; i < prompts.size(); ++i) {
    RecordedText text;
    text.prompt = static_cast<int64_t>(prompts[i].size());
    SessionOptions o;
    o.drafter = drafter;
    o.sampling.temperature = options.temperature;
    o.sampling.seed = 1;
    o.sampling.stream = static_cast<uint32_t>(i);
    o.shared_noise = options.shared_noise;
    o.ignore_eos = true;
    o.policy = [&] { return std::make_unique<Recorder>(one_pass, &text.trees); };
    AERIE_ASSIGN(auto session, Session::create(model, o));
    AERIE_TRY(session->append(prompts[i]));
    while (text.truth.size() < static_cast<size_t>(options.tokens + kTail)) {
      StepResult r;
      AERIE_TRY(session->step(0, std::chrono::microseconds(0), &r));
      if (r.tokens.size() != 1) return error(Code::internal, "record: a cycle gave " + std::to_string(r.tokens.size()) + " tokens");
      text.truth.push_back(r.tokens[0].id);
    }
    if (text.trees.size() != text.truth.size()) return error(Code::internal, "record: a cycle without a tree");
    text.trees.resize(static_cast<size_t>(options.tokens));
    out.texts.push_back(std::move(text));
  }
  return out;
}

}  // namespace aerie::bench
