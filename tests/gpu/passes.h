// A target's pass and a drafter's level as plans of the ops that sessions record, over random weights.
#pragma once

#include "tests/gpu/bench_support.h"

namespace aerie::gpu_bench {

// What rows of a pass work in and look at: `context` committed positions, and each row its own slot behind them.
class Working {
 public:
  static constexpr int64_t kRows = 128;
  Working(Bench& b, const Shape& s, int64_t layers, int32_t context);

  struct Layer {
    Tensor qkv, o, gate_up, down;
    Layer(Bench& b, const Shape& s, DType t);
  };
  void angles(std::vector<Op>& plan, int64_t rows) const;
  void layer(std::vector<Op>& plan, const Layer& w, int32_t index, int64_t rows) const;
  Tensor hidden(std::vector<Op>& plan, int64_t rows) const;  // after the last norm

  Tensor x, normed;
  const int32_t* position;

 private:
  Shape shape_;
  KvCache cache_;
  AttentionRows look_;
  Tensor attn_, qkv_, gate_up_, act_, angles_, norm_, frequencies_;
  const int32_t* slots_;
};

// A whole target: embedding left out, walk and download of its outcome included.
class TargetPass {
 public:
  TargetPass(Bench& b, const Shape& s, DType t, int32_t context);
  std::vector<Op> plan(int64_t rows);
  // Kind by kind, one op of it from every layer: what each costs.
  std::vector<std::pair<std::string, std::vector<Op>>> parts(int64_t rows) const;
  // One of its matrices over many rows, as prefill has them.
  std::vector<Op> widest(Bench& b, int64_t rows, bool fast) const;

 private:
  Shape shape_;
  std::vector<Working::Layer> layers_;
  Tensor head_;
  Working working_;
  Tensor logits_;
  const int32_t* none_;
  const WalkSeq* seqs_;
  void* out_;
  std::vector<char> result_;
};

// One level of an EAGLE drafter: fc, one layer, the whole LM head and its ten best.
class EagleLevel {
 public:
  EagleLevel(Bench& b, const Shape& s, DType t, int32_t context);
  std::vector<Op> plan(int64_t rows);
  // Of a plan's ops the first.
  static constexpr const char* kOps[] = {"angles", "fc",          "norm",     "qkv",  "rope and store", "attention", "o",
                                         "norm",   "gate and up", "activate", "down", "norm",           "head",      "merge"};

 private:
  static constexpr int32_t kBest = 10;
  Shape shape_;
  Tensor fc_, head_;
  Working::Layer layer_;
  Working working_;
  Tensor input_, partial_, token_, logp_;
  std::vector<char> result_;
};

}  // namespace aerie::gpu_bench
