// Needs a newer minor version than the host has.
#include "aerie/drafter.h"

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, AERIE_DRAFTER_ABI_MINOR + 1,
                                                   AERIE_DRAFTER_ABI_MINOR + 1, nullptr, nullptr};
  return &table;
}
