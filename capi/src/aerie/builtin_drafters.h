// Drafters inside the library itself: none in libaerie.so, which finds them beside it; those of the build in
// libaerie.a, for platforms where nothing can be loaded.
#pragma once

#include <span>

#include "aerie/drafter.h"

namespace aerie::capi {

struct BuiltinDrafter {
  const char* name;
  aerie_drafter_plugin_entry_fn entry;
};

std::span<const BuiltinDrafter> builtin_drafters();

}  // namespace aerie::capi
