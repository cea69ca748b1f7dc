// Drafters that ask for rows beside the tree: an honest one that logs what it is told, and liars. Test only.
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "aerie/drafter.h"

namespace {

enum Kind { kExtra, kCount, kParent, kToken, kFails, kThrows, kChosenFails, kBadTable, kKinds };
const char* const kIds[kKinds] = {"extra", "extra_count", "extra_parent", "extra_token", "extra_fails", "extra_throws",
                                  "extra_chosen_fails", "extra_bad_table"};

struct Self {
  Kind kind;
  const aerie_drafter_host* host;
  const aerie_service_log* log;
  std::vector<int32_t> text, token, parent;
};
Self& of(void* s) { return *static_cast<Self*>(s); }

void destroy(void* s) { delete &of(s); }
int32_t open(void*, const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) { return AERIE_D_OK; }
int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}
int32_t propose_host(void* s, const aerie_host_context* c, aerie_host_candidates* out) {
  of(s).text.assign(c->tokens, c->tokens + c->n_tokens);
  out->count = 0;
  return AERIE_D_OK;
}

int32_t rows(void* s, int32_t, int32_t capacity, int32_t* token, int32_t* parent, int32_t* count) {
  Self& self = of(s);
  // Two paths below the root, of three rows and of one.
  self.token = {self.text.front(), self.text.back(), 7, 11};
  self.parent = {-1, 0, 1, -1};
  *count = static_cast<int32_t>(self.token.size());
  for (int i = 0; i < *count; ++i) {
    token[i] = self.token[static_cast<size_t>(i)];
    parent[i] = self.parent[static_cast<size_t>(i)];
  }
  switch (self.kind) {
    case kCount: *count = capacity + 1; break;
    case kParent: parent[1] = 1; break;
    case kToken: token[2] = 1 << 30; break;
    case kFails: return AERIE_D_FAILED;
    case kThrows: throw std::runtime_error("rows");
    default: break;
  }
  return AERIE_D_OK;
}

int32_t chosen(void* s, int32_t, int32_t n, const int32_t* choice) {
  Self& self = of(s);
  if (self.kind == kChosenFails) return AERIE_D_FAILED;
  for (int32_t i = 0; i < n; ++i) {
    std::vector<int32_t> path;
    for (int32_t a = i; a >= 0; a = self.parent[static_cast<size_t>(a)]) path.insert(path.begin(), self.token[static_cast<size_t>(a)]);
    std::string line;
    for (const int32_t t : self.text) line += std::to_string(t) + " ";
    for (const int32_t t : path) line += std::to_string(t) + " ";
    self.log->log(self.host, 3, (line + "-> " + std::to_string(choice[i])).c_str());
  }
  return AERIE_D_OK;
}

const void* get_extension(void* s, const char* id) {
  static const aerie_extension_extra_rows good = {sizeof good, 8, rows, chosen}, bad = {sizeof bad, 5000, rows, chosen};
  if (std::strcmp(id, AERIE_EXTENSION_EXTRA_ROWS)) return nullptr;
  return of(s).kind == kBadTable ? &bad : &good;
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i >= kKinds) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
  std::strcpy(out->id, kIds[i]);
  std::strcpy(out->title, "test");
  std::strcpy(out->version, "1");
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char* id, aerie_drafter* out, aerie_drafter_error*) {
  auto* self = new Self{kExtra, host, static_cast<const aerie_service_log*>(host->get_service(host, AERIE_SERVICE_LOG)), {}, {}, {}};
  for (int k = 0; k < kKinds; ++k)
    if (!std::strcmp(id, kIds[k])) self->kind = static_cast<Kind>(k);
  out->self = self;
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  out->propose_host = propose_host;
  out->get_extension = get_extension;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}
