#include "capi/src/aerie/builtin_drafters.h"

namespace aerie::capi {

std::span<const BuiltinDrafter> builtin_drafters() { return {}; }

}  // namespace aerie::capi
