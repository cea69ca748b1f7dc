// Session: one text. A cycle (observe, draft, verify, commit) is a state machine over passes, so a step
// can stop between slices of an op and go on at the next call. The session says what it wants of the next pass, records
// its rows into a plan that may be shared, and takes its results; a Stepper runs the passes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/cost/live_cost.h"
#include "core/model/model.h"
#include "core/policy/drafter_choice.h"
#include "core/policy/tree_policy.h"
#include "core/tree/level_product.h"
#include "core/sampling/distribution.h"
#include "core/sampling/logit_rules.h"
#include "core/session/device_draft.h"
#include "core/session/draft_calls.h"
#include "core/session/draft_side.h"
#include "core/session/fork_streams.h"
#include "core/session/snapshot.h"
#include "core/session/stepper.h"
#include "core/session/stop_scanner.h"
#include "core/verify/multi_round.h"

namespace aerie {

struct SessionOptions {
  int64_t max_context = 0;  // 0: the model's
  std::shared_ptr<Drafter> drafter;
  std::vector<std::shared_ptr<Drafter>> more_drafters;  // `auto` chooses between all of them, cycle by cycle
  kernels::Sampling sampling;
  LogitOptions logits;
  PolicySpec tree{"eagle2"};
  std::function<std::unique_ptr<TreePolicy>()> policy;  // one that has no name (benchmarks); null: `tree`'s
  // Milliseconds that a pass over so many rows is taken to cost, the target's or a drafter's (tests, which no other machine
  // and no load shall decide); null: what it is measured to.
  std::function<double(const Drafter* drafter, int32_t rows)> pass_ms;
  std::chrono::milliseconds measure_drafts{200};  // for all drafters, where nothing says what their passes cost; beside the target's 700
  bool shared_noise = true;
  bool sampled_rule = false;
  std::optional<bool> drafts_on_device;  // trees that candidates alone decide; unset: on a device that it is far to
  bool foresight = true;  // what a constraint forces is not left to the drafter
  bool ignore_eos = false;
  std::vector<int32_t> stop_tokens;
};

struct EmittedToken {
  int32_t id;
  float logprob;
  bool drafted;
};

enum class StepState { pending, tokens, done };
enum class Finish { none, eos, stop_token, stop_string, context, constraint };

struct StepResult {
  StepState state = StepState::pending;
  std::span<const EmittedToken> tokens;  // until the next call
  Finish finish = Finish::none;
  int32_t stop_bytes = 0;
};

struct SessionStatistics {
  uint64_t emitted = 0, cycles = 0, full_cycles = 0, full_emitted = 0;
  uint64_t proposed = 0, verified = 0, accepted = 0, drafter_failures = 0;
  uint64_t foreseen_verified = 0, foreseen_accepted = 0;  // of these, by nobody but the constraint
  uint64_t prefill_ns = 0, draft_ns = 0, verify_ns = 0, other_ns = 0;
  uint64_t prefill_tokens = 0, draft_passes = 0, reused_tokens = 0;
  // By depth d of the node walked to: cycles that had children to try there, and those that took one.
  uint64_t tried[16] = {}, taken[16] = {};
  // auto: which drafter had the last cycle (-1: none, plain decode), what of its tree was verified; cycles of each one,
  // the last place counting all further ones; cycles without.
  int32_t chosen_drafter = -1, chosen_nodes = 0, chosen_depth = 0;
  uint64_t chosen_cycles[8] = {}, plain_cycles = 0;
};

class Batch;

// One thread at a time, except request_cancel and clear_cancel.
class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Model> model, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A second session with the same text, settings and drafter, in no batch; stream 0: one of its own. Statistics start
  // anew. An unfinished cycle is discarded.
  Result<std::unique_ptr<Session>> fork(uint32_t stream);

  Status append(std::span<const int32_t> tokens);
  Status rewind(size_t length);
  Status set_sampling(const kernels::Sampling& sampling, const LogitOptions& logits = {});
  Status set_tree(PolicySpec tree);
  void set_stop_strings(std::vector<std::string> strings, StopScanner::TokenBytes bytes);
  Status set_constraint(std::shared_ptr<const Constraint> constraint);  // null: none
  // max_tokens 0: whatever one cycle gives. budget zero: no limit. Busy while it is in a batch.
  Status step(int32_t max_tokens, std::chrono::microseconds budget, StepResult* out);
  // *size: bytes it takes. Nothing is written to an empty `out`. An unfinished cycle is discarded.
  Status save(std::span<uint8_t> out, size_t* size);
  // As create(), with the text, keys and values that were saved, and what the drafter knew if it is the same one.
  static Result<std::unique_ptr<Session>> restore(std::shared_ptr<Model> model, SessionOptions options,
                                                  std::span<const uint8_t> bytes);
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }  // [any thread]
  void clear_cancel() { cancel_.store(false, std::memory_order_relaxed); }   // [any thread]

  const std::vector<int32_t>& tokens() const { return text_; }
  const SessionStatistics& statistics() const { return stats_; }
  bool sampled_rule() const { return options_.sampled_rule; }
  bool quarantined() const;  // one of its drafters is
  int64_t max_context() const { return max_context_; }
  const std::shared_ptr<Model>& model() const { return model_; }
  // Its host is asked for KV memory on its behalf.
  bool asks_for_room() const { return asks_for_room_; }
  // Of the last step, its own or its batch's.
  const Status& status() const { return status_; }
  StepResult result() const;

 private:
  friend class Stepper;
  friend class Batch;
  struct Foreseen {
    int32_t token;
    float value;  // how likely it comes, with all before it
  };
  enum class Phase { idle, prefill, draft, verify };  // what the next pass, or the one in flight, does for it

  Session(std::shared_ptr<Model> model, SessionOptions options);
  static Result<std::unique_ptr<Session>> make(std::shared_ptr<Model> model, SessionOptions options);  // no drafter has begun
  Status start();
  Status check_sampling(const kernels::Sampling& s, const LogitOptions& logits) const;
  Status check_tree(const TreePolicy& policy) const;

  // session.cc: the machine, as a Stepper drives it
  void begin_step(int32_t max_tokens);
  bool active() const { return status_.ok() && finish_ == Finish::none; }
  bool has_read() const { return kv_len_ + 1 == static_cast<int64_t>(text_.size()); }
  bool said() const { return !emitted_.empty() || (finish_ != Finish::none && !ended_before_); }
  // The step cannot end well for it: neither what it was asked for nor a reason is there yet.
  bool in_doubt() const { return status_.ok() && (phase_ != Phase::idle || (active() && emitted_.empty())); }
  bool take_cancel();
  Status begin(bool any_rows);        // from idle: what the next pass is for; the target's may have as many rows as it likes
  void in_flight(Stepper* stepper);
  void landed() { flight_ = nullptr; }
  int32_t pass_rows() const;          // this session's part of the pass
  Status finish_pass(const Walks& walks, RowsBuilder* pass, std::vector<int32_t>* copy_src, std::vector<int32_t>* copy_dst);
  void go_back(int64_t position);  // that many positions have been read, or fewer where recurrent layers cannot go back to them
  void count_time(uint64_t ns);
  // What drafters on the host have taken since it was last asked for; and, of all that step together, it is counted for each.
  uint64_t take_proposing() { return std::exchange(proposing_ns_, 0); }
  void count_proposing(uint64_t ns);
  // What a failure ends in works without memory: another one would leave the state in between.
  void give_up(const Status& why) noexcept;  // this step failed; the cycle is lost, what was committed stays
  void discard() noexcept;                   // the unfinished cycle, never a committed token
  void rescan_stops();                       // if they have seen what was not committed, or not all that was
  void stage_rows(Plan& plan, RowsBuilder* rows, Walks* walks, std::vector<TappedRows>* tapped);
  void pass_without(const Drafter& drafter, const Status& why, bool strike);
  DraftSide* side_of(const Drafter& drafter) const;
  // fork.cc
  Status take_drafts_of(const Session& other);
  // prefix.cc
  std::span<const DraftRows> draft_rows();
  void keep_prefix();
  void take_prefix();
  void leave_prefix();
  // prefill.cc
  Status reserve(int64_t positions);
  bool ask_for_room();  // of the model's host, which must leave this session alone meanwhile
  Status start_prefill();
  int64_t state_kept_at() const;
  void stage_prefill(Plan& plan, RowsBuilder* rows, std::vector<TappedRows>* tapped);
  Status add_read(Plan& plan, DraftCalls* calls, Drafter** failed);  // show drafters what the pass reads
  void finish_prefill();
  // draft.cc
  bool drafter_usable() const { return side_ && side_->usable(); }
  // Drafters that are kept up with the text: only `auto` has a use for more than the first.
  std::span<const std::unique_ptr<DraftSide>> followed() const;
  // strike: it is a failure of its own, not one that other sessions saw too.
  void drafter_failed(DraftSide& side, const Status& why, bool lost_sync, bool strike = true) noexcept;
  void drafter_failed(const Status& why, bool lost_sync) noexcept { drafter_failed(*side_, why, lost_sync); }
  void drop_draft();
  bool align_drafters();             // make the next pass bring what a drafter misses
  Status start_cycle(bool any_rows);
  Status next_draft_level();
  Status end_draft();
  DraftDraw draft_draw() const;
  Status add_draft(Plan& plan, DraftCalls* calls);
  Status draft_failed(const Status& why, bool lost_sync, bool strike);
  Status finish_draft();
  bool one_pass() const { return side_->one_pass(); }
  void count_proposed(int32_t nodes) { stats_.proposed += static_cast<uint64_t>(nodes); }
  Status take_candidates();
  int32_t asked_width() const;
  void find_allowed(std::span<const int32_t> tokens, size_t most);
  void drop_forbidden(int32_t parent);
  std::span<const float> target_logits(const Candidates& c, size_t row);
  int32_t most_levels() const;
  void take_best(std::span<const int32_t> token, std::span<const float> logp);
  // device_cycle.cc
  bool begin_device_draft();
  bool begin_drawing_ahead();
  Status take_drawn_ahead();
  Status ask_on_device(Plan& plan, DraftCalls* calls, int32_t level);
  void expand_on_device(Plan& plan, int32_t level, int32_t* wanted);
  int32_t passes_on_device() const;   // of the plan in flight, or that is recorded
  int32_t drafted_on_device() const;  // that has run
  void count_device_drafts(const PassClock& clock, std::span<const int32_t> rows);
  void stage_blank_tree(RowsBuilder* rows, Walks* walks);
  void select_on_device(Plan& plan, const RowsBuilder& builder, const Rows& rows, const StagedWalks& walks);
  void take_device_draft();
  Status ask_again(int32_t* proposed);
  int32_t deepest() const;            // of the nodes that the pass verifies
  // row_budget.cc
  int32_t fixed_rows() const;
  void offer_nodes(std::vector<RankedNode>* nodes) const;
  void keep_nodes(std::span<const RankedNode> nodes);
  void read_at_most(int32_t rows);
  // batch_vote.cc: the level that it would ask its drafter for, in phase draft; null: nothing is to be decided
  const LevelOffer* level_offer() const { return phase_ == Phase::draft && !device_.on() && !offer_decided_ ? &offer_ : nullptr; }
  bool shares_level(const Session& other) const;
  Status level_decided(bool asks, double ms, double share);
  bool offers_rows();
  Status rows_decided(double node_ms);
  bool drafts_or_verifies() const;
  int32_t certain_rows() const;
  std::span<const double> worth_of_nodes() const;  // drafted, in milliseconds; what is decided about them is none of these
  // costs.cc: what cost-aware policies are told
  void measure_drafters() const;      // where no table says what their passes cost
  PassCost told_cost(const Drafter* drafter) const;  // by options_.pass_ms
  void prepare_costs();               // from that, from what the last session saw, tables or quick measurements, if the policy wants costs
  void start_target_cost();
  void start_draft_costs(DraftSide* side) const;
  std::string draft_kind() const;
  void share_experience();
  void guess_drafts();
  double catch_up_ms(const DraftSide& side) const;
  const double* in_batch(const PassCost::Curve& alone, PassCost::Curve* curve) const;
  const double* in_batch(LiveCost& cost, PassCost::Curve* curve, const double** of_all) const;
  void tell_costs(DraftSide* side, TreePolicy& policy);
  double proposal_ms(const DraftSide& side) const;
  double share_of_verifying(double ms, int32_t rows) const;
  // `rows`: of all sessions in it.
  void pass_done(double ms, int32_t rows);
  void draft_pass_done(double ms, int32_t own_rows, int32_t rows, bool root);
  void tell_outcome();
  // save.cc
  struct SavedState {
    int32_t number;     // -1: there is none
    int64_t positions;  // that have been read by then
  };
  SavedState saved_state() const;
  Snapshot describe(std::vector<const DraftSide*>* saved, const SavedState& state) const;  // all but what is on the device, of these drafters
  Status take_over(const Snapshot& s);
  void take_over_end(const Snapshot& s);
  Status take_over_memory(const Snapshot& s);
  void download_drafter(const DraftSide& side, const SavedDrafter& d, const SnapshotRooms::Draft& room,
                        std::vector<kernels::Op>* ops) const;
  void resume_drafter(DraftSide& side, const Snapshot& s, std::vector<kernels::Op>* ops);
  // choose.cc: who drafts
  Status open_sides();
  Status make_policies(const PolicySpec& tree, std::vector<std::unique_ptr<TreePolicy>>* policies) const;
  void use_policies(std::vector<std::unique_ptr<TreePolicy>>* policies) noexcept;  // gives back those of before
  CycleLimits limits_with(const DraftSide* side, int32_t max_depth) const;
  void choose(int32_t max_depth);
  void peek(DraftSide& side);
  void draft_with(DraftSide* side);
  void count_choice();
  void tell_others();
  // verify.cc
  Status reserve_tree();
  Status start_verify();
  Status build_rows();
  // Show drafters what they have not seen. *failed: which one would not have it.
  Status add_missed(Plan& plan, DraftCalls* calls, Drafter** failed);
  void stage_verify(RowsBuilder* rows, Walks* walks, std::vector<TappedRows>* tapped);
  void record_download(Plan& plan, const kernels::Tensor& logits);
  Status finish_verify(const Walks& walks, RowsBuilder* pass, std::vector<int32_t>* copy_src, std::vector<int32_t>* copy_dst);
  bool walks_on_host() const { return options_.sampled_rule || rules_.active(); }
  std::span<const float> target_row(int32_t row) const;
  Status not_finite() const;
  Status walk_result(const Walks& walks);
  void ask_extra_rows();
  void stage_extra_rows(RowsBuilder* rows, Walks* walks);
  void tell_choices(const Walks& walks);
  Status sampled_result();
  // walk_rules.cc
  Status ruled_result();
  // foresee.cc: what a constraint leaves no choice about, or as good as none
  bool foresees() const { return rules_.constrained() && !options_.sampled_rule && options_.foresight; }
  Foreseen likely_next(LogitRules::Scout* scout, int32_t last, int32_t forced) const;
  void foresee(int32_t row, std::vector<Foreseen>* out);
  bool enough_is_foreseen();
  void put_foreseen_first();
  void add_foreseen_rows();
  float value_of(int32_t row) const;
  size_t steps_drafted() const;  // of the walk: those at nodes of the tree
  void count_foreseen();
  void learn_successors();
  bool ends_walk(int32_t token);
  Status look_ahead();
  void look_behind();
  Finish finish_of(int32_t token) const;
  size_t most_emitted() const;
  void truncate();
  void count_cycle();
  void commit();

  std::shared_ptr<Model> model_;
  SessionOptions options_;
  int64_t max_context_ = 0;
  KvSequence kv_;
  int32_t wanted_ = 0;
  bool asks_for_room_ = false;
  PrefixPlace place_;  // of text_ in the model's index
  bool from_image_ = false;  // its rows may be any other text's, whoever wrote the image: no other session gets them
  std::vector<DraftRows> draft_rows_;
  std::shared_ptr<ForkStreams> streams_;  // null: never forked
  std::unique_ptr<Stepper> own_;  // steps this session when it is in no batch
  const std::vector<Session*> alone_{this};
  Batch* batch_ = nullptr;
  std::vector<std::unique_ptr<DraftSide>> sides_;
  bool choosing_ = false;           // between several, cycle by cycle
  DraftSide* side_ = nullptr;       // who drafts in this cycle, or would; null: there is no drafter
  TreePolicy* policy_ = nullptr;    // its
  std::unique_ptr<TreePolicy> no_drafter_policy_;
  DrafterChoice chooser_;
  std::vector<DrafterOption> choice_options_;
  bool plain_ = false;              // this cycle is plain decode by choice
  bool weighs_ = true;              // costs are told, and measured, in this cycle
  uint32_t rested_ = 0;             // cycles at rest
  bool behind_drafts_ = false;      // a drafter's pass was among the last ones
  LogitRules rules_;
  StopScanner stops_;
  bool stops_stale_ = false;        // they are to be shown what was generated once more

  // The text. Positions [0, kv_len_) have keys and values; the newest token (the root) never has.
  std::vector<int32_t> text_;
  int64_t kv_len_ = 0;
  size_t generated_from_ = 0;  // first token of this run of generation (stop strings look no further back)
  Finish finish_ = Finish::none;
  int32_t stop_bytes_ = 0;

  // The running step.
  Status status_;
  bool ended_before_ = false;
  int32_t max_tokens_ = 0;
  uint64_t in_passes_ = 0, proposing_ns_ = 0;  // ns
  Stepper* flight_ = nullptr;  // whose pass has rows of this session
  Phase flown_ = Phase::idle;  // what that pass does for it

  // The running cycle.
  Phase phase_ = Phase::idle;
  bool recorded_ = false;  // rows of this phase may have reached the device
  int64_t prefill_end_ = 0;  // what the pass in flight will have done
  int32_t first_row_ = 0, walk_ = 0, extra_walk_ = 0;  // its rows in the pass, its walks
  bool branches_ = false;      // there are more than the root among them: the pass leaves no state
  DraftTree tree_;
  TreeRows rows_;
  bool drafts_on_device_ = false;
  DeviceDraft device_;  // on: tree_ and rows_ have nothing but the root until the pass has run
  DrawnTree drawn_;
  MultiRound multi_round_;
  Distribution distribution_;
  std::vector<int32_t> frontier_, selected_, tail_, children_, path_;
  std::vector<size_t> allowed_;  // of children_
  std::vector<Foreseen> foreseen_;  // behind the text, or a row
  std::vector<int32_t> forced_;
  std::vector<char> few_;        // by step: a constraint had left it little choice
  bool all_foreseen_ = false;    // so much is that no drafter is asked
  double usual_ = 3;             // tokens that a drafted cycle brings lately, but for those that were foreseen
  LevelOffer offer_;
  bool offer_decided_ = false, rows_decided_ = false;
  std::vector<double> row_worth_;  // of the nodes that the batch decides about
  int32_t rows_taken_ = 0;         // of them
  std::vector<char> kept_;
  int32_t max_emit_ = 0, max_depth_ = 0, asked_levels_ = 0;
  bool cut_ = false;  // the walk went further than what is kept of it
  bool walked_ = false;  // rules know what is behind its last token
  LevelProduct product_;
  std::vector<LevelList> level_lists_;
  // Rows beside the tree (drafter extension extra_rows): token, parent (-1 root), depth.
  bool host_proposed_ = false;  // propose_host was called in this cycle, and went well
  std::vector<int32_t> extra_token_, extra_parent_, extra_depth_, choice_;
  const float* logits_ = nullptr;  // of walks on the host: (rows, V), while the results of a pass are taken
  std::vector<float> read_back_;   // they, where the host cannot read the device's memory
  std::vector<double> law_;
  std::vector<float> confidence_, best_, wide_logits_;
  std::vector<kernels::WalkStep> steps_;
  std::vector<SampledStep> sampled_steps_;

  // Costs of passes, and the time of the running cycle.
  LiveCost target_cost_;
  PassCost::Curve target_curve_{};
  bool by_itself_ = true;  // stepped in no company
  int32_t beside_ = 1;  // sessions that verify in this cycle's pass, this one included
  double cycle_ms_ = 0, plain_ms_ = 0;  // plain_ms_: expected of a pass over the root alone

  std::vector<EmittedToken> emitted_;
  SessionStatistics stats_;
  std::atomic<bool> cancel_{false};
};

constexpr int32_t kPrefillRows = 64, kMostPrefillRows = 256;
// Where prompts may be read fast: so many that weights pay for being unpacked; and fewer than that are read as ever.
constexpr int32_t kFastPrefillRows = 512, kLeastFastRows = 128;
// Rows of a prompt of so many positions that a session reads in one pass. In company nobody is to wait for more than kPrefillRows.
// Alone, with experts a row takes some of the weights: it is so many rows that an expert meets about as many of them as a whole
// MLP would, as far as working memory goes, Attention's being that of rows times spans.
int32_t prefill_rows(const Model& model, int64_t positions, bool alone = true);

}  // namespace aerie
