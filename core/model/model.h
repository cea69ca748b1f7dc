// Model: a target's weights on a device, shared by its sessions, and its forward pass as ops.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/cost/cost_table.h"
#include "core/kv/prefix_index.h"
#include "core/model/decoder_stack.h"
#include "core/model/plan.h"
#include "core/model/rows.h"
#include "core/package/package.h"
#include "core/sampling/successors.h"

namespace aerie {

// A tap is the input of a layer, before its norm; the number of layers: the output of the last; or
constexpr int32_t kFinalFeature = -1;  // the hidden state after the final norm

struct ModelOptions {
  int64_t kv_positions = 0;  // 0: 4 x the context, from 4096 to 32768
  kernels::DType kv_dtype = kernels::DType::f32;
  bool keep_prefixes = true;  // pages of texts stay until their room is wanted
  // Long prompts are read by a library's products (cuda): the same text may come out otherwise for another cutting of
  // the prompt, or in other company. For the whole model, whose sessions share the rows of prompts.
  bool fast_prefill = false;
  // The budget is spent and nothing kept is left to drop. True: some of it may be free now. Called by the stepping
  // thread, which holds no lock.
  std::function<bool(int32_t positions_wanted)> kv_full;
};

// A low-rank stand-in for the LM head, lm_head ~ up * down: finds candidates to be scored exactly, verifies nothing.
struct CandidateHead {
  kernels::Tensor down;  // (rank, H)
  kernels::Tensor up;    // (V, rank)
  explicit operator bool() const { return static_cast<bool>(up); }
};

// Hidden states to keep of out.rows rows from `first` on: column block i of `out` receives taps[i].
struct TappedRows {
  std::span<const int32_t> taps;
  int32_t first = 0;
  kernels::Tensor out;  // (n, taps * H)
};

// Immutable after open; recording is thread-safe.
class Model {
 public:
  static Result<std::shared_ptr<Model>> open(std::shared_ptr<kernels::Device> device,
                                             std::shared_ptr<const Package> package, const ModelOptions& options);

  const LlamaConfig& config() const { return *package_->target(); }
  const Package& package() const { return *package_; }
  const std::shared_ptr<kernels::Device>& device() const { return device_; }
  const std::shared_ptr<KvPool>& pool() const { return pool_; }
  bool fast_prefill() const { return fast_prefill_; }
  PrefixIndex* prefixes() const { return prefixes_.get(); }  // null: nothing is kept
  Successors& successors() { return successors_; }  // of texts that have a form
  // What ModelOptions::kv_full says; false without one.
  bool make_room(int32_t positions_wanted) const { return kv_full_ && kv_full_(positions_wanted); }
  const kernels::Tensor& embedding() const { return embed_; }  // (V, H)
  const kernels::Tensor& lm_head() const { return lm_head_; }  // (V, H)
  const CandidateHead& candidate_head() const { return candidate_head_; }  // absent in most packages
  uint64_t vocab_hash() const { return vocab_hash_; }

  // Embedding, all layers, final norm: (n, H) scratch. kept: where recurrent layers' inputs of the first kept_rows rows lie from then on, in
  // scratch, for record_states(); null: they need not last.
  kernels::Tensor forward(Plan& plan, const Rows& rows, std::span<const TappedRows> tapped, std::vector<DeltaInputs>* kept = nullptr,
                         int64_t kept_rows = 0) const;
  // Some layers are recurrent: what they know of a text is where it has been read to, and goes no way back.
  bool recurrent() const { return stack_.delta.states != nullptr; }
  // The states behind rows of a pass that are kept, by what forward() left of it in `kept`.
  void record_states(Plan& plan, const KeptRows& rows, std::span<const DeltaInputs> kept) const {
    record_delta_states(plan, stack_.delta, rows, stack_.delta_convs, kept);
  }
  // The same with features (n, taps * H) of all rows; `features` may have no data.
  kernels::Tensor forward(Plan& plan, const Rows& rows, std::span<const int32_t> taps,
                          const kernels::Tensor& features) const;
  // Logits (hidden.rows, V) of rows after the final norm.
  kernels::Tensor logits(Plan& plan, const kernels::Tensor& hidden) const;
  // What passes of one sequence cost here: measured at the first call (within 1.4 seconds, most often much less), then
  // remembered. Null when there was no room, or one row takes longer: then a session's first pass tells. [any thread]
  std::shared_ptr<const CostGrid> quick_costs() const;
  // Costs for later sessions. Code::mismatch: measured with another model, machine or build. [any thread]
  Status use_costs(std::shared_ptr<const CostTable> table);
  std::shared_ptr<const CostGrid> costs() const;  // null: none attached

 private:
  Model(std::shared_ptr<kernels::Device> device, std::shared_ptr<const Package> package);
  Status load(const ModelOptions& options);

  std::shared_ptr<kernels::Device> device_;
  std::shared_ptr<const Package> package_;
  DeviceWeights weights_;
  std::shared_ptr<KvPool> pool_;
  std::unique_ptr<PrefixIndex> prefixes_;
  Successors successors_;
  std::function<bool(int32_t)> kv_full_;
  bool fast_prefill_ = false;
  DecoderStack stack_;
  kernels::Tensor embed_, norm_, lm_head_;
  CandidateHead candidate_head_;
  uint64_t vocab_hash_ = 0;
  mutable std::mutex cost_mutex_;
  mutable std::shared_ptr<const CostGrid> quick_;
  mutable bool quick_tried_ = false;
  std::shared_ptr<const CostTable> table_;
};

// Hash of vocabulary size, used ids and token bytes: equal hashes mean equal ids.
uint64_t vocabulary_hash(const Package& package);

}  // namespace aerie
