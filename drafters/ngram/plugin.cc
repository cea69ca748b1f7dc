// The plugin's door.
#include <cstring>

#include "ngram.h"

namespace {

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i > 1) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
  std::strcpy(out->id, i == 0 ? "ngram" : "ngram-suffix");
  std::strcpy(out->title, i == 0 ? "Prompt lookup (PLD)" : "Suffix automaton over the text");
  std::strcpy(out->version, "0.1.0");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host*, const char* id, aerie_drafter* out, aerie_drafter_error*) {
  return std::strcmp(id, "ngram-suffix") ? ngram::create_lookup(out) : ngram::create_suffix(out);
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}
