// Built for another major version of the drafter ABI.
#include "aerie/drafter.h"

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR + 1, 0, 0, nullptr, nullptr};
  return &table;
}
