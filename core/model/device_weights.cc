#include "core/model/device_weights.h"

#include "core/platform/file.h"

namespace aerie {

using kernels::Tensor;

DeviceWeights::DeviceWeights(std::shared_ptr<kernels::Device> device, std::shared_ptr<const Package> package)
    : device_(std::move(device)), package_(std::move(package)) {}

DeviceWeights::~DeviceWeights() {
  for (void* p : mapped_) device_->unmap_host(p);
  for (void* p : owned_) device_->release(p);
}

Result<Tensor> DeviceWeights::tensor(std::string_view name) {
  AERIE_ASSIGN(Tensor t, package_->tensor(name));
  const auto bring = [&](void*& p, int64_t bytes) -> Status {
    platform::will_need({static_cast<const uint8_t*>(p), static_cast<size_t>(bytes)});
    mapped_.reserve(mapped_.size() + 1);  // what may throw comes before what would be lost
    void* device = device_->map_host(p, static_cast<size_t>(bytes));
    if (!device) return device_->no_memory(package_->path() + ": " + std::string(name));
    mapped_.push_back(device);
    p = device;
    return {};
  };
  AERIE_TRY(bring(t.data, kernels::data_bytes(t.dtype, t.layout, t.rows, t.cols)));
  if (t.scales) AERIE_TRY(bring(t.scales, kernels::scale_bytes(t.dtype, t.rows, t.cols)));
  return t;
}

Result<Tensor> DeviceWeights::upload(std::span<const float> values) {
  owned_.reserve(owned_.size() + 1);
  void* memory = device_->allocate(values.size_bytes());
  if (!memory) return device_->no_memory(package_->path());
  owned_.push_back(memory);
  AERIE_ASSIGN(auto queue, device_->make_queue());
  const kernels::Op op = kernels::Upload{memory, values.data(), static_cast<int64_t>(values.size_bytes())};
  AERIE_TRY(queue->submit({&op, 1}));
  AERIE_ASSIGN(const auto state, queue->advance(kernels::kNoDeadline));
  (void)state;
  return kernels::matrix(memory, 1, static_cast<int64_t>(values.size()));
}

}  // namespace aerie
