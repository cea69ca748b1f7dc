// Cost tables through the C ABI: measure, keep, attach, refuse, cancel.
#include "aerie/profile.h"


#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Profile {
  aerie_profile* p = nullptr;
  aerie_error err;
  Profile() { AERIE_INIT(err); }
  ~Profile() { aerie_profile_release(p); }
  Profile(const Profile&) = delete;
};

aerie_profile_options quick(aerie_drafter_handle* const* drafters, int32_t n) {
  aerie_profile_options o;
  AERIE_INIT(o);
  o.quick = 1;
  o.drafters = drafters;
  o.n_drafters = n;
  return o;
}

std::string scratch_file(const char* name) {
  static const TemporaryFolder folder;
  return folder / name;
}

void open(Host* host, int32_t threads, bool with_drafter) {
  const aerie_runtime_options o = with_threads(threads);
  ASSERT_EQ(host->open(&o, with_drafter), AERIE_OK) << host->err.message;
  aerie_session_release(host->session);  // the drafter serves one session: the measurement's, for now
  host->session = nullptr;
}

TEST(Profile, MeasuredSavedLoadedAndUsed) {
  const std::string path = scratch_file("-used");
  Host host;
  open(&host, 1, true);
  {
    Profile measured;
    ASSERT_EQ(aerie_profile_create(&measured.p, &measured.err), AERIE_OK);
    const char* json = nullptr;
    size_t size = 0;
    EXPECT_EQ(aerie_profile_json(measured.p, &json, &size, &measured.err), AERIE_E_INVALID_ARGUMENT) << "nothing in it yet";
    EXPECT_EQ(aerie_profile_attach(measured.p, host.model, &measured.err), AERIE_E_INVALID_ARGUMENT);
    const aerie_profile_options o = quick(&host.drafter, 1);
    ASSERT_EQ(aerie_profile_measure(measured.p, host.model, &o, &measured.err), AERIE_OK) << measured.err.message;
    ASSERT_EQ(aerie_profile_json(measured.p, &json, &size, &measured.err), AERIE_OK);
    EXPECT_EQ(size, std::strlen(json));
    EXPECT_NE(std::strstr(json, "\"drafters\":{\"eagle\":[{\"batch\":1,"), nullptr);
    std::ofstream(path) << "a will";
    EXPECT_EQ(aerie_profile_save(measured.p, path.c_str(), &measured.err), AERIE_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(measured.err.message, path.c_str()), nullptr) << measured.err.message;
    EXPECT_EQ(std::filesystem::file_size(path), 6u) << "somebody's";
    std::filesystem::remove(path);
    for (int twice = 0; twice < 2; ++twice)
      ASSERT_EQ(aerie_profile_save(measured.p, path.c_str(), &measured.err), AERIE_OK) << measured.err.message;
  }
  Profile loaded;
  ASSERT_EQ(aerie_profile_load(path.c_str(), &loaded.p, &loaded.err), AERIE_OK) << loaded.err.message;
  double one = 0, many = 0;
  ASSERT_EQ(aerie_profile_target_ms(loaded.p, 1, 100, 1, &one, &loaded.err), AERIE_OK);
  ASSERT_EQ(aerie_profile_target_ms(loaded.p, 4, 400, 128, &many, &loaded.err), AERIE_OK);
  EXPECT_GT(one, 0);
  EXPECT_GE(many, one);
  EXPECT_EQ(aerie_profile_target_ms(loaded.p, 1, 0, 1, &one, &loaded.err), AERIE_E_INVALID_ARGUMENT);
  ASSERT_EQ(aerie_profile_attach(loaded.p, host.model, &loaded.err), AERIE_OK) << loaded.err.message;
  ASSERT_EQ(aerie_profile_attach_drafter(loaded.p, host.drafter, &loaded.err), AERIE_OK) << loaded.err.message;
  ASSERT_EQ(Settings(host.drafter).create(host.model, &host.session, &host.err), AERIE_OK) << host.err.message;
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text()) << "costs decide when tokens come, never which";

  Host other;  // two threads: not what was measured
  open(&other, 2, true);
  EXPECT_EQ(aerie_profile_attach(loaded.p, other.model, &loaded.err), AERIE_E_MISMATCH);
  EXPECT_NE(std::strstr(loaded.err.message, (path + ": threads: ").c_str()), nullptr) << loaded.err.message;
  EXPECT_EQ(aerie_profile_attach_drafter(loaded.p, other.drafter, &loaded.err), AERIE_E_MISMATCH);

  std::ofstream(path, std::ios::app) << "x";
  aerie_profile* none = nullptr;
  EXPECT_EQ(aerie_profile_load(path.c_str(), &none, &loaded.err), AERIE_E_BAD_FORMAT);
  EXPECT_NE(std::strstr(loaded.err.message, (path + ": checksum: ").c_str()), nullptr) << loaded.err.message;
  std::filesystem::remove(path);
  EXPECT_EQ(aerie_profile_load(path.c_str(), &none, &loaded.err), AERIE_E_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
}

TEST(Profile, CancelledFromAnotherThreadItKeepsWhatItHeld) {
  Host host;
  open(&host, 1, true);
  Profile profile;
  ASSERT_EQ(aerie_profile_create(&profile.p, &profile.err), AERIE_OK);
  const aerie_profile_options fast = quick(nullptr, 0);
  ASSERT_EQ(aerie_profile_measure(profile.p, host.model, &fast, &profile.err), AERIE_OK) << profile.err.message;
  const char* json = nullptr;
  ASSERT_EQ(aerie_profile_json(profile.p, &json, nullptr, &profile.err), AERIE_OK);
  const std::string before = json;

  // Many points, so that it is still measuring when the other thread comes.
  aerie_profile_options slow;
  AERIE_INIT(slow);
  const std::vector<int32_t> batches = {1, 2, 3, 4, 5, 6};
  slow.n_batches = static_cast<int32_t>(batches.size());
  slow.batches = batches.data();
  std::atomic<int> points{0};
  slow.progress = [](void* user, uint64_t, uint64_t) -> int32_t { return ++*static_cast<std::atomic<int>*>(user), 1; };
  slow.progress_user = &points;
  int32_t busy = -1;
  std::thread other([&] {
    while (points == 0) std::this_thread::yield();
    busy = aerie_profile_save(profile.p, scratch_file("never-written").c_str(), nullptr);
    aerie_profile_cancel(profile.p);
  });
  EXPECT_EQ(aerie_profile_measure(profile.p, host.model, &slow, &profile.err), AERIE_E_CANCELLED) << profile.err.message;
  other.join();
  EXPECT_EQ(busy, AERIE_E_BUSY);
  ASSERT_EQ(aerie_profile_json(profile.p, &json, nullptr, &profile.err), AERIE_OK);
  EXPECT_EQ(json, before);

  slow.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 0; };
  EXPECT_EQ(aerie_profile_measure(profile.p, host.model, &slow, &profile.err), AERIE_E_CANCELLED);
  // The last moment counts too: a host that is told of an end it did not want would believe it had not been heard.
  aerie_profile_options last = quick(nullptr, 0);
  last.progress = [](void*, uint64_t done, uint64_t total) -> int32_t { return done < total; };
  EXPECT_EQ(aerie_profile_measure(profile.p, host.model, &last, &profile.err), AERIE_E_CANCELLED);
  EXPECT_EQ(aerie_profile_measure(profile.p, host.model, &fast, &profile.err), AERIE_OK) << "a cancel stops one measurement";
}

TEST(Profile, WrongArgumentsAreNamed) {
  Host host;
  open(&host, 1, false);
  Profile profile;
  ASSERT_EQ(aerie_profile_create(&profile.p, &profile.err), AERIE_OK);
  const auto refused = [&](const aerie_profile_options& o, const char* words) {
    EXPECT_EQ(aerie_profile_measure(profile.p, host.model, &o, &profile.err), AERIE_E_INVALID_ARGUMENT) << words;
    EXPECT_NE(std::strstr(profile.err.message, words), nullptr) << profile.err.message;
  };
  const int32_t zero = 0, large = 1 << 20;
  aerie_profile_options o = quick(nullptr, 1);
  refused(o, "drafters is NULL");
  o = quick(nullptr, 0);
  o.n_batches = 1;
  refused(o, "batches is NULL");
  o.batches = &zero;
  refused(o, "batches: 0");
  o = quick(nullptr, 0);
  o.n_contexts = 1;
  o.contexts = &large;
  refused(o, "contexts: 1048576");
  o = quick(nullptr, 0);
  o.struct_size = 0;
  refused(o, "struct_size");
  EXPECT_EQ(aerie_profile_measure(profile.p, nullptr, nullptr, &profile.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_profile_create(nullptr, nullptr), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_profile_load("/no/such/file", nullptr, nullptr), AERIE_E_INVALID_ARGUMENT);
  aerie_profile_release(nullptr);
  aerie_profile_cancel(nullptr);
}

}  // namespace
}  // namespace aerie_capi_test
