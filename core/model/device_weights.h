// A package's tensors where a device can read them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/package/package.h"
#include "kernels/device.h"

namespace aerie {

// Weights of a package on a device; give them back when the last user is gone.
class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<kernels::Device> device, std::shared_ptr<const Package> package);
  ~DeviceWeights();
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;
  Result<kernels::Tensor> tensor(std::string_view name);
  // A device copy of host floats.
  Result<kernels::Tensor> upload(std::span<const float> values);
  const Package& package() const { return *package_; }

 private:
  std::shared_ptr<kernels::Device> device_;
  std::shared_ptr<const Package> package_;
  std::vector<void*> mapped_, owned_;
};

}  // namespace aerie
