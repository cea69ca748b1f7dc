// Plugins that lie, and plugins on a device whose memory the host cannot read.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/support/models.h"

namespace aerie::test {
namespace {

const std::vector<int32_t> kText = {26, 106, 150, 108, 115, 45, 37, 77, 26, 106, 150, 108};

std::vector<int32_t> text_of(const std::shared_ptr<Model>& model, std::shared_ptr<Drafter> drafter, float temperature,
                             SessionStatistics* stats = nullptr, bool drafts_on_device = false) {
  SessionOptions o;
  o.drafts_on_device = drafts_on_device;
  o.sampling.temperature = temperature;
  o.sampling.seed = 9;
  o.ignore_eos = true;
  o.drafter = std::move(drafter);
  auto session = must(Session::create(model, o));
  must(session->append(kText));
  const auto out = generate(*session, 60);
  if (stats) *stats = session->statistics();
  return out;
}

PluginKind kind_of(const std::string& id) {
  for (PluginKind& k : must(load_plugin(bad_plugin("hostile"))))
    if (id == k.desc.id) return k;
  throw std::runtime_error("no such kind: " + id);
}

// A library of one host drafter, which `create` makes.
aerie_drafter_plugin_table host_drafter(decltype(aerie_drafter_plugin_table::create) create) {
  const auto describe = [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
    if (i > 0) return AERIE_D_INVALID;
    out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
    std::strcpy(out->id, "host");
    return AERIE_D_OK;
  };
  return {sizeof(aerie_drafter_plugin_table), AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR, describe, create};
}

// What one has that keeps nothing.
void begin_host_drafter(aerie_drafter* out) {
  out->destroy = [](void*) {};
  out->open = [](void*, const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) -> int32_t { return AERIE_D_OK; };
  out->begin = [](void*, int32_t) -> int32_t { return AERIE_D_OK; };
  out->end = [](void*, int32_t) {};
}

class Hostile : public testing::TestWithParam<const char*> {
 protected:
  void lie(bool drafts_on_device);
};

void Hostile::lie(bool drafts_on_device) {
  const auto model = open_model(converted(golden("mha"), "hostile-target", kernels::DType::bf16), cpu(2));
  const auto want = text_of(model, nullptr, 0.8f);
  std::vector<std::string> log;
  DrafterOptions options;
  options.log = [&](int32_t, const std::string& m) { log.push_back(m); };
  const auto drafter = must(Drafter::open(model, kind_of(GetParam()), nullptr, options));
  SessionStatistics stats;
  EXPECT_EQ(text_of(model, drafter, 0.8f, &stats, drafts_on_device), want);
  EXPECT_TRUE(drafter->quarantined());
  EXPECT_EQ(stats.drafter_failures, 3u);
  ASSERT_EQ(log.size(), 3u) << "the host is told of every failure";
  EXPECT_NE(log[2].find("quarantined"), std::string::npos);
  EXPECT_EQ(text_of(model, drafter, 0.8f), want) << "a quarantined drafter is not asked again";
  EXPECT_EQ(log.size(), 3u);
}

TEST_P(Hostile, CostsNoTokenAndIsQuarantinedAtTheThirdFailure) { lie(false); }
TEST_P(Hostile, NorWhereTheDeviceDrawsItsTrees) { lie(true); }

INSTANTIATE_TEST_SUITE_P(Lies, Hostile,
                         testing::Values("count", "negative_count", "parent", "token", "confidence", "throw", "fail",
                                         "device_shape", "device_silent", "device_twice", "device_root_layer", "device_scaleless", "device_table",
                                         "device_no_plan", "device_throw"),
                         [](const auto& info) { return std::string(info.param); });

// The process has none, which is not the drafter's doing: it drafts again when there is some.
TEST(Plugins, AWantOfMemoryIsTheEndOfADrafterForASessionAndOnlyIfItLasts) {
  static int shortage;
  static const auto table = host_drafter([](const aerie_drafter_host*, const char*, aerie_drafter* out, aerie_drafter_error*) -> int32_t {
    begin_host_drafter(out);
    out->propose_host = [](void*, const aerie_host_context* c, aerie_host_candidates* o) -> int32_t {
      if (shortage-- > 0) return AERIE_D_NO_MEMORY;
      o->count = 1;
      o->token[0] = c->tokens[0];
      o->parent[0] = -1;
      o->confidence[0] = 0.5f;
      return AERIE_D_OK;
    };
    return AERIE_D_OK;
  });
  const auto model = open_model(converted(golden("mha"), "short-target", kernels::DType::f32), cpu(1));
  const auto want = text_of(model, nullptr, 0.8f);
  std::vector<std::string> log;
  DrafterOptions options;
  options.log = [&](int32_t, const std::string& m) { log.push_back(m); };
  const auto drafter = must(Drafter::open(model, must(check_plugin_table(&table, "short"))[0], nullptr, options));
  for (const int failures : {40, 1 << 20, 30}) {
    SCOPED_TRACE(failures);
    log.clear();
    shortage = failures;
    SessionOptions o;
    o.sampling.temperature = 0.8f;
    o.sampling.seed = 9;
    o.ignore_eos = true;
    o.drafter = drafter;
    auto session = must(Session::create(model, o));
    must(session->append(kText));
    auto text = generate(*session, 80);
    text.resize(want.size());
    EXPECT_EQ(text, want);
    const SessionStatistics& stats = session->statistics();
    EXPECT_EQ(stats.drafter_failures, static_cast<uint64_t>(std::min(failures, kMaxShortages)));
    EXPECT_EQ(session->quarantined(), failures > kMaxShortages);
    EXPECT_EQ(stats.proposed > 0, failures < kMaxShortages);
    EXPECT_EQ(log.size(), failures > kMaxShortages ? 2u : 1u) << "not once for each";
    EXPECT_FALSE(drafter->quarantined()) << "another session may find more memory";
  }
}

// What it had seen is lost each time, and the target reads the text again for it. That must come to an end, also while other
// sessions have all the memory they want.
TEST(Plugins, ADrafterThatFindsNoMemoryForWhatItIsShownStopsNoSession) {
  const auto model = open_model(converted(golden("mha"), "unseen-target", kernels::DType::bf16), cpu(2));
  const auto want = text_of(model, nullptr, 0.8f);
  const auto drafter = must(Drafter::open(model, kind_of("short"), nullptr, {}));
  for (int i = 0; i < 2; ++i) {
    SessionStatistics stats;
    EXPECT_EQ(text_of(model, drafter, 0.8f, &stats), want);
    EXPECT_EQ(stats.drafter_failures, 3u);
    EXPECT_FALSE(drafter->quarantined());
  }
}

TEST(Plugins, OneThatTakesTooLongToBeMadeIsDestroyed) {
  static int made, destroyed;
  static const auto table = host_drafter([](const aerie_drafter_host*, const char*, aerie_drafter* out, aerie_drafter_error*) -> int32_t {
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    ++made;
    out->destroy = [](void*) { ++destroyed; };
    return AERIE_D_OK;
  });
  const auto model = open_model(converted(golden("mha"), "slow-target", kernels::DType::f32), cpu(1));
  const auto opened = Drafter::open(model, must(check_plugin_table(&table, "slow"))[0], nullptr, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("deadline"), std::string::npos) << opened.status().message();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(destroyed, 1);
}

TEST(Plugins, ARandomDrafterChangesNothing) {
  const auto model = open_model(converted(golden("mha"), "random-target", kernels::DType::int4), cpu(2));
  for (const float temperature : {0.0f, 1.0f}) {
    const auto drafter = must(Drafter::open(model, kind_of("random"), nullptr, {}));
    SessionStatistics stats;
    EXPECT_EQ(text_of(model, drafter, temperature, &stats), text_of(model, nullptr, temperature));
    EXPECT_GT(stats.verified, 100u);
    EXPECT_EQ(stats.drafter_failures, 0u);
  }
}

TEST(Plugins, WhatCannotBeLoadedSaysWhy) {
  const auto message = [](const std::string& path) { return load_plugin(path).status().message(); };
  EXPECT_NE(message("hostile.so").find("absolute"), std::string::npos);
  EXPECT_NE(message("/no/such/plugin.so").find("/no/such/plugin.so"), std::string::npos);
  EXPECT_NE(message(bad_plugin("wrong_major")).find("drafter ABI 2"), std::string::npos);
  EXPECT_NE(message(bad_plugin("too_new")).find("needs drafter ABI"), std::string::npos);
  EXPECT_NE(message(bad_plugin("no_entry")).find("aerie_drafter_plugin_entry"), std::string::npos);
  const std::string text = scratch_dir() + "/text.so";
  std::ofstream(text) << "not a library";
  EXPECT_NE(message(text).find("cannot be loaded"), std::string::npos);
  EXPECT_EQ(message(text).find("/proc/self"), std::string::npos) << message(text);
  EXPECT_EQ(message(bad_plugin("entry_throws")), bad_plugin("entry_throws") + ": the entry point or describe threw an exception: not today");
}

#ifndef _WIN32  // its loader looks by itself
// The loader would map what is not there, and the first touch of it would be the process's end.
TEST(Plugins, AFileThatIsCutShortOrForAnotherMachineIsRefused) {
  std::ifstream in(bad_plugin("hostile"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(whole.size(), 10000u);
  const std::string path = scratch_dir() + "/cut.so";
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += whole.size() / 97) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto kinds = load_plugin(path);
    if (kinds.ok()) break;  // what is missing is for debuggers
    EXPECT_EQ(kinds.status().message(), path + ": cannot be loaded: the file is cut short") << size;
    ++refused;
  }
  EXPECT_GT(refused, 5);
  std::string other = whole;
  other[18] = static_cast<char>(other[18] ^ 1);  // e_machine
  std::ofstream(path, std::ios::binary) << other;
  EXPECT_EQ(load_plugin(path).status().message(), path + ": cannot be loaded: it is for another machine");
}
#endif

TEST(Plugins, AFailedOpenGivesThePluginsOwnWords) {
  const auto model = open_model(converted(golden("mha"), "open-target", kernels::DType::f32), cpu(1));
  EXPECT_NE(Drafter::open(model, kind_of("open_fails"), nullptr, {}).status().message().find("weights: not today"), std::string::npos);
  EXPECT_NE(Drafter::open(model, kind_of("no_functions"), nullptr, {}).status().message().find("missing"), std::string::npos);
}

// aerie/drafter.hpp: what an exception says is the error where there is one, and in the log where a call only fails.
TEST(Plugins, WhatAnExceptionSaysIsToldByTheCppHelper) {
  const auto model = open_model(converted(golden("mha"), "words-target", kernels::DType::f32), cpu(1));
  const auto kinds = must(load_plugin(bad_plugin("words")));
  ASSERT_EQ(kinds.size(), 4u);
  std::vector<std::string> log;
  DrafterOptions o;
  o.log = [&](int32_t, const std::string& m) { log.push_back(m); };
  EXPECT_EQ(Drafter::open(model, kinds[0], nullptr, o).status().message(), "drafter words_create: create: the words of words_create");
  EXPECT_EQ(Drafter::open(model, kinds[1], nullptr, o).status().message(), "drafter words_open: open: the words of words_open");
  EXPECT_TRUE(log.empty());
  SessionOptions begins;
  begins.drafter = must(Drafter::open(model, kinds[2], nullptr, o));
  EXPECT_EQ(Session::create(model, begins).status().code(), Code::plugin);
  EXPECT_EQ(log, std::vector<std::string>{"drafter words_begin: begin: the words of words_begin"});
  log.clear();
  text_of(model, must(Drafter::open(model, kinds[3], nullptr, o)), 0);
  ASSERT_FALSE(log.empty());
  EXPECT_EQ(log[0], "drafter words_propose_host: propose_host: the words of words_propose_host");
}

// It is shown no rows: what the cache should hold, a fork or a kept prefix would read past its end.
TEST(Plugins, AHostDrafterHasNoKeysAndValues) {
  const auto model = open_model(converted(golden("mha"), "host-cache-target", kernels::DType::f32), cpu(1));
  const Status refused = Drafter::open(model, kind_of("host_cache"), nullptr, {}).status();
  EXPECT_EQ(refused.code(), Code::mismatch);
  EXPECT_EQ(refused.message().find("drafter host_cache: open"), 0u) << refused.message();
}

// What a host drafter keeps is of the text itself: it is told where a rewound text ends, as far as it has grown since its
// prompt was read.
TEST(Plugins, AHostDrafterIsToldWhereARewoundTextEnds) {
  static std::vector<int32_t> told;
  static const auto table = host_drafter([](const aerie_drafter_host*, const char*, aerie_drafter* out, aerie_drafter_error*) -> int32_t {
    begin_host_drafter(out);
    out->propose_host = [](void*, const aerie_host_context*, aerie_host_candidates*) -> int32_t { return AERIE_D_OK; };
    out->rollback = [](void*, int32_t, int32_t length) -> int32_t { return told.push_back(length), AERIE_D_OK; };
    return AERIE_D_OK;
  });
  const auto model = open_model(converted(golden("mha"), "told-target", kernels::DType::f32), cpu(1));
  SessionOptions o;
  o.ignore_eos = true;
  o.drafter = must(Drafter::open(model, must(check_plugin_table(&table, "told"))[0], nullptr, {}));
  auto session = must(Session::create(model, o));
  must(session->append(kText));
  generate(*session, 40);
  told.clear();
  must(session->rewind(static_cast<int64_t>(kText.size()) + 30));
  ASSERT_FALSE(told.empty());
  for (const int32_t length : told) EXPECT_EQ(length, static_cast<int32_t>(kText.size()) + 30);
}

TEST(Plugins, OneThatDescribesADrafterTwiceOrWithoutEndIsRefused) {
  static uint32_t kinds;
  const auto describe = [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
    std::strcpy(out->id, ("d" + std::to_string(i % kinds)).c_str());
    return AERIE_D_OK;
  };
  const auto create = [](const aerie_drafter_host*, const char*, aerie_drafter*, aerie_drafter_error*) -> int32_t { return AERIE_D_FAILED; };
  const aerie_drafter_plugin_table table{sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR, describe, create};
  kinds = 5;
  EXPECT_EQ(check_plugin_table(&table, "p.so").status().message(), "p.so: describes drafter d0 twice");
  kinds = 1000;
  EXPECT_EQ(check_plugin_table(&table, "p.so").status().message(), "p.so: describes more than 64 drafters");
}

TEST(Plugins, SerialDraftersOfALibraryShareOneLock) {
  const auto describe = [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
    if (i == 3) return AERIE_D_INVALID;
    out->flags = AERIE_DRAFTER_HOST_TOKENS | (i < 2 ? AERIE_DRAFTER_SERIAL : 0);
    out->id[0] = static_cast<char>('a' + i);
    return AERIE_D_OK;
  };
  const auto create = [](const aerie_drafter_host*, const char*, aerie_drafter*, aerie_drafter_error*) -> int32_t {
    return AERIE_D_FAILED;
  };
  const aerie_drafter_plugin_table table{sizeof table, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR, describe, create};
  const auto kinds = must(check_plugin_table(&table, "serial"));
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_NE(kinds[0].serial, nullptr);
  EXPECT_EQ(kinds[0].serial, kinds[1].serial);
  EXPECT_EQ(kinds[2].serial, nullptr);
}

TEST(Plugins, IdenticalBytesAreLoadedOnce) {
  const std::string copy = scratch_dir() + "/copy.so";
  std::filesystem::copy_file(bad_plugin("hostile"), copy);
  EXPECT_EQ(must(load_plugin(bad_plugin("hostile")))[0].table, must(load_plugin(copy))[0].table);
}

// Neutrality: the same plugins on an asynchronous device whose addresses fault in the host's hands.
TEST(MockDevice, DraftersRunWhereTheHostCannotRead) {
  const std::string target = converted(golden("mha"), "mock-target", kernels::DType::int8);
  const std::string eagle = converted(golden("eagle_mha"), "mock-eagle", kernels::DType::bf16, target);
  kernels::CpuOptions o;
  o.threads = 1;
  const std::shared_ptr<kernels::Device> mock = kernels::make_mock_device(must(kernels::make_cpu_device(o)));
  const auto model = open_model(target, mock);
  const auto want = text_of(open_model(target, cpu(1)), nullptr, 0.7f);
  EXPECT_EQ(text_of(model, nullptr, 0.7f), want);
  std::vector<std::pair<std::string, std::string>> drafters = {{"eagle", eagle}, {"small_model", target}, {"ngram", ""}};
  for (const char* kind : {"eagle3", "fasteagle", "medusa", "hydra", "hydra_prefix", "eagle3_norms", "eagle3_fc_norm", "eagle3_narrow", "eagle3_deep", "dflash"})
    drafters.emplace_back(library_of(kind),
                          converted(source_dir() + "/tests/golden/heads/" + kind, std::string("mock-") + kind,
                                    kernels::DType::bf16, target));
  for (const auto& [plugin, package] : drafters) {
    SessionStatistics stats;
    for (const bool drafts_on_device : {false, true})
      EXPECT_EQ(text_of(model, open_drafter(model, plugin, package), 0.7f, &stats, drafts_on_device), want) << plugin;
    EXPECT_EQ(stats.drafter_failures, 0u) << plugin;
  }
}

}  // namespace
}  // namespace aerie::test
