#include "tests/bench/regret/replay.h"

#include <algorithm>
#include <numeric>

namespace aerie::bench {

namespace {

constexpr int64_t kContextStep = 16;
constexpr int32_t kWrong = 1 << 24;   // added to a token: no token of the text
constexpr double kBehind = kWaitingRows;  // what a drafter who has not been asked is shown when it is
// As core/session/costs.cc: tokens that a first draft pass is expected to observe, above how many it is no usual one, and the
// weight of the newest.
constexpr double kUsualRoot = 2, kCatchUpRows = 24, kNewest = 0.2;

// Context of the pass, the mean over its sequences.
int64_t rounded(double context) { return std::max<int64_t>(1, static_cast<int64_t>(context / kContextStep + 0.5) * kContextStep); }

}  // namespace

CycleCosts Replay::costs(const ReplayDrafter& d, int32_t batch, int64_t context) {
  const auto curve = [&](const CostGrid& grid) {
    const auto key = std::make_tuple(&grid, batch, context);
    const auto at = curves_.find(key);
    return (at != curves_.end() ? at : curves_.emplace(key, grid.curve(batch, context)).first)->second.data();
  };
  CycleCosts c;
  c.target = curve(target_);
  c.beside = batch;
  if (d.recording->kind == DrafterKind::host) return c;
  if (!d.costs->levels.empty()) c.draft = curve(d.costs->levels);
  c.draft_root = d.costs->roots.ms(1, static_cast<double>(context), kUsualRoot);
  return c;
}

double Replay::catch_up_ms(const ReplayDrafter& d, int32_t batch, int64_t context, double behind) const {
  const auto ms = [&](double rows) { return d.costs->roots.ms(1, static_cast<double>(context), rows * batch); };
  return ms(std::max(behind, kUsualRoot)) - ms(kUsualRoot);
}

void Replay::copy_children(const WideTree& wide, int32_t node, bool bad) {
  const WideNode& from = wide.nodes[static_cast<size_t>(wide_[static_cast<size_t>(node)])];
  for (int32_t i = 0; i < from.children; ++i) {
    const WideNode& child = wide.nodes[static_cast<size_t>(from.first_child + i)];
    const int32_t token = child.token + (bad ? kWrong : 0);
    if (tree_.add_children(node, {&token, 1}, {&child.confidence, 1}) == 1) wide_.push_back(from.first_child + i);
  }
}

void Replay::fill_all(const WideTree& wide, bool bad) {
  for (int32_t node = 0; node < tree_.size(); ++node) copy_children(wide, node, bad);
}

void Replay::grow_product(const WideTree& wide, TreePolicy& policy, int32_t max_depth, bool bad) {
  // The first node of a level has its children; all others would have the same.
  std::vector<std::pair<size_t, size_t>> levels;
  tokens_scratch_.clear();
  confidence_.clear();
  for (int32_t at = 0, depth = 0; depth < max_depth; ++depth) {
    const WideNode& n = wide.nodes[static_cast<size_t>(at)];
    if (n.children == 0) break;
    levels.emplace_back(tokens_scratch_.size(), static_cast<size_t>(std::min(n.children, policy.width())));
    int32_t next = n.first_child;
    for (int32_t i = 0; i < std::min(n.children, policy.width()); ++i) {
      const WideNode& child = wide.nodes[static_cast<size_t>(n.first_child + i)];
      tokens_scratch_.push_back(child.token + (bad ? kWrong : 0));
      confidence_.push_back(child.confidence);
      if (child.children > 0) next = n.first_child + i;
    }
    at = next;
  }
  std::vector<LevelList> lists;
  for (const auto& [first, n] : levels)
    lists.push_back({{tokens_scratch_.data() + first, n}, {confidence_.data() + first, n}});
  product_.grow(&tree_, lists, policy.best_nodes());
}

Cycle Replay::walk(TreePolicy& policy, size_t drafter, const Place& p) {
  Cycle c;
  c.drafter = static_cast<int32_t>(drafter);
  c.level_rows = level_rows_;
  selected_.clear();
  if (tree_.size() > 1) policy.select(tree_, &selected_);
  c.nodes = static_cast<int32_t>(selected_.size());
  const std::vector<int32_t>& truth = text(drafters_[drafter], p).truth;
  path_.assign(1, 0);
  for (;;) {
    last_token_ = truth[p.at + path_.size() - 1];
    if (p.at + path_.size() == truth.size()) break;
    int32_t child = tree_.first_child(path_.back());
    while (child >= 0 && (tree_[child].token != last_token_ || std::find(selected_.begin(), selected_.end(), child) == selected_.end()))
      child = tree_.next_sibling(child);
    if (child < 0) break;
    path_.push_back(child);
  }
  c.tokens = static_cast<int32_t>(path_.size());
  return c;
}

Cycle Replay::draft(TreePolicy& policy, size_t drafter, const Place& p, bool bad) {
  const Recording& r = *drafters_[drafter].recording;
  const WideTree& wide = r.texts[p.text].trees[p.at];
  level_rows_.clear();
  tree_.reset(-1);
  wide_.assign(1, 0);
  if (r.kind == DrafterKind::host) {
    fill_all(wide, bad);
    return walk(policy, drafter, p);
  }
  while (policy.expand(tree_, &frontier_) && !frontier_.empty()) {
    if (r.kind == DrafterKind::levels || frontier_[0] == 0) level_rows_.push_back(static_cast<int32_t>(frontier_.size()));
    if (r.kind == DrafterKind::one_pass && policy.best_nodes() > 0) {
      grow_product(wide, policy, std::min(r.max_depth, policy.best_depth()), bad);
      break;
    }
    for (const int32_t node : frontier_) {
      if (r.kind == DrafterKind::one_pass) {  // as the first node of that depth
        int32_t at = 0;
        for (int32_t d = 0; d < tree_[node].depth; ++d) {
          int32_t next = wide.nodes[static_cast<size_t>(at)].first_child;
          for (int32_t i = 0; next >= 0 && i < wide.nodes[static_cast<size_t>(at)].children; ++i)
            if (const int32_t c = wide.nodes[static_cast<size_t>(at)].first_child + i; wide.nodes[static_cast<size_t>(c)].children > 0) next = c;
          if (next < 0) break;
          at = next;
        }
        wide_[static_cast<size_t>(node)] = at;
      }
      copy_children(wide, node, bad);
    }
  }
  return walk(policy, drafter, p);
}

Outcome Replay::drive(int32_t batch, const std::function<Cycle(int32_t s, const Place& p, bool bad[], std::span<const double> behind)>& cycle,
                      const Told& told) {
  const std::vector<RecordedText>& texts = drafters_[0].recording->texts;
  const size_t length = texts[0].trees.size();
  std::vector<Place> places(static_cast<size_t>(batch));
  std::vector<double> done(places.size(), 0);
  std::vector<std::vector<double>> spent(places.size());  // by draft pass
  std::vector<double> root_ms(places.size());
  std::vector<std::vector<double>> behind(places.size(), std::vector<double>(drafters_.size(), 1));  // not shown yet
  for (size_t s = 0; s < places.size(); ++s) places[s] = {s % texts.size(), (s / texts.size() * 37) % length};
  std::vector<Cycle> cycles(places.size());
  Outcome out;
  for (double emitted = 0; emitted < static_cast<double>(tokens_) * batch;) {
    double context = 0, clock = 0;
    int32_t rows = 0;
    size_t deepest = 0;
    for (const Place& p : places) context += static_cast<double>(texts[p.text].prompt) + static_cast<double>(p.at);
    const auto c = static_cast<double>(rounded(context / batch));
    for (size_t s = 0; s < places.size(); ++s) {
      bool bad[16] = {};
      for (size_t d = 0; d < drafters_.size(); ++d) bad[d] = done[s] >= drafters_[d].good_until * tokens_;
      cycles[s] = cycle(static_cast<int32_t>(s), places[s], bad, behind[s]);
      spent[s].clear();
      root_ms[s] = 0;
      rows += 1 + cycles[s].nodes;
      deepest = std::max(deepest, cycles[s].level_rows.size());
    }
    // Draft passes: one for each drafter and level.
    for (size_t d = 0; d < drafters_.size(); ++d) {
      const ReplayDrafter& drafter = drafters_[d];
      const bool host = drafter.recording->kind == DrafterKind::host;
      for (size_t l = 0; l < deepest || (host && l == 0); ++l) {
        double n = 0;
        for (size_t s = 0; s < places.size(); ++s)
          if (cycles[s].drafter == static_cast<int32_t>(d) && (host || l < cycles[s].level_rows.size()))
            n += host ? 1 : l == 0 ? behind[s][d] : cycles[s].level_rows[l];
        if (n == 0) continue;
        const double ms = host ? n * drafter.costs->roots.ms(1, c, 1) : (l == 0 ? drafter.costs->roots : drafter.costs->levels).ms(1, c, n);
        clock += ms;
        if (host) continue;  // a session does not count the time of a call on the host
        for (size_t s = 0; s < places.size(); ++s) {
          if (cycles[s].drafter != static_cast<int32_t>(d) || l >= cycles[s].level_rows.size()) continue;
          spent[s].push_back(ms * (l == 0 ? behind[s][d] : cycles[s].level_rows[l]) * batch / n);  // Session::share_of
          if (l == 0 && behind[s][d] <= kCatchUpRows) root_ms[s] = ms;
        }
      }
      for (size_t s = 0; s < places.size(); ++s)
        if (cycles[s].drafter == static_cast<int32_t>(d)) behind[s][d] = 0;
    }
    const double verify = target_.ms(batch, c, static_cast<double>(rows) / batch);
    clock += verify;
    for (size_t s = 0; s < places.size(); ++s) {
      const double plain = target_.ms(batch, c, 1), nodes = rows - batch;
      const double drafts = std::accumulate(spent[s].begin(), spent[s].end(), 0.0);
      told(static_cast<int32_t>(s), drafts + (nodes > 0 ? plain + (verify - plain) * cycles[s].nodes * batch / nodes : verify), spent[s], root_ms[s]);
      const int32_t n = cycles[s].tokens;
      out.tokens += n;
      out.cycles += 1;
      out.nodes += cycles[s].nodes;
      out.plain += cycles[s].drafter < 0;
      emitted += n;
      done[s] += n;
      for (double& b : behind[s]) b = std::min(b + n, kBehind);
      places[s].at += static_cast<size_t>(n);
      if (places[s].at >= length) places[s] = {(places[s].text + 1) % texts.size(), 0};
    }
    out.ms += clock;
  }
  return out;
}

Outcome Replay::run_plain(int32_t batch) {
  return drive(batch, [](int32_t, const Place&, bool*, std::span<const double>) { return Cycle{}; }, [](int32_t, double, std::span<const double>, double) {});
}

std::vector<Outcome> Replay::run_fixed(const Maker& make, const std::vector<int32_t>& batches) {
  const size_t length = drafters_[0].recording->texts[0].trees.size();
  std::vector<Cycle> known(drafters_[0].recording->texts.size() * length, Cycle{-1, {}, 0, 0});
  const auto policy = make();
  std::vector<Outcome> out;
  for (const int32_t batch : batches)
    out.push_back(drive(
        batch,
        [&](int32_t, const Place& p, bool* bad, std::span<const double>) {
          Cycle& c = known[p.text * length + p.at];
          if (c.tokens == 0) {
            CycleLimits limits;
            limits.max_depth = std::min(limits.max_depth, drafters_[0].recording->max_depth);
            policy->begin(limits);
            c = draft(*policy, 0, p, false);
          }
          Cycle copy = c;
          if (bad[0]) copy.tokens = 1;  // the shape of the tree follows the confidences, which are what they were
          return copy;
        },
        [](int32_t, double, std::span<const double>, double) {}));
  return out;
}

Outcome Replay::run(const Maker& make, int32_t batch) {
  struct Mind {
    std::vector<std::unique_ptr<TreePolicy>> policies;
    DrafterChoice choice;
    std::vector<DrafterOption> options;
    std::vector<DraftTree> peeks;
    std::vector<int32_t> path, told;
    DraftTree tree;
    std::vector<double> root_ms;  // by drafter, 0: not seen yet
    int32_t chosen = -1, last = -1;
    double plain_ms = 0;
  };
  const bool several = drafters_.size() > 1;
  std::vector<Mind> minds(static_cast<size_t>(batch));
  for (Mind& m : minds) {
    for (size_t d = 0; d < drafters_.size(); ++d) m.policies.push_back(make());
    for (size_t d = 0; d < drafters_.size(); ++d)
      if (const auto e = minds[0].policies[d]->experience()) m.policies[d]->take_over(*e);  // as Session::prepare_costs
    m.options.assign(drafters_.size(), {});
    m.root_ms.assign(drafters_.size(), 0);
    m.peeks.resize(drafters_.size());
  }
  return drive(
      batch,
      [&](int32_t s, const Place& p, bool* bad, std::span<const double> behind) {
        Mind& m = minds[static_cast<size_t>(s)];
        const auto context = rounded(static_cast<double>(text(drafters_[0], p).prompt) + static_cast<double>(p.at));
        double& plain_ms = m.plain_ms;
        for (size_t d = 0; d < drafters_.size(); ++d) {
          CycleLimits limits;
          limits.max_depth = std::min(limits.max_depth, drafters_[d].recording->max_depth);
          CycleCosts c = costs(drafters_[d], batch, context);
          if (m.root_ms[d] == 0) m.root_ms[d] = c.draft_root;
          c.draft_root = m.root_ms[d];
          c.catch_up = drafters_[d].recording->kind == DrafterKind::host ? 0 : catch_up_ms(drafters_[d], batch, context, behind[d]);
          plain_ms = c.target_ms(1);
          if (several) {
            c.reached = m.choice.speed(m.options, plain_ms);
            c.instead = DrafterChoice::instead(m.options, d, c.reached, plain_ms);
          }
          m.policies[d]->begin(limits);
          m.policies[d]->costs(c);
        }
        m.chosen = 0;
        if (several) {
          for (size_t d = 0; d < drafters_.size(); ++d) {
            const bool host = drafters_[d].recording->kind == DrafterKind::host;
            if (host) {
              tree_.reset(-1);
              wide_.assign(1, 0);
              fill_all(drafters_[d].recording->texts[p.text].trees[p.at], bad[d]);
              m.peeks[d] = tree_;
            }
            m.options[d] = {m.policies[d].get(), true, host ? &m.peeks[d] : nullptr, host ? 0 : catch_up_ms(drafters_[d], batch, context, behind[d])};
          }
          m.chosen = m.choice.choose(m.options, plain_ms);
        } else if (m.policies[0]->resting()) {
          m.chosen = -1;
        }
        Cycle c;
        if (m.chosen >= 0) {
          c = draft(*m.policies[static_cast<size_t>(m.chosen)], static_cast<size_t>(m.chosen), p, bad[m.chosen]);
        } else {
          tree_.reset(-1);
          path_.assign(1, 0);
          last_token_ = text(drafters_[0], p).truth[p.at];
        }
        m.tree = tree_;
        m.path = path_;
        m.last = last_token_;
        const std::vector<int32_t>& truth = text(drafters_[0], p).truth;
        m.told.assign(truth.begin() + static_cast<std::ptrdiff_t>(p.at), truth.begin() + static_cast<std::ptrdiff_t>(p.at) + c.tokens);
        return c;
      },
      [&](int32_t s, double ms, std::span<const double> draft_ms, double root_ms) {
        Mind& m = minds[static_cast<size_t>(s)];
        if (root_ms > 0) {
          double& usual = m.root_ms[static_cast<size_t>(m.chosen)];
          usual += kNewest * (root_ms - usual);
        }
        if (!several || m.chosen >= 0)
          m.policies[static_cast<size_t>(std::max(0, m.chosen))]->outcome(m.tree, {m.path, m.last, ms, draft_ms});
        if (!several) return;
        for (size_t d = 0; d < drafters_.size(); ++d) {
          if (static_cast<int32_t>(d) == m.chosen) continue;
          if (m.options[d].tree) m.policies[d]->witness(m.peeks[d], m.told);
          m.policies[d]->idle(static_cast<double>(m.told.size()) / static_cast<double>(drafters_.size()));
        }
        m.choice.outcome(static_cast<double>(m.path.size()), ms, m.plain_ms);
      });
}

}  // namespace aerie::bench
