// A device that shows what its passes were of.
#pragma once

#include "tests/support/wrapped_device.h"

namespace aerie::test {

// Of each pass, once it has run: the tokens of its rows, and the experts that the last layer's rows have taken.
struct SeenPass {
  std::vector<int32_t> tokens, experts;
};

class SeeingQueue final : public WrappedQueue {
 public:
  SeeingQueue(std::unique_ptr<kernels::Queue> inner, std::vector<SeenPass>& passes) : WrappedQueue(std::move(inner)), passes_(passes) {}
  Status submit(std::span<const kernels::Op> ops) override {
    ops_ = ops;
    return inner_->submit(ops);
  }
  Result<kernels::RunState> advance(kernels::Clock::time_point deadline) override {
    AERIE_ASSIGN(const kernels::RunState state, inner_->advance(deadline));
    if (state != kernels::RunState::done) return state;
    SeenPass pass;
    for (const kernels::Op& op : ops_) {
      if (const auto* e = std::get_if<kernels::Embed>(&op)) pass.tokens.assign(e->ids, e->ids + e->out.rows);
      if (const auto* r = std::get_if<kernels::Route>(&op)) pass.experts.assign(r->experts, r->experts + r->logits.rows * r->k);
    }
    if (!pass.tokens.empty()) passes_.push_back(std::move(pass));
    return state;
  }

 private:
  std::vector<SeenPass>& passes_;
  std::span<const kernels::Op> ops_;
};

class SeeingDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  std::vector<SeenPass> passes;

 private:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override {
    return std::make_unique<SeeingQueue>(std::move(inner), passes);
  }
};

}  // namespace aerie::test
