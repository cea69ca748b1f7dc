// Drafters that lie in every way the host must survive, and one that guesses at random. Test only.
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "aerie/drafter.h"

namespace {

enum Kind { kRandom, kCount, kNegativeCount, kParent, kToken, kConfidence, kThrow, kFail, kDeviceShape, kDeviceSilent,
            kDeviceTwice, kDeviceRootLayer, kDeviceScaleless, kDeviceTable, kDeviceNoPlan, kDeviceThrow, kNoFunctions, kOpenFails,
            kRawWords, kHostCache, kSlow, kShort, kKinds };
const char* const kIds[kKinds] = {"random", "count", "negative_count", "parent", "token", "confidence", "throw", "fail",
                                  "device_shape", "device_silent", "device_twice", "device_root_layer", "device_scaleless", "device_table",
                                  "device_no_plan", "device_throw", "no_functions", "open_fails", "raw_words", "host_cache", "slow", "short"};

struct Self {
  Kind kind;
  const aerie_drafter_host* host;
  const aerie_service_compute* compute;
  aerie_kv* kv = nullptr;
  aerie_decoder_layer layer{};
  int32_t hidden = 0, vocab = 0;
  uint32_t state = 12345;
  uint32_t next() { return state = state * 1664525u + 1013904223u; }
};

bool is_device(int k) { return (k >= kDeviceShape && k <= kDeviceThrow) || k == kShort; }

void destroy(void* s) { delete static_cast<Self*>(s); }
int32_t open_cache(Self& self) {
  aerie_kv_desc desc{};
  desc.struct_size = sizeof desc;
  desc.layers = desc.kv_heads = 1;
  desc.head_dim = 2;
  desc.rope_theta = 10000;
  return self.compute->kv_create(self.host, &desc, &self.kv);
}
// A layer that is right in itself: of zeros, and one head.
int32_t open_layer(Self& self) {
  aerie_tensor zeros, norm;
  if (open_cache(self) ||
      self.compute->tensor_create(self.host, self.hidden + 16, self.hidden + 16, &zeros) ||
      self.compute->tensor_create(self.host, 1, self.hidden, &norm))
    return AERIE_D_NO_MEMORY;
  const auto weight = [&](int64_t rows, int64_t cols) {
    aerie_tensor w = zeros;
    w.rows = rows;
    w.cols = cols;
    w.layout = 1;
    return w;
  };
  aerie_decoder_layer& l = self.layer;
  l.struct_size = sizeof l;
  l.heads = l.kv_heads = 1;
  l.head_dim = 2;
  l.rms_eps = 1e-5f;
  l.qkv = weight(6, self.hidden);
  l.o = weight(self.hidden, 2);
  l.mlp_norm = norm;
  l.gate_up = weight(2, self.hidden);
  l.down = weight(self.hidden, 1);
  return AERIE_D_OK;
}

int32_t open(void* s, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* err) {
  Self& self = *static_cast<Self*>(s);
  self.hidden = info->hidden;
  self.vocab = info->vocab;
  needs->levels = 1;
  switch (self.kind) {
    case kDeviceRootLayer: return open_layer(self);
    case kHostCache: return open_cache(self);
    case kShort: return needs->n_taps = 1, needs->taps[0] = AERIE_FEATURE_FINAL, AERIE_D_OK;
    case kOpenFails: std::strcpy(err->message, "weights: not today"); return AERIE_D_FAILED;
    case kRawWords: std::strcpy(err->message, "no\x1b[2J\naerie: all is well \xff"); return AERIE_D_FAILED;
    default: return AERIE_D_OK;
  }
}
int32_t begin(void*, int32_t) { return AERIE_D_OK; }
void end(void*, int32_t) {}

int32_t propose_host(void* s, const aerie_host_context* c, aerie_host_candidates* out) {
  Self& self = *static_cast<Self*>(s);
  out->count = 4;
  for (int i = 0; i < 4; ++i) {
    out->token[i] = i;
    out->parent[i] = i - 1;
    out->confidence[i] = 0.5f;
  }
  switch (self.kind) {
    case kRandom:
      out->count = static_cast<int32_t>(self.next() % 100);
      for (int i = 0; i < out->count; ++i) {
        // Half of the guesses repeat the text, so that some come true.
        out->token[i] = (self.next() >> 16) % 2 ? c->tokens[(self.next() >> 8) % static_cast<uint32_t>(c->n_tokens)]
                                                : static_cast<int32_t>((self.next() >> 8) % static_cast<uint32_t>(self.vocab));
        out->parent[i] = static_cast<int32_t>((self.next() >> 8) % static_cast<uint32_t>(i + 1)) - 1;
        out->confidence[i] = static_cast<float>(self.next() >> 8) / 16777216.0f;
      }
      break;
    case kCount: out->count = 1 << 30; break;
    case kNegativeCount: out->count = -5; break;
    case kParent: out->parent[2] = 3; break;
    case kToken: out->token[1] = self.vocab + 7; break;
    case kConfidence: out->confidence[0] = NAN; break;
    case kThrow: throw std::runtime_error("plugin exception");
    case kSlow:
      static_cast<const aerie_service_log*>(self.host->get_service(self.host, AERIE_SERVICE_LOG))->log(self.host, 3, "asked");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      break;
    default: return AERIE_D_FAILED;
  }
  return AERIE_D_OK;
}

int32_t observe(void* s, aerie_plan*, const aerie_draft_rows*) {
  if (static_cast<Self*>(s)->kind == kDeviceThrow) throw 7;
  if (static_cast<Self*>(s)->kind == kShort) return AERIE_D_NO_MEMORY;
  return AERIE_D_OK;
}
int32_t propose(void* s, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* out) {
  const Self& self = *static_cast<Self*>(s);
  if (self.kind == kDeviceSilent) return AERIE_D_OK;
  aerie_tensor t;
  if (self.compute->scratch(plan, rows->n, self.hidden + (self.kind == kDeviceShape ? 3 : 0), &t)) return AERIE_D_NO_MEMORY;
  if (self.kind == kDeviceRootLayer) {
    aerie_tensor x;
    if (self.compute->scratch(plan, rows->n, self.hidden, &x)) return AERIE_D_NO_MEMORY;
    self.compute->decoder_layer(plan, &self.layer, self.kv, 0, rows, &x, &t);
  }
  if (self.kind == kDeviceScaleless || self.kind == kDeviceTable) {
    aerie_tensor table = t;
    table.rows = self.vocab;
    table.dtype = self.kind == kDeviceTable ? 99 : AERIE_DTYPE_INT8;
    table.layout = self.kind == kDeviceTable ? 0 : 1;
    table.scales = nullptr;
    self.compute->embed(plan, &table, &rows->token, &t);
  }
  if (self.kind == kDeviceNoPlan) {
    self.compute->propose_hidden(nullptr, &t, out);
    return self.compute->scratch(nullptr, 1, 1, &t);
  }
  self.compute->propose_hidden(plan, &t, out);
  if (self.kind == kDeviceTwice) self.compute->propose_hidden(plan, &t, out);
  return AERIE_D_OK;  // whatever the service said
}

int32_t describe(uint32_t i, aerie_drafter_desc* out) {
  if (i >= kKinds) return AERIE_D_INVALID;
  out->flags = AERIE_DRAFTER_NO_PACKAGE | (is_device(static_cast<int>(i)) ? 0u : static_cast<uint32_t>(AERIE_DRAFTER_HOST_TOKENS));
  if (i == kShort) out->flags |= AERIE_DRAFTER_FEATURES;
  std::strcpy(out->id, kIds[i]);
  return AERIE_D_OK;
}

int32_t create(const aerie_drafter_host* host, const char* id, aerie_drafter* out, aerie_drafter_error*) {
  auto* self = new Self;
  for (int k = 0; k < kKinds; ++k)
    if (!std::strcmp(id, kIds[k])) self->kind = static_cast<Kind>(k);
  self->host = host;
  self->compute = static_cast<const aerie_service_compute*>(host->get_service(host, AERIE_SERVICE_COMPUTE));
  if (host->get_service(host, "no.such.service/9") || host->get_service(host, nullptr)) return AERIE_D_FAILED;
  out->self = self;
  out->destroy = destroy;
  out->open = open;
  out->begin = begin;
  out->end = end;
  if (self->kind == kNoFunctions) return AERIE_D_OK;
  out->observe = observe;
  out->propose = propose;
  out->propose_host = propose_host;
  return AERIE_D_OK;
}

}  // namespace

extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {
  static const aerie_drafter_plugin_table table = {sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                   describe,     create};
  return &table;
}
