// Rewrites the device addresses of an op to those of the backing memory.
#pragma once

#include "kernels/mock/address_map.h"
#include "kernels/ops.h"
#include "kernels/status.h"

namespace aerie::kernels::mock {

// Fails, naming op and field, when an address the device is to use is not device memory (or reaches
// past its end), or a host address is device memory.
Status translate(const AddressMap& map, Op* op);

}  // namespace aerie::kernels::mock
