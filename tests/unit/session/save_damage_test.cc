// Saved sessions that are damaged, hostile or of somewhere else: one clear error, nothing leaked.
#include <cstring>

#include "tests/unit/session/save_support.h"

namespace aerie::test {
namespace {

class SaveDamage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "damage-target", kernels::DType::int8));
    eagle_ = new std::string(converted(golden("eagle_mha"), "damage-eagle", kernels::DType::bf16, *target_));
  }
  static std::string *target_, *eagle_;

  void SetUp() override {
    model_ = open_model(*target_, cpu(1));
    drafter_ = open_drafter(model_, "eagle", *eagle_);
    auto session = must(Session::create(model_, options()));
    must(session->append(std::vector<int32_t>(kSavedPrompt.begin(), kSavedPrompt.begin() + 6)));
    Cycles got;
    run_cycles(*session, 2, &got);
    bytes_ = saved(*session);
    session.reset();
    free_ = model_->pool()->free_positions();
  }
  SessionOptions options() const { return options_for(drafter_, "chain", 0.8f); }

  void expect_refused(const Bytes& bytes, Code code, const std::string& field) {
    const auto s = Session::restore(model_, options(), bytes);
    ASSERT_FALSE(s.ok()) << field;
    EXPECT_EQ(s.status().code(), code) << s.status().message();
    EXPECT_NE(s.status().message().find(field), std::string::npos) << s.status().message();
    EXPECT_EQ(model_->pool()->free_positions(), free_) << field;
  }
  // A saved session with one thing changed, checksum and all.
  Bytes with(const std::function<void(Snapshot&)>& change) const {
    Snapshot s = must(decode_snapshot(bytes_));
    const SavedKv kv = s.kv;
    const SavedDrafter d = s.drafters.at(0);
    change(s);
    Bytes out(encoded_size(s));
    const SnapshotRooms rooms = encode_snapshot(s, out);
    std::memcpy(rooms.kv, kv.data, static_cast<size_t>(std::min(kv.bytes(), s.kv.bytes())));
    if (!s.drafters.empty()) {
      const SavedDrafter& changed = s.drafters[0];
      std::memcpy(rooms.drafters[0].kv, d.kv.data, static_cast<size_t>(std::min(d.kv.bytes(), changed.kv.bytes())));
      std::memcpy(rooms.drafters[0].features, d.features,
                  static_cast<size_t>(std::min(d.feature_bytes(), changed.feature_bytes())));
    }
    seal_snapshot(out);
    return out;
  }

  // The same with every key and value replaced by bytes.
  static Bytes filled(Bytes b, const std::function<const SavedKv&(const Snapshot&)>& which, uint8_t byte) {
    const Snapshot s = must(decode_snapshot(b));
    const SavedKv& kv = which(s);
    EXPECT_GT(kv.bytes(), 0);
    std::memset(b.data() + (kv.data - b.data()), byte, static_cast<size_t>(kv.bytes()));
    seal_snapshot(b);
    return b;
  }

  std::shared_ptr<Model> model_;
  std::shared_ptr<Drafter> drafter_;
  Bytes bytes_;
  int64_t free_ = 0;
};
std::string *SaveDamage::target_, *SaveDamage::eagle_;

TEST_F(SaveDamage, ItIsWhatItWas) {
  EXPECT_EQ(with([](Snapshot&) {}), bytes_);
  auto restored = must(Session::restore(model_, options(), bytes_));
  EXPECT_EQ(saved(*restored), bytes_);
}

TEST_F(SaveDamage, EveryTruncation) {
  for (size_t n = 0; n < bytes_.size(); n += n < 2000 ? 1 : 997)
    expect_refused(Bytes(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(n)), Code::bad_format,
                   n < 8 ? "magic" : n < 12 ? "format version" : "length");
  Bytes longer = bytes_;
  longer.push_back(0);
  expect_refused(longer, Code::bad_format, "length");
}

TEST_F(SaveDamage, EveryByte) {
  std::mt19937 random(3);
  for (size_t at = 0; at < bytes_.size(); at += at < 2000 ? 1 : 61) {
    Bytes b = bytes_;
    b[at] ^= static_cast<uint8_t>(1u << (random() % 8));
    const bool version = at >= 8 && at < 12;
    expect_refused(b, version ? Code::unsupported : Code::bad_format,
                   at < 8 ? "magic" : version ? "format version" : at >= 16 && at < 24 ? "length" : "checksum");
  }
}

TEST_F(SaveDamage, OfSomewhereElse) {
  expect_refused(with([](Snapshot& s) { s.key.model = "00ff"; }), Code::mismatch, "model: saved with 00ff");
  expect_refused(with([](Snapshot& s) { s.key.weights = "bf16"; }), Code::mismatch, "weights: saved with bf16");
  expect_refused(with([](Snapshot& s) { s.key.device = "cuda"; }), Code::mismatch, "device: saved with cuda");
  expect_refused(with([](Snapshot& s) { s.key.isa = "SSE2"; }), Code::mismatch, "isa: saved with SSE2");
  expect_refused(with([](Snapshot& s) { s.key.version = "0.0.9"; }), Code::mismatch, "version of the build: saved with 0.0.9");
  // Models that really are others.
  ModelOptions bf16;
  bf16.kv_dtype = kernels::DType::bf16;
  const auto other_kv = open_model(*target_, cpu(1), bf16);
  const auto by_kv = Session::restore(other_kv, options_for(nullptr, "chain", 0), bytes_);
  ASSERT_FALSE(by_kv.ok());
  EXPECT_EQ(by_kv.status().code(), Code::mismatch);
  EXPECT_EQ(by_kv.status().message(), "saved session: kv dtype: saved with f32, this is bf16");
  const auto other_weights = open_model(converted(golden("mha"), "damage-int4", kernels::DType::int4), cpu(1));
  EXPECT_EQ(Session::restore(other_weights, options_for(nullptr, "chain", 0), bytes_).status().code(), Code::mismatch);
  const auto other = open_model(converted(golden("gqa_tied"), "damage-other", kernels::DType::int8), cpu(1));
  EXPECT_EQ(Session::restore(other, options_for(nullptr, "chain", 0), bytes_).status().code(), Code::mismatch);
}

TEST_F(SaveDamage, CountsThatCannotBe) {
  expect_refused(with([](Snapshot& s) { s.text.back() = 1 << 30; }), Code::bad_format, "token");
  expect_refused(with([](Snapshot& s) { s.text.back() = -1; }), Code::bad_format, "token");
  expect_refused(with([](Snapshot& s) { s.generated_from = 1000; }), Code::bad_format, "generated from");
  expect_refused(with([](Snapshot& s) { s.finish = static_cast<SavedFinish>(9); }), Code::bad_format, "finish");
  expect_refused(with([](Snapshot& s) { s.finish = SavedFinish::stop_string; s.stop_bytes = INT32_MAX; }), Code::bad_format, "stop bytes: 2147483647, the most is");
  expect_refused(with([](Snapshot& s) { s.finish = SavedFinish::stop_string; }), Code::bad_format, "stop bytes");
  expect_refused(with([](Snapshot& s) { s.finish = SavedFinish::eos; s.stop_bytes = 3; }), Code::bad_format, "stop bytes");
  expect_refused(with([](Snapshot& s) { s.text.resize(s.text.size() - 3); s.generated_from = 0; }), Code::bad_format, "kv positions");
  expect_refused(with([](Snapshot& s) { s.kv.shape.layers = 1 << 20; s.kv.positions = 0; }), Code::bad_format, "kv layers");
  expect_refused(with([](Snapshot& s) { s.kv.shape.layers += 1; }), Code::bad_format, "kv: its shape");
  expect_refused(with([](Snapshot& s) { s.drafters[0].observed += 1; }), Code::bad_format, "drafter observed");
  expect_refused(with([](Snapshot& s) { s.drafters[0].waiting = 100; }), Code::bad_format, "drafter observed");
  expect_refused(with([](Snapshot& s) { s.drafters[0].first = s.drafters[0].observed + 1; }), Code::bad_format, "drafter observed");
  expect_refused(with([](Snapshot& s) { s.drafters[0].first = 1000; }), Code::bad_format, "drafter first");
  expect_refused(with([](Snapshot& s) { s.cycle_passes = -1; }), Code::bad_format, "cycle rate");
  expect_refused(with([](Snapshot& s) { s.cycle_tokens = NAN; }), Code::bad_format, "cycle rate");
  expect_refused(with([](Snapshot& s) { s.drafters[0].memory = {1, INFINITY}; s.drafters[0].policy = "auto shared"; }), Code::bad_format, "policy memory");
  expect_refused(with([](Snapshot& s) { s.drafters[0].memory = {1}; }), Code::bad_format, "policy memory");
  expect_refused(with([](Snapshot& s) { s.drafters[0].policy = "auto shared"; }), Code::bad_format, "policy memory");
  expect_refused(with([](Snapshot& s) { s.key.model = std::string(4000, '0'); }), Code::bad_format, "model");
  expect_refused(with([](Snapshot& s) { s.key.isa = "\x1b[31m"; }), Code::bad_format, "isa");
  // The count alone, where nothing follows: tokens, positions, features of 2^63.
  Bytes b = bytes_;
  const Snapshot s = must(decode_snapshot(bytes_));
  const uint64_t tokens = s.text.size();
  const auto at = std::search(b.begin() + 24, b.end(), reinterpret_cast<const uint8_t*>(&tokens),
                              reinterpret_cast<const uint8_t*>(&tokens) + 8);
  ASSERT_NE(at, b.end());
  for (const uint64_t n : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 31, uint64_t{bytes_.size()}}) {
    std::memcpy(&*at, &n, 8);
    seal_snapshot(b);
    expect_refused(b, Code::bad_format, "tokens");
  }
}

// Numbers that a policy cannot have written are refused where it would go on from them.
TEST_F(SaveDamage, AnotherPolicysMemory) {
  for (const char* tree : {"cast", "auto"}) {
    const std::string kind = std::string(tree) + " shared";
    const Bytes bytes = with([&](Snapshot& s) { s.drafters[0].memory = {3, 1, 4, 1, 5}; s.drafters[0].policy = kind; });
    const auto s = Session::restore(model_, options_for(drafter_, tree, 0.8f), bytes);
    ASSERT_FALSE(s.ok()) << tree;
    EXPECT_EQ(s.status().code(), Code::bad_format);
    EXPECT_EQ(s.status().message(), "saved session: policy memory: not of " + kind);
    EXPECT_EQ(model_->pool()->free_positions(), free_);
    EXPECT_TRUE(Session::restore(model_, options_for(drafter_, tree, 0), bytes).ok()) << "of another temperature: it is not looked at";
    EXPECT_TRUE(Session::restore(model_, options(), bytes).ok());
  }
}

// Whatever the fields say, with a checksum that fits: an error, or a session that steps.
TEST_F(SaveDamage, NoFieldIsTrusted) {
  std::mt19937 random(17);
  int refused = 0, restored = 0;
  for (int round = 0; round < 3000; ++round) {
    Bytes b = bytes_;
    for (uint32_t n = 1 + random() % 3; n > 0; --n) {
      const size_t at = 24 + random() % (random() % 2 ? 400 : b.size() - 24);  // most of the file is KV
      b[std::min(at, b.size() - 1)] = static_cast<uint8_t>(random() % 3 ? random() : random() % 2 ? 0xff : 0);
    }
    seal_snapshot(b);
    const auto s = Session::restore(model_, options(), b);
    if (!s.ok()) {
      ++refused;
      EXPECT_NE(s.status().code(), Code::internal) << s.status().message();
      continue;
    }
    ++restored;
    StepResult r;
    (void)(*s)->step(0, std::chrono::microseconds(0), &r);  // keys that are no numbers make it fail
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(restored, 100);
  EXPECT_EQ(model_->pool()->free_positions(), free_);
}

// A checksum tells damage, not intent: the keys and values may be another text's. The restored session is what its image
// says; no other is.
TEST_F(SaveDamage, WhatAnImageHoldsNoOtherSessionShares) {
  const auto text = [&](const std::shared_ptr<Model>& model) {
    auto s = must(Session::create(model, options_for(nullptr, "chain", 0.8f)));
    must(s->append(kSavedPrompt));
    return generate(*s, 30);
  };
  const auto want = text(model_);
  Bytes honest;
  {
    auto s = must(Session::create(model_, options_for(nullptr, "chain", 0.8f)));
    must(s->append(kSavedPrompt));
    generate(*s, 1);
    honest = saved(*s);
  }
  const Bytes forged = filled(honest, [](const Snapshot& s) -> const SavedKv& { return s.kv; }, 0x3d);
  const auto model = open_model(*target_, cpu(1));
  {
    auto s = must(Session::restore(model, options_for(nullptr, "chain", 0.8f), forged));
    auto fork = must(s->fork(1));
    generate(*s, 40);
    generate(*fork, 40);
    must(s->rewind(kSavedPrompt.size() - 1));
    generate(*s, 20);
  }
  EXPECT_EQ(text(model), want);
}

// Nor is a drafter that all share put out by what an image gave it.
TEST_F(SaveDamage, ADraftersStateThatIsNoNumberCostsNoStrike) {
  const Bytes bad = filled(bytes_, [](const Snapshot& s) -> const SavedKv& { return s.drafters.at(0).kv; }, 0xff);
  const auto text = [&](const Bytes& b, SessionStatistics* stats) {
    auto s = must(Session::restore(model_, options(), b));
    const auto out = generate(*s, 40);
    *stats = s->statistics();
    return out;
  };
  SessionStatistics fine, hurt;
  const auto want = text(bytes_, &fine);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(text(bad, &hurt), want);
    EXPECT_EQ(hurt.drafter_failures, 1u);
    EXPECT_GT(hurt.verified, fine.verified / 2) << "it drafts again once it has read the text";
  }
  EXPECT_FALSE(drafter_->quarantined());
}

TEST_F(SaveDamage, NoRoom) {
  SessionOptions o = options();
  o.max_context = 4;
  auto s = Session::restore(model_, o, bytes_);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.status().code(), Code::limit);
  EXPECT_NE(s.status().message().find("context"), std::string::npos);
  ModelOptions little;
  little.kv_positions = 160;  // 128 for trees and a page
  const auto model = open_model(*target_, cpu(1), little);
  auto first = must(Session::restore(model, options_for(nullptr, "chain", 0), bytes_));
  s = Session::restore(model, options_for(nullptr, "chain", 0), bytes_);
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.status().code(), Code::limit);
  EXPECT_NE(s.status().message().find("KV budget"), std::string::npos);
  first.reset();
  EXPECT_TRUE(Session::restore(model, options_for(nullptr, "chain", 0), bytes_).ok());

  auto session = must(Session::restore(model_, options(), bytes_));
  size_t size = 0;
  Bytes small(bytes_.size() - 1, 7);
  const Bytes untouched = small;
  const Status status = session->save(small, &size);
  EXPECT_EQ(status.code(), Code::limit);
  EXPECT_EQ(size, bytes_.size());
  EXPECT_EQ(small, untouched);
}

}  // namespace
}  // namespace aerie::test
