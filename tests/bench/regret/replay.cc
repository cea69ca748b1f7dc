#include "tests/bench/regret/replay.h"

#include <algorithm>

#include "core/policy/row_vote.h"

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
  const auto curve = [&](const CostGrid& grid, int32_t sessions) {
    const auto key = std::make_tuple(&grid, sessions, context);
    const auto at = curves_.find(key);
    return (at != curves_.end() ? at : curves_.emplace(key, grid.curve(sessions, context)).first)->second.data();
  };
  CycleCosts c;
  c.target = curve(target_, batch);
  c.beside = batch;
  if (d.recording->kind == DrafterKind::host) return c;
  if (!d.costs->levels.empty()) {
    c.draft = curve(d.costs->levels, batch);
    c.draft_of_all = curve(d.costs->levels, 1);  // what drive() takes
  }
  c.draft_root = d.costs->roots.ms(1, static_cast<double>(context), kUsualRoot);
  return c;
}

double Replay::catch_up_ms(const ReplayDrafter& d, int32_t batch, int64_t context, double behind) const {
  const auto ms = [&](double rows) { return d.costs->roots.ms(1, static_cast<double>(context), rows * batch); };
  return ms(std::max(behind, kUsualRoot)) - ms(kUsualRoot);
}

void Replay::copy_children(Draft* d, int32_t node) {
  const WideTree& wide = wide_of(*d);
  const WideNode& from = wide.nodes[static_cast<size_t>(d->wide[static_cast<size_t>(node)])];
  for (int32_t i = 0; i < from.children; ++i) {
    const WideNode& child = wide.nodes[static_cast<size_t>(from.first_child + i)];
    const int32_t token = child.token + (d->bad ? kWrong : 0);
    if (d->tree.add_children(node, {&token, 1}, {&child.confidence, 1}) == 1) d->wide.push_back(from.first_child + i);
  }
}

void Replay::fill_all(Draft* d) {
  for (int32_t node = 0; node < d->tree.size(); ++node) copy_children(d, node);
}

void Replay::grow_product(Draft* d, int32_t max_depth) {
  // The first node of a level has its children; all others would have the same.
  const WideTree& wide = wide_of(*d);
  std::vector<std::pair<size_t, size_t>> levels;
  tokens_scratch_.clear();
  confidence_.clear();
  for (int32_t at = 0, depth = 0; depth < max_depth; ++depth) {
    const WideNode& n = wide.nodes[static_cast<size_t>(at)];
    if (n.children == 0) break;
    const int32_t width = std::min(n.children, d->policy->width());
    levels.emplace_back(tokens_scratch_.size(), static_cast<size_t>(width));
    int32_t next = n.first_child;
    for (int32_t i = 0; i < width; ++i) {
      const WideNode& child = wide.nodes[static_cast<size_t>(n.first_child + i)];
      tokens_scratch_.push_back(child.token + (d->bad ? kWrong : 0));
      confidence_.push_back(child.confidence);
      if (child.children > 0) next = n.first_child + i;
    }
    at = next;
  }
  std::vector<LevelList> lists;
  for (const auto& [first, n] : levels)
    lists.push_back({{tokens_scratch_.data() + first, n}, {confidence_.data() + first, n}});
  product_.grow(&d->tree, lists, d->policy->best_nodes());
}

// As Stepper::decide_rows.
void Replay::select_all(std::span<Draft> drafts, std::span<TreePolicy* const> policies) {
  nodes_.clear();
  const TreePolicy* weighs = nullptr;
  auto rows = static_cast<int32_t>(drafts.size());
  for (size_t s = 0; s < drafts.size(); ++s) {
    Draft& d = drafts[s];
    d.selected.clear();
    d.worth.clear();
    if (!policies[s] || d.tree.size() <= 1) continue;
    if (drafts.size() > 1 && policies[s]->offer_rows(d.tree, &d.worth)) {
      weighs = policies[s];
      for (const double w : d.worth) nodes_.push_back({w, s});
    } else {
      policies[s]->select(d.tree, &d.selected);
      rows += static_cast<int32_t>(d.selected.size());
    }
  }
  if (!weighs) return;
  std::stable_sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.worth > b.worth; });
  worth_.clear();
  for (const Node& n : nodes_) worth_.push_back(n.worth);
  const RowVote vote = decide_rows(worth_, rows, static_cast<int32_t>(drafts.size()), [&](int32_t n) { return weighs->verify_ms(n); });
  taken_.assign(drafts.size(), 0);
  for (size_t i = 0; i < vote.taken; ++i) ++taken_[nodes_[i].session];
  for (size_t s = 0; s < drafts.size(); ++s)
    if (!drafts[s].worth.empty()) policies[s]->rows_decided(taken_[s], vote.node_ms, &drafts[s].selected);
}

Cycle Replay::walk(Draft* d) {
  Cycle c;
  c.drafter = static_cast<int32_t>(d->drafter);
  c.level_rows = d->level_rows;
  c.nodes = static_cast<int32_t>(d->selected.size());
  const std::vector<int32_t>& truth = text(drafters_[d->drafter], d->place).truth;
  const size_t at = d->place.at;
  d->path.assign(1, 0);
  for (;;) {
    d->last_token = truth[at + d->path.size() - 1];
    if (at + d->path.size() == truth.size()) break;
    int32_t child = d->tree.first_child(d->path.back());
    while (child >= 0 && (d->tree[child].token != d->last_token || std::find(d->selected.begin(), d->selected.end(), child) == d->selected.end()))
      child = d->tree.next_sibling(child);
    if (child < 0) break;
    d->path.push_back(child);
  }
  c.tokens = static_cast<int32_t>(d->path.size());
  return c;
}

void Replay::start(Draft* d, TreePolicy& policy, size_t drafter, const Place& p, bool bad) {
  d->policy = &policy;
  d->drafter = drafter;
  d->place = p;
  d->bad = bad;
  d->level_rows.clear();
  d->worth.clear();
  d->tree.reset(-1);
  d->wide.assign(1, 0);
  if (kind_of(*d) != DrafterKind::host) return;
  fill_all(d);
  stop(d);
}

// It asks no more: the others hear what its nodes are worth.
void Replay::stop(Draft* d) {
  if (d->tree.size() <= 1 || !d->policy->offer_rows(d->tree, &d->worth)) d->worth.clear();
  d->policy = nullptr;
}

// The children of the frontier, or all of the tree.
void Replay::take_level(Draft* d) {
  const DrafterKind kind = kind_of(*d);
  if (kind == DrafterKind::levels || d->frontier[0] == 0) d->level_rows.push_back(static_cast<int32_t>(d->frontier.size()));
  if (kind == DrafterKind::one_pass && d->policy->best_nodes() > 0) {
    grow_product(d, std::min(drafters_[d->drafter].recording->max_depth, d->policy->best_depth()));
    stop(d);
    return;
  }
  const WideTree& wide = wide_of(*d);
  for (const int32_t node : d->frontier) {
    if (kind == DrafterKind::one_pass) {  // as the first node of that depth
      int32_t at = 0;
      for (int32_t depth = 0; depth < d->tree[node].depth; ++depth) {
        int32_t next = wide.nodes[static_cast<size_t>(at)].first_child;
        for (int32_t i = 0; next >= 0 && i < wide.nodes[static_cast<size_t>(at)].children; ++i)
          if (const int32_t c = wide.nodes[static_cast<size_t>(at)].first_child + i; wide.nodes[static_cast<size_t>(c)].children > 0) next = c;
        if (next < 0) break;
        at = next;
      }
      d->wide[static_cast<size_t>(node)] = at;
    }
    copy_children(d, node);
  }
}

// As Stepper::decide_levels.
void Replay::decide_level(std::span<Draft> drafts, size_t drafter) {
  asking_.clear();
  offers_.clear();
  for (Draft& d : drafts) {
    if (!d.policy || d.drafter != drafter) continue;
    if (!d.policy->offer(d.tree, &d.frontier, &d.offer) || d.frontier.empty()) {
      stop(&d);
      continue;
    }
    d.worth.assign(d.offer.drafted.begin(), d.offer.drafted.end());
    asking_.push_back(&d);
    offers_.push_back(d.offer);
  }
  if (asking_.empty()) return;
  const TreePolicy& policy = *asking_[0]->policy;
  const auto sessions = static_cast<int32_t>(drafts.size());
  worth_.clear();
  for (const Draft& d : drafts)
    if (std::find(asking_.begin(), asking_.end(), &d) == asking_.end()) worth_.insert(worth_.end(), d.worth.begin(), d.worth.end());
  const LevelVote vote = ballot_.decide(
      offers_, {worth_, sessions, sessions}, [&](int32_t rows) { return policy.level_ms(rows); }, [&](int32_t rows) { return policy.verify_ms(rows); });
  for (size_t i = 0; i < asking_.size(); ++i) {
    Draft& d = *asking_[ballot_.best_first()[i]];
    const double share = vote.rows > 0 ? static_cast<double>(d.offer.rows) * sessions / vote.rows : 0;
    d.policy->decided(i < vote.taken, vote.ms * share, share);
    if (i < vote.taken) take_level(&d);
    else stop(&d);
  }
}

void Replay::draft_all(std::span<Draft> drafts) {
  const auto open = [](const Draft& d) { return d.policy != nullptr; };
  while (std::any_of(drafts.begin(), drafts.end(), open))
    for (size_t drafter = 0; drafter < drafters_.size(); ++drafter) decide_level(drafts, drafter);
}

Outcome Replay::drive(int32_t batch, size_t first, const Cycles& begin, const Told& told) {
  const std::vector<RecordedText>& texts = drafters_[0].recording->texts;
  const size_t length = texts[0].trees.size();
  std::vector<Now> now(static_cast<size_t>(batch));
  std::vector<double> done(now.size(), 0), spent(now.size()), root_ms(now.size());
  for (size_t s = 0; s < now.size(); ++s)
    now[s] = {{(first + s) % texts.size(), (s / texts.size() * 37) % length}, std::vector<uint8_t>(drafters_.size()), std::vector<double>(drafters_.size(), 1)};
  std::vector<Cycle> cycles(now.size());
  Outcome out;
  for (double emitted = 0; emitted < static_cast<double>(tokens_) * batch;) {
    double context = 0, clock = 0;
    int32_t rows = 0;
    size_t deepest = 0;
    for (size_t s = 0; s < now.size(); ++s) {
      context += static_cast<double>(texts[now[s].place.text].prompt) + static_cast<double>(now[s].place.at);
      for (size_t d = 0; d < drafters_.size(); ++d) now[s].bad[d] = drafters_[d].good_until < 1 && done[s] >= drafters_[d].good_until * tokens_;
    }
    const auto c = static_cast<double>(rounded(context / batch));
    begin(now, cycles);
    for (size_t s = 0; s < now.size(); ++s) {
      spent[s] = root_ms[s] = 0;
      rows += 1 + cycles[s].nodes;
      deepest = std::max(deepest, cycles[s].level_rows.size());
    }
    // Draft passes: one for each drafter and level.
    for (size_t d = 0; d < drafters_.size(); ++d) {
      const ReplayDrafter& drafter = drafters_[d];
      const bool host = drafter.recording->kind == DrafterKind::host;
      for (size_t l = 0; l < deepest || (host && l == 0); ++l) {
        double n = 0;
        for (size_t s = 0; s < now.size(); ++s)
          if (cycles[s].drafter == static_cast<int32_t>(d) && (host || l < cycles[s].level_rows.size()))
            n += host ? 1 : l == 0 ? now[s].behind[d] : cycles[s].level_rows[l];
        if (n == 0) continue;
        const double ms = host ? n * drafter.costs->roots.ms(1, c, 1) : (l == 0 ? drafter.costs->roots : drafter.costs->levels).ms(1, c, n);
        clock += ms;
        if (host) continue;  // a session does not count the time of a call on the host
        for (size_t s = 0; s < now.size(); ++s) {
          if (cycles[s].drafter != static_cast<int32_t>(d) || l >= cycles[s].level_rows.size()) continue;
          spent[s] += ms * (l == 0 ? now[s].behind[d] : cycles[s].level_rows[l]) * batch / n;  // Session::share_of
          if (l == 0 && now[s].behind[d] <= kCatchUpRows) root_ms[s] = ms;
        }
      }
      for (size_t s = 0; s < now.size(); ++s)
        if (cycles[s].drafter == static_cast<int32_t>(d)) now[s].behind[d] = 0;
    }
    const double verify = target_.ms(batch, c, static_cast<double>(rows) / batch);
    clock += verify;
    for (size_t s = 0; s < now.size(); ++s) {
      const double plain = target_.ms(batch, c, 1), nodes = rows - batch;
      told(static_cast<int32_t>(s), spent[s] + (nodes > 0 ? plain + (verify - plain) * cycles[s].nodes * batch / nodes : verify), root_ms[s]);
      const int32_t n = cycles[s].tokens;
      out.tokens += n;
      out.cycles += 1;
      out.nodes += cycles[s].nodes;
      out.plain += cycles[s].drafter < 0;
      emitted += n;
      done[s] += n;
      for (double& b : now[s].behind) b = std::min(b + n, kBehind);
      Place& place = now[s].place;
      place.at += static_cast<size_t>(n);
      if (place.at >= length) place = {(place.text + 1) % texts.size(), 0};
    }
    out.ms += clock;
  }
  return out;
}

Outcome Replay::run_plain(int32_t batch, size_t begin) {
  return drive(batch, begin, [](std::span<const Now>, std::span<Cycle> cycles) { std::fill(cycles.begin(), cycles.end(), Cycle{}); },
               [](int32_t, double, double) {});
}

std::vector<std::vector<Outcome>> Replay::run_fixed(const Maker& make, const std::vector<int32_t>& batches, const std::vector<size_t>& begins) {
  const size_t length = drafters_[0].recording->texts[0].trees.size();
  std::vector<Cycle> known(drafters_[0].recording->texts.size() * length, Cycle{-1, {}, 0, 0});
  const auto policy = make();
  Draft draft;
  const auto cycles = [&](std::span<const Now> now, std::span<Cycle> cycles) {
    for (size_t s = 0; s < now.size(); ++s) {
      Cycle& c = known[now[s].place.text * length + now[s].place.at];
      if (c.tokens == 0) {
        CycleLimits limits;
        limits.max_depth = std::min(limits.max_depth, drafters_[0].recording->max_depth);
        policy->begin(limits);
        start(&draft, *policy, 0, now[s].place, false);
        draft_all({&draft, 1});
        TreePolicy* const one = policy.get();
        select_all({&draft, 1}, {&one, 1});
        c = walk(&draft);
      }
      cycles[s] = c;
      if (now[s].bad[0]) cycles[s].tokens = 1;  // the shape of the tree follows the confidences, which are what they were
    }
  };
  std::vector<std::vector<Outcome>> out(batches.size());
  for (size_t b = 0; b < batches.size(); ++b)
    for (const size_t begin : begins) out[b].push_back(drive(batches[b], begin, cycles, [](int32_t, double, double) {}));
  return out;
}

Outcome Replay::run(const Maker& make, int32_t batch, size_t begin) {
  struct Mind {
    std::vector<std::unique_ptr<TreePolicy>> policies;
    DrafterChoice choice;
    std::vector<DrafterOption> options;
    std::vector<Draft> peeks;
    std::vector<int32_t> told;
    std::vector<double> root_ms;  // by drafter, 0: not seen yet
    int32_t chosen = -1;
    double plain_ms = 0;
  };
  const bool several = drafters_.size() > 1;
  std::vector<Mind> minds(static_cast<size_t>(batch));
  std::vector<Draft> drafts(minds.size());
  std::vector<TreePolicy*> who(minds.size());
  for (Mind& m : minds) {
    for (size_t d = 0; d < drafters_.size(); ++d) m.policies.push_back(make());
    for (size_t d = 0; d < drafters_.size(); ++d)
      if (const auto e = minds[0].policies[d]->experience()) m.policies[d]->take_over(*e);  // as Session::prepare_costs
    m.options.assign(drafters_.size(), {});
    m.root_ms.assign(drafters_.size(), 0);
    m.peeks.resize(drafters_.size());
  }
  const auto choose = [&](Mind* m, const Now& now) {
    const Place& p = now.place;
    const auto context = rounded(static_cast<double>(text(drafters_[0], p).prompt) + static_cast<double>(p.at));
    const auto host = [&](size_t d) { return drafters_[d].recording->kind == DrafterKind::host; };
    const auto catch_up = [&](size_t d) { return host(d) ? 0 : catch_up_ms(drafters_[d], batch, context, now.behind[d]); };
    for (size_t d = 0; d < drafters_.size(); ++d) {
      CycleLimits limits;
      limits.max_depth = std::min(limits.max_depth, drafters_[d].recording->max_depth);
      CycleCosts c = costs(drafters_[d], batch, context);
      if (m->root_ms[d] == 0) m->root_ms[d] = c.draft_root;
      c.draft_root = m->root_ms[d];
      c.catch_up = catch_up(d);
      m->plain_ms = c.target_ms(1);
      if (several) {
        c.reached = m->choice.speed(m->options, m->plain_ms);
        c.instead = DrafterChoice::instead(m->options, d, c.reached, m->plain_ms);
      }
      m->policies[d]->begin(limits);
      m->policies[d]->costs(c);
    }
    if (!several) return m->policies[0]->resting() ? -1 : 0;
    for (size_t d = 0; d < drafters_.size(); ++d) {
      if (host(d)) start(&m->peeks[d], *m->policies[d], d, p, now.bad[d]);
      m->options[d] = {m->policies[d].get(), true, host(d) ? &m->peeks[d].tree : nullptr, catch_up(d)};
    }
    return m->choice.choose(m->options, m->plain_ms);
  };
  return drive(
      batch, begin,
      [&](std::span<const Now> now, std::span<Cycle> cycles) {
        for (size_t s = 0; s < minds.size(); ++s) {
          Mind& m = minds[s];
          m.chosen = choose(&m, now[s]);
          drafts[s].policy = nullptr;
          drafts[s].worth.clear();
          const auto at = static_cast<size_t>(m.chosen);
          if (m.chosen >= 0) start(&drafts[s], *m.policies[at], at, now[s].place, now[s].bad[at]);
        }
        draft_all(drafts);
        for (size_t s = 0; s < minds.size(); ++s)
          who[s] = minds[s].chosen < 0 ? nullptr : minds[s].policies[static_cast<size_t>(minds[s].chosen)].get();
        select_all(drafts, who);
        for (size_t s = 0; s < minds.size(); ++s) {
          Mind& m = minds[s];
          const std::vector<int32_t>& truth = text(drafters_[0], now[s].place).truth;
          const auto first = truth.begin() + static_cast<std::ptrdiff_t>(now[s].place.at);
          if (m.chosen >= 0) {
            cycles[s] = walk(&drafts[s]);
          } else {
            cycles[s] = {};
            drafts[s].tree.reset(-1);
            drafts[s].path.assign(1, 0);
            drafts[s].last_token = *first;
          }
          m.told.assign(first, first + cycles[s].tokens);
        }
      },
      [&](int32_t s, double ms, double root_ms) {
        Mind& m = minds[static_cast<size_t>(s)];
        const Draft& draft = drafts[static_cast<size_t>(s)];
        if (root_ms > 0) {
          double& usual = m.root_ms[static_cast<size_t>(m.chosen)];
          usual += kNewest * (root_ms - usual);
        }
        if (!several || m.chosen >= 0)
          m.policies[static_cast<size_t>(std::max(0, m.chosen))]->outcome(draft.tree, {draft.path, draft.last_token, ms, draft.selected});
        if (!several) return;
        for (size_t d = 0; d < drafters_.size(); ++d) {
          if (static_cast<int32_t>(d) == m.chosen) continue;
          if (m.options[d].tree) m.policies[d]->witness(m.peeks[d].tree, m.told);
          m.policies[d]->idle(static_cast<double>(m.told.size()) / static_cast<double>(drafters_.size()));
        }
        m.choice.outcome(static_cast<double>(draft.path.size()), ms, m.plain_ms);
      });
}

}  // namespace aerie::bench
