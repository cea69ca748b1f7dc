// For benches: one instruction set by its name, instead of the best one of the machine.
#pragma once

#include <cstdio>
#include <string_view>

#include "kernels/cpu/isa.h"

inline bool choose_isa(std::string_view name) {
  for (const aerie::kernels::Isa& isa : aerie::kernels::supported_isas()) {
    if (name != isa.name()) continue;
    set_isa(isa);
    return true;
  }
  std::fprintf(stderr, "this machine does not have %.*s; it has", static_cast<int>(name.size()), name.data());
  for (const aerie::kernels::Isa& isa : aerie::kernels::supported_isas()) std::fprintf(stderr, " %s", isa.name());
  std::fprintf(stderr, "\n");
  return false;
}
