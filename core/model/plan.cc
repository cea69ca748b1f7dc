#include "core/model/plan.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace aerie {

namespace {
constexpr size_t kAlign = 64;
constexpr size_t kBlockBytes = size_t{1} << 20;
size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }
}  // namespace

Result<std::unique_ptr<Plan>> Plan::create(std::shared_ptr<kernels::Device> device, size_t index_bytes) {
  std::unique_ptr<Plan> plan(new Plan(std::move(device), index_bytes));
  plan->index_ = static_cast<char*>(plan->device_->allocate(plan->staging_.size()));
  if (!plan->index_) return plan->device_->no_memory("plan: row indices");
  return plan;
}

Plan::Plan(std::shared_ptr<kernels::Device> device, size_t index_bytes)
    : device_(std::move(device)), staging_(aligned(index_bytes)) {
  ops_.reserve(512);
  clear();
}

Plan::~Plan() {
  for (const Block& b : blocks_) device_->release(b.data);
  if (index_) device_->release(index_);
}

void Plan::clear() {
  clear_ops();
  block_ = used_ = 0;
}

void Plan::clear_ops() {
  ops_.clear();
  ops_.push_back(kernels::Upload{nullptr, nullptr, 0});  // filled in by submit
  staged_ = 0;
  status_ = {};
}

void Plan::add(kernels::Op op) { ops_.push_back(op); }

void Plan::begin_if(const int32_t* wanted) {
  if_ = ops_.size();
  add(kernels::RunIf{wanted, 0});
}

void Plan::end_if() { std::get<kernels::RunIf>(ops_[if_]).ops = static_cast<int32_t>(ops_.size() - if_ - 1); }

kernels::Tensor Plan::scratch(int64_t rows, int64_t cols) {
  const size_t bytes = aligned(static_cast<size_t>(rows) * static_cast<size_t>(cols) * 4);
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const size_t size = std::max(bytes, kBlockBytes);
    blocks_.reserve(blocks_.size() + 1);  // what may throw comes before what would be lost
    auto* data = static_cast<char*>(device_->allocate(size));
    if (!data) {
      fail(device_->no_memory("plan: " + std::to_string(size) + " bytes of scratch"));
      return {};
    }
    blocks_.push_back({data, size});
    used_ = 0;
  }
  char* data = blocks_[block_].data + used_;
  used_ += bytes;
  return kernels::matrix(data, rows, cols);
}

const void* Plan::stage_bytes(const void* data, size_t bytes) {
  if (staged_ + aligned(bytes) > staging_.size()) {
    fail(error(Code::limit, "plan: row indices exceed " + std::to_string(staging_.size()) + " bytes"));
    return index_;
  }
  if (bytes != 0) std::memcpy(staging_.data() + staged_, data, bytes);
  const char* at = index_ + staged_;
  staged_ += aligned(bytes);
  return at;
}

void Plan::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Status Plan::submit(kernels::Queue& queue) {
  AERIE_TRY(status_);
  ops_[0] = kernels::Upload{index_, staging_.data(), static_cast<int64_t>(staged_)};
  return queue.submit(ops_);
}

}  // namespace aerie
