// HOST_TOKENS drafters, asked directly by a host as small as can be.
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "common.h"
#include "plugin.h"

namespace cli::plugin {

namespace {

constexpr int32_t kVocab = 1000, kSeqs = 3, kGuard = 512, kUntouched = -77;

void ignore_log(const aerie_drafter_host*, int32_t, const char*) {}
void* host_alloc(const aerie_drafter_host*, size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
void host_free(const aerie_drafter_host*, void* memory) { std::free(memory); }
const aerie_service_log kLog = {sizeof kLog, 0, ignore_log};
const aerie_service_alloc kAlloc = {sizeof kAlloc, 0, host_alloc, host_free};

const void* service(const aerie_drafter_host*, const char* id) {
  if (id && !std::strcmp(id, AERIE_SERVICE_LOG)) return &kLog;
  if (id && !std::strcmp(id, AERIE_SERVICE_ALLOC)) return &kAlloc;
  return nullptr;
}
const aerie_drafter_host kHost = {sizeof kHost, AERIE_DRAFTER_ABI_MAJOR, AERIE_DRAFTER_ABI_MINOR, 0, nullptr, service};

// The contract lets a drafter refuse services, or a target that it was not made for: this one is made up.
struct Refused : Failure {
  using Failure::Failure;
};
void expect_taken(const char* what, int32_t code, const aerie_drafter_error& e) {
  const std::string words = std::string(what) + ": " + std::string(e.message, strnlen(e.message, sizeof e.message));
  if (code == AERIE_D_UNSUPPORTED || code == AERIE_D_INVALID) throw Refused("it refuses a made-up target: " + words);
  if (code != AERIE_D_OK) throw Failure(words);
}

struct Proposal {
  std::vector<int32_t> token, parent;
  std::vector<float> confidence;
  bool operator==(const Proposal&) const = default;
};

struct Opened {
  aerie_drafter d{};
  aerie_drafter_needs needs{};
  size_t calls = 0, nodes = 0;

  Opened(const std::string& path, const std::string& id) {
    aerie_drafter_error e{};
    e.struct_size = sizeof e;
    d.struct_size = sizeof d;
    expect_taken("create", open_table(path)->create(&kHost, id.c_str(), &d, &e), e);
    if (!d.destroy || !d.open || !d.begin || !d.end || !d.propose_host) throw Failure("a function is missing");
    aerie_drafter_open_info info{};
    info.struct_size = sizeof info;
    info.max_seqs = kSeqs;
    info.max_nodes = info.max_rows = 128;
    info.hidden = 64;
    info.vocab = kVocab;
    info.target_fingerprint = "00";
    needs.struct_size = sizeof needs;
    expect_taken("open", d.open(d.self, &info, &needs, &e), e);
  }
  ~Opened() { d.destroy(d.self); }

  void begin(int32_t seq) {
    if (d.begin(d.self, seq) != AERIE_D_OK) throw Failure("begin failed");
  }

  // One question, its answer checked.
  Proposal ask(int32_t seq, const std::vector<int32_t>& text, int32_t n, int32_t capacity, int32_t width, int32_t depth) {
    aerie_host_context c{sizeof c, seq, text.data(), n, width, depth, 0};
    const auto room = static_cast<size_t>(capacity + kGuard);
    Proposal p{std::vector<int32_t>(room, kUntouched), std::vector<int32_t>(room, kUntouched), std::vector<float>(room, -77)};
    aerie_host_candidates out{sizeof out, capacity, 0, 0, p.token.data(), p.parent.data(), p.confidence.data()};
    if (d.propose_host(d.self, &c, &out) != AERIE_D_OK) throw Failure("propose_host failed");
    const std::string at = " (" + std::to_string(n) + " tokens of text, capacity " + std::to_string(capacity) + ")";
    for (size_t i = static_cast<size_t>(capacity); i < room; ++i)
      if (p.token[i] != kUntouched || p.parent[i] != kUntouched || p.confidence[i] != -77) throw Failure("it writes behind the capacity" + at);
    if (out.count < 0 || out.count > capacity) throw Failure("count is " + std::to_string(out.count) + at);
    for (int32_t i = 0; i < out.count; ++i) {
      const auto s = static_cast<size_t>(i);
      const std::string node = "node " + std::to_string(i) + ": ";
      if (p.parent[s] < -1 || p.parent[s] >= i) throw Failure(node + "parent " + std::to_string(p.parent[s]) + at);
      if (p.token[s] < 0 || p.token[s] >= kVocab) throw Failure(node + "token " + std::to_string(p.token[s]) + at);
      if (!(p.confidence[s] >= 0 && p.confidence[s] <= 1)) throw Failure(node + "confidence " + std::to_string(p.confidence[s]) + at);
    }
    ++calls;
    nodes += static_cast<size_t>(out.count);
    const auto count = static_cast<size_t>(out.count);
    p.token.resize(count), p.parent.resize(count), p.confidence.resize(count);
    return p;
  }
};

// Repeats itself, then does not, then does.
std::vector<int32_t> sample_text() {
  std::mt19937 random(7);
  std::vector<int32_t> t;
  for (int i = 0; i < 120; ++i) t.push_back(10 + i % 7);
  for (int i = 0; i < 120; ++i) t.push_back(static_cast<int32_t>(random() % kVocab));
  for (int i = 0; i < 160; ++i) t.push_back(i % 3 ? t[static_cast<size_t>(i) + 100] : static_cast<int32_t>(random() % 20));
  return t;
}

// A text as cycles commit it: several tokens at a time, and more of them where a proposal takes long.
void ask_along(Opened& o, const std::vector<int32_t>& text, int seconds) {
  const auto size = static_cast<int32_t>(text.size());
  const auto start = std::chrono::steady_clock::now();
  for (int32_t n = 1, slow = 1; n <= size; n += (1 + n % 5) * slow) {
    for (const int32_t capacity : {96, 5, 1}) o.ask(0, text, n, capacity, 1 + n % 4, 1 + n % 12);
    const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(o.calls);
    slow = 1 + static_cast<int32_t>(each * size / seconds);  // about as many proposals as tokens
  }
}

Finding try_proposals(const std::string& path, const std::string& id, int seconds) {
  Opened o(path, id);
  const std::vector<int32_t> text = sample_text();
  const auto size = static_cast<int32_t>(text.size());
  o.begin(0);
  ask_along(o, text, seconds);
  const Proposal before = o.ask(0, text, size, 96, 4, 8);
  // Rewound, gone on differently, rewound again: as if nothing had been.
  std::vector<int32_t> other(text.begin(), text.begin() + size / 2);
  for (int i = 0; i < 50; ++i) other.push_back(i % 4);
  const auto rewind = [&] {
    if (o.d.rollback && o.d.rollback(o.d.self, 0, size / 2) != AERIE_D_OK) throw Failure("rollback failed");
  };
  rewind();
  o.ask(0, other, static_cast<int32_t>(other.size()), 96, 4, 8);
  rewind();
  const Proposal after = o.ask(0, text, size, 96, 4, 8);
  // The same text in a fresh sequence, read at once, while the first one lives.
  o.begin(1);
  const Proposal fresh = o.ask(1, text, size, 96, 4, 8);
  o.d.end(o.d.self, 1);
  o.begin(1);  // again, empty
  o.ask(1, other, 1, 96, 4, 8);
  o.d.end(o.d.self, 1);
  o.d.end(o.d.self, 0);
  if (o.nodes == 0) return {Finding::note, "nothing proposed in a text that repeats itself"};
  if (before != after) return {Finding::note, "after a rewind it proposes something else than before"};
  if (after != fresh) return {Finding::note, "a fresh sequence proposes something else for the same text"};
  return {Finding::ok, std::to_string(o.nodes) + " nodes in " + std::to_string(o.calls) + " proposals"};
}

}  // namespace

Finding check_proposals(const std::string& path, const std::string& id, int seconds) try {
  return try_proposals(path, id, seconds);
} catch (const Refused& r) {
  return {Finding::skipped, r.what()};
}

}  // namespace cli::plugin
