// Drafter: one opened drafter (plugin + weights) bound to a target. Shared by sessions.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aerie/drafter.h"
#include "core/drafter/plugin_library.h"
#include "core/model/model.h"

namespace aerie {

constexpr int32_t kMaxFedNodes = 256;   // nodes of one cycle a drafter may be fed, the root included
constexpr int32_t kMaxDraftRows = 128;  // rows in one observe or propose
constexpr int32_t kMaxStrikes = 3;      // failures until a drafter is out

using LogSink = std::function<void(int32_t level, const std::string& message)>;

struct DrafterConfigOptions {
  int32_t max_sequences = 8;
  LogSink log;
};

class Drafter {
 public:
  // `package` may be null for drafters that need none. Everything the plugin says is checked.
  static Result<std::shared_ptr<Drafter>> open(std::shared_ptr<Model> target, PluginKind kind,
                                               std::shared_ptr<const Package> package,
                                               const DrafterConfigOptions& options);
  ~Drafter();
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  const char* id() const { return kind_.desc.id; }
  bool wants_features() const { return kind_.desc.flags & AERIE_DRAFTER_FEATURES; }
  bool host_tokens() const { return kind_.desc.flags & AERIE_DRAFTER_HOST_TOKENS; }
  const aerie_drafter_needs& needs() const { return needs_; }
  std::vector<int32_t> taps() const { return {needs_.taps, needs_.taps + needs_.n_taps}; }
  const std::shared_ptr<Model>& target() const { return target_; }
  const std::shared_ptr<KvPool>& pool() const { return pool_; }  // null: keeps no KV

  // A failure of the plugin: told to the log; the third one quarantines the drafter for good.
  void strike(const Status& why);
  bool quarantined() const { return strikes_.load(std::memory_order_relaxed) >= kMaxStrikes; }

  // Run a plugin call: one at a time, exceptions stopped, overlong calls reported.
  Status call(const char* what, const std::function<int32_t(aerie_drafter&)>& fn);

  Result<int32_t> take_sequence();
  void give_back_sequence(int32_t seq);

 private:
  friend struct DrafterServices;
  Drafter(std::shared_ptr<Model> target, PluginKind kind, std::shared_ptr<const Package> package, LogSink log);
  Status start(const DrafterConfigOptions& options);

  std::shared_ptr<Model> target_;
  PluginKind kind_;
  LogSink log_;
  DeviceWeights weights_;  // of package_
  std::shared_ptr<const Package> package_;
  aerie_drafter_host host_{};
  aerie_drafter plugin_{};
  aerie_drafter_needs needs_{};
  std::shared_ptr<KvPool> pool_;
  std::shared_ptr<Model> submodel_;
  kernels::Tensor inv_freq_;
  int32_t kv_layers_ = 0;
  bool opening_ = false;
  std::vector<void*> tensors_;  // device memory made by tensor_create
  std::mutex call_mutex_;
  std::mutex sequence_mutex_;
  std::vector<int32_t> free_sequences_;
  std::atomic<int32_t> strikes_{0};
};

// What a propose call brought back, in host memory once its plan has run.
struct Candidates {
  int32_t rows = 0, levels = 0, width = 0;
  std::vector<int32_t> token;  // (rows * levels, width); -1: none
  std::vector<float> logp;     // likewise: log of the confidence
  bool want_logits = false;    // the sampled-draft rule needs the full distribution
  int32_t vocab = 0;           // columns of logits
  std::vector<float> logits;   // (rows * levels, vocab) in the drafter's vocabulary
  bool filled = false;
};

}  // namespace aerie
