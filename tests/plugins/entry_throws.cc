// A plugin whose entry point throws.
#include <stdexcept>

#include "aerie/drafter.h"

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) { throw std::runtime_error("not today"); }
