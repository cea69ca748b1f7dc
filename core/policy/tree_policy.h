// TreePolicy: which nodes to ask the drafter about next, and which to verify in the end. The core
// owns the loop (ARCHITECTURE, cycle step 2):
//
//   policy.begin(limits);  tree.reset(root);  frontier = {0}
//   while (policy.expand(tree, &frontier)) { ask the drafter for policy.width() children of each
//                                            frontier node; tree.add_children(...) }
//   policy.select(tree, &selected)
//
// A drafter may answer more than it was asked for (several levels, a whole path): a policy never
// asks about a node that has children already, nor twice about the same node.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/policy/level_vote.h"
#include "core/tree/draft_tree.h"
#include "kernels/beliefs.h"
#include "kernels/status.h"

namespace aerie {

constexpr int32_t kMaxTreeNodes = 128;  // with the root: rows of a verify pass
constexpr int32_t kMaxTreeWidth = 128;  // kernels::kMaxTopK
constexpr int32_t kMaxTreeLevels = 64;  // of eagle2 after the first; of a static tree in all

struct CycleLimits {
  int32_t max_nodes = 127;  // drafted nodes the verify pass can take (128 rows less the root)
  int32_t max_depth = 127;  // what context length and token limit leave
};

// What passes cost now, in milliseconds. Borrowed curves: element n is a pass over n rows, 1 <= n <= 128.
struct CycleCosts {
  const double* target = nullptr;  // a verify pass; the root is a row
  const double* draft = nullptr;   // a draft pass over n frontier nodes; null or 0: not known yet
  // The same passes by the rows of all that step together, where these curves are for n rows of each; null: that is not known.
  const double *target_of_all = nullptr, *draft_of_all = nullptr;
  double proposal = 0;             // asking a drafter on the host, each cycle; 0: next to nothing
  double draft_root = 0;           // the first draft pass of a cycle: what was committed is observed with it
  double catch_up = 0;             // so much longer it takes this time: the drafter has missed something
  int32_t beside = 1;              // sessions that step together, this one among them
  // Where a session has several drafters: tokens a millisecond that it reaches with all of them, and what a cycle that
  // goes to another one, or to none, is worth at that speed, in tokens. 0: there is none, or nobody knows.
  double reached = 0, instead = 0;
  double target_ms(int32_t rows) const { return target[rows < 128 ? rows : 128]; }
  double draft_ms(int32_t rows) const { return draft ? draft[rows < 128 ? rows : 128] : 0; }
  double target_all_ms(int32_t rows) const { return all_ms(target_of_all, target, rows); }
  double draft_all_ms(int32_t rows) const { return draft ? all_ms(draft_of_all, draft, rows) : 0; }

 private:
  double all_ms(const double* of_all, const double* curve, int32_t rows) const {
    if (of_all && rows <= 128) return of_all[rows];
    const double each = static_cast<double>(rows) / beside;
    const auto n = static_cast<int32_t>(std::clamp(each, 1.0, 127.0));
    return std::max(curve[n] + (each - n) * (curve[n + 1] - curve[n]), curve[1] / beside);
  }
};

// How a cycle ended: the nodes walked through (the root first), the token emitted after the last of them, and what
// the cycle took from its first draft pass on; in a batch, for this session's sake.
struct CycleOutcome {
  std::span<const int32_t> path;
  int32_t last_token = -1;
  double ms = 0;
  std::span<const int32_t> verified = {};  // nodes, the root aside; fewer than selected where the batch had no room for more
};

// Tokens of a cycle and milliseconds it takes. ms 0: not known.
struct CycleRate {
  double tokens = 0, ms = 0;
  double speed() const { return ms > 0 ? tokens / ms : 0; }
};

// A node of a tree of fixed shape. Parents come before children, the root is number 0.
struct ShapeNode {
  int32_t parent = -1;
  int32_t rank = 0;
  int32_t depth = 0;
};

// How a policy weighs whether a level is drafted, for a device to do the same (kernels::TreeWeigh).
struct TreeWeighing {
  double draft_cost = 0;     // of a pass over `beam` nodes, in any unit
  double threshold = -std::numeric_limits<double>::infinity();  // so: every level is asked for
  std::vector<double> gain;  // by depth of the nodes drafted from, from 1 on
  // Of auto's alone: what nodes are worth instead of the product of confidences; gains by depth likewise; the first level that does
  // not pay is asked for all the same, from its best node alone.
  const kernels::Beliefs* beliefs = nullptr;
  std::vector<kernels::GainByBest> gain_by_best;
  bool explore = false;
};

// A tree that candidates alone decide, or costs known beforehand, so that a device can draw it by itself
// (session/device_draft.h).
struct TreeShape {
  int32_t width = 0;   // children asked for
  int32_t beam = 0;    // of each level so many of the best nodes are expanded, such as are among the best `keep` so far; 0: its
                       // first node alone
  int32_t levels = 0;
  int32_t keep = 0;    // the nodes of highest value are verified
  // These nodes, by depth, whatever their values: they are verified, and expanded where they have children. Borrowed until
  // the policy's next cycle; empty: as said above.
  std::span<const ShapeNode> nodes = {};
  // Whether the best `beam` of a level are expanded is weighed. Of these alone, or with beliefs of all, the best `keep` are verified.
  // Borrowed likewise; null: not so.
  const TreeWeighing* weighing = nullptr;
  // Of a drafter that answers all levels at once so many nodes of the highest product of confidences may be verified; 0: `keep`.
  int32_t among = 0;
};

// What a policy has learned about a drafter, handed from one session to the next.
class TreeExperience {
 public:
  virtual ~TreeExperience() = default;
};

class TreePolicy {
 public:
  virtual ~TreePolicy() = default;
  virtual const char* name() const = 0;
  virtual std::unique_ptr<TreePolicy> clone() const = 0;  // with all it has learned
  virtual void begin(const CycleLimits& limits) = 0;
  // Candidates wanted for each frontier node; the same in every call.
  virtual int32_t width() const = 0;
  // Choose the next frontier (nodes of one depth, in tree order; the first call answers {0} unless
  // the root has children already). False: nothing more to ask.
  virtual bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) = 0;
  // The same where sessions that step together decide together (level_vote.h, row_vote.h): the frontier is what it would ask about. Then,
  // unless that is empty, whether it is asked about, what of the pass is for this session's sake, and the share of it that this is.
  virtual bool offer(const DraftTree& tree, std::vector<int32_t>* frontier, LevelOffer* offer) {
    *offer = {};
    if (!expand(tree, frontier)) return false;
    offer->rows = static_cast<int32_t>(frontier->size());
    return true;
  }
  virtual void decided(bool /*asks*/, double /*ms*/, double /*share*/) {}
  // What passes over so many rows of all of them take. 0: it does not ask.
  virtual double level_ms(int32_t /*rows*/) const { return 0; }
  virtual double verify_ms(int32_t /*rows*/) const { return 0; }
  // Likewise what it would have verified: what its nodes are worth in milliseconds, best first. False: it selects by itself.
  // Then how many of these are, for it to name as select() does, and what each of them adds to the pass.
  virtual bool offer_rows(const DraftTree&, std::vector<double>* /*worth*/) { return false; }
  virtual void rows_decided(int32_t /*nodes*/, double /*node_ms*/, std::vector<int32_t>* /*selected*/) {}
  // Nodes to verify, parents before children, at most limits.max_nodes. The root is not listed.
  virtual void select(const DraftTree& tree, std::vector<int32_t>* selected) = 0;
  // The tree's shape does not depend on the candidates' scores, and siblings are kept from rank 0 on
  // and in rank order, so the papers' sampled-draft rule is exact with it (chain, static).
  virtual bool draw_order() const = 0;
  // How many nodes of highest value this policy wants, wherever they are; 0: the nodes that `expand` names.
  // A drafter that has answered all levels at once is then expanded best-first, which costs no pass.
  virtual int32_t best_nodes() const { return 0; }
  // No node of it may be deeper.
  virtual int32_t best_depth() const { return kMaxTreeNodes; }
  // After begin(): this cycle's tree. False: expand() must be asked.
  virtual bool shape(TreeShape*) const { return false; }
  // A device draws that tree, with room for so many rows and levels: passes take as long as that, whatever is blank. expand() and
  // select() are asked all the same, afterwards.
  virtual void drawn_in(int32_t /*rows*/, int32_t /*levels*/) {}
  // Cost-aware policies: told after every begin(), and after every cycle.
  virtual bool wants_costs() const { return false; }
  virtual void costs(const CycleCosts&) {}
  virtual void outcome(const DraftTree&, const CycleOutcome&) {}
  // Taken over by other sessions of the same drafter, kind of policy and draft noise, later ones or at the same time: who
  // has taken it over learns together with whom it came from.
  virtual std::shared_ptr<const TreeExperience> experience() const { return nullptr; }
  virtual void take_over(const TreeExperience&) {}
  // All that later trees depend on, beside costs: numbers that go with a saved session. Empty: nothing does.
  virtual std::vector<double> memory() const { return {}; }
  // Go on from there. False, and nothing has changed: they are no such numbers.
  virtual bool recall(std::span<const double>) { return false; }
  // This cycle is plain decode by choice: the drafter need not be asked, nor be brought up to date yet.
  virtual bool resting() const { return false; }
  // For the choice between drafters (drafter_choice.h): what cycles with this one have come to, by how many tokens that may
  // well be wrong, and what one with this tree is expected to come to; it is being tried out; it shall be tried again;
  // `tokens` went by without it; the text went on with `tokens`, which `tree` had a guess at.
  virtual CycleRate lately() const { return {}; }
  virtual double doubt() const { return 0; }
  virtual CycleRate expected(const DraftTree&) { return {}; }
  virtual bool on_trial() const { return false; }
  virtual void wake() {}
  virtual void idle(double /*tokens*/) {}
  virtual void wasted(double /*ms*/) {}  // it was asked, and another one's tree was taken
  virtual void witness(const DraftTree&, std::span<const int32_t>) {}
};

struct Eagle2Options {
  int32_t total = 60;  // nodes with the root, as in EAGLE's scripts: 59 drafts are verified
  int32_t depth = -1;  // levels after the first; -1: 5, EAGLE's, but all that a one-pass drafter has
  int32_t top_k = 10;
};

// The path of best children; `length` is clamped to 1..127.
std::unique_ptr<TreePolicy> make_chain_policy(int32_t length);
// Paths of child ranks, e.g. {{0}, {1}, {0, 0}}; every prefix of a path must be listed. Verified
// by depth, within a depth as listed. A cycle with less room drops the last ones.
Result<std::unique_ptr<TreePolicy>> make_static_policy(std::vector<std::vector<int32_t>> paths);
std::unique_ptr<TreePolicy> make_eagle_static_policy();  // EAGLE's 25-node tree (EAGLE, Figure 9)
Result<std::unique_ptr<TreePolicy>> make_eagle2_policy(const Eagle2Options& options);

struct CastOptions {
  int32_t total = 72;  // m, with the root (CAST, appendix: batch 1)
  int32_t depth = 13;
  int32_t top_k = 12;
  double threshold = 3;  // C1 = C2 = C3
  // Each of the three parts alone can be left out (CAST, Table 3): all top_k nodes of a level are drafted from, all `depth`
  // levels are, all `total` nodes are verified.
  bool prune_breadth = true, prune_depth = true, rerank = true;
};
Result<std::unique_ptr<TreePolicy>> make_cast_policy(const CastOptions& options);

// The tree that gives the most tokens a second by what passes cost here and how often confidences came true; plain
// decode where drafting would lose (docs/policies.md).
std::unique_ptr<TreePolicy> make_auto_policy();

// FastEagle's constrained tree: the top k tokens of each of `levels` levels hang off the best node of the level
// before; the others stay leaves (FastEagle, section 2.2). levels * k drafted nodes (the paper counts 1 + (levels -
// 1) k); k = 1 is a chain. A cycle with less room drops the nodes that rank last.
Result<std::unique_ptr<TreePolicy>> make_backbone_policy(int32_t levels, int32_t k);

// A policy by name, as options and the command line give it; fields of other policies are ignored.
struct PolicySpec {
  std::string name = {};                         // "chain", "static", "eagle2", "backbone", "cast" or "auto"
  int32_t length = 5;                            // chain: drafted nodes (EAGLE's 5 draft passes)
  std::vector<std::vector<int32_t>> paths = {};  // static: empty means EAGLE's tree
  int32_t total = 60, depth = -1, top_k = 10;    // eagle2: see Eagle2Options
  int32_t levels = 7;                            // backbone, which also uses top_k
  CastOptions cast = {};
};
Result<std::unique_ptr<TreePolicy>> make_policy(const PolicySpec& spec);

}  // namespace aerie
