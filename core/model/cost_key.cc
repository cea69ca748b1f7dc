#include "core/model/cost_key.h"

#include <algorithm>
#include <set>

#include "core/platform/machine.h"

namespace aerie {

namespace {

const char* name_of(kernels::DType t) {
  switch (t) {
    case kernels::DType::f32: return "f32";
    case kernels::DType::bf16: return "bf16";
    case kernels::DType::int8: return "int8";
    case kernels::DType::int4: return "int4";
    case kernels::DType::i32: return "i32";
    case kernels::DType::fp8: return "fp8";
    case kernels::DType::q4_1: return "q4_1";
    case kernels::DType::mxfp4: return "mxfp4";
  }
  return "unknown";
}

}  // namespace

std::string weight_dtypes(const Package* package) {
  std::set<std::string> names;
  if (package)
    for (const TensorInfo& t : package->tensors())
      if (t.rows > 1 && t.dtype != kernels::DType::i32) names.insert(name_of(t.dtype));
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : "+") + n;
  return out;
}

CostKey cost_key(const Model& model) {
  const kernels::Device& device = *model.device();
  CostKey k;
  k.version = AERIE_VERSION_TEXT;
  const std::string chip = device.chip();
  k.device = std::string(device.name()) + " " + (chip.empty() ? platform::processor_name() : chip);
  k.isa = device.isa();
  k.isa.resize(std::min(k.isa.size(), k.isa.find(',')));  // chip and threads have fields of their own
  k.threads = device.threads();
  k.model = model.package().fingerprint();
  k.weights = weight_dtypes(&model.package());
  k.kv = name_of(model.pool()->cache().dtype);
  return k;
}

}  // namespace aerie
