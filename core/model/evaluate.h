// What a target computes for every token of a text, for training and analysis: sessions show only what they emit.
#pragma once

#include <functional>
#include <span>

#include "core/model/model.h"

namespace aerie {

struct EvaluateOptions {
  std::span<const int32_t> taps;  // see kFinalFeature
  float* features = nullptr;      // (n, taps * H); null: none
  float* logits = nullptr;        // (n, vocab_size); null: none
  std::function<bool(int64_t done)> keep_going;  // between passes; may be empty
};

// One text from its beginning, in passes over a few dozen rows; the rows are bit for bit those of a session. Takes KV
// for the text while it runs. Thread-safe.
Status evaluate(const Model& model, std::span<const int32_t> tokens, const EvaluateOptions& options);

}  // namespace aerie
