// Loading plugins as a host does it: what is refused, what stays, and what is said about them.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "aerie/drafter.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

namespace fs = std::filesystem;

class Plugins : public testing::Test {
 protected:
  void SetUp() override {
    AERIE_INIT(err_);
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(aerie_runtime_create(&o, &runtime_, &err_), AERIE_OK);
  }
  void TearDown() override { aerie_runtime_release(runtime_); }
  int32_t load(const std::string& path) { return aerie_runtime_load_plugin(runtime_, path.c_str(), &err_); }
  int32_t load_all(const std::string& path) { return aerie_runtime_load_plugin_directory(runtime_, path.c_str(), &err_); }
  std::vector<aerie_plugin_info> loaded() {
    std::vector<aerie_plugin_info> all;
    for (;;) {
      aerie_plugin_info info;
      AERIE_INIT(info);
      const int32_t code = aerie_runtime_plugin_info(runtime_, static_cast<uint32_t>(all.size()), &info, &err_);
      if (code != AERIE_OK) {
        EXPECT_EQ(code, AERIE_E_NOT_FOUND);
        return all;
      }
      all.push_back(info);
    }
  }
  std::set<std::string> ids() {
    std::set<std::string> all;
    for (const aerie_plugin_info& p : loaded()) EXPECT_TRUE(all.insert(p.id).second) << p.id;
    return all;
  }

  // The same plugin as another library: the bytes of one are loaded once in a process, under the name they had first.
  std::string another_build(const std::string& of, const std::string& name) {
    const std::string path = folder_ / (name + AERIE_LIBRARY_SUFFIX);
    fs::copy(of, path);
    std::ofstream(path, std::ios::app) << path;
    return path;
  }

  aerie_runtime* runtime_ = nullptr;
  aerie_error err_;
  const TemporaryFolder folder_;
  const std::string ngram_ = drafter_library("ngram"), eagle_ = drafter_library("eagle");
};

TEST_F(Plugins, AreFoundByAnAbsolutePathAlone) {
  EXPECT_TRUE(loaded().empty()) << "nothing is loaded by itself";
  const fs::path before = fs::current_path();
  fs::current_path(plugin_directory());
  for (const char* path : {"ngram" AERIE_LIBRARY_SUFFIX, "./ngram" AERIE_LIBRARY_SUFFIX, "ngram", ""}) EXPECT_EQ(load(path), AERIE_E_INVALID_ARGUMENT) << path << ": " << err_.message;
  for (const char* path : {".", "drafters", ""}) EXPECT_EQ(load_all(path), AERIE_E_INVALID_ARGUMENT) << path << ": " << err_.message;
  fs::current_path(before);
  EXPECT_EQ(load(folder_ / "no/such/plugin.so"), AERIE_E_NOT_FOUND);
  EXPECT_NE(std::strstr(err_.message, "/such/plugin.so"), nullptr) << err_.message;
  EXPECT_EQ(load_all(folder_ / "no/such"), AERIE_E_NOT_FOUND);
  EXPECT_TRUE(loaded().empty());
}

TEST_F(Plugins, AreLoadedOnceAndDescribed) {
  const std::string path = another_build(ngram_, "ngram");
  ASSERT_EQ(load(path), AERIE_OK) << err_.message;
  const std::vector<aerie_plugin_info> first = loaded();
  EXPECT_EQ(ids(), (std::set<std::string>{"ngram", "ngram-suffix"}));
  ASSERT_EQ(load(path), AERIE_OK) << err_.message;
  EXPECT_EQ(loaded().size(), 2u);
  ASSERT_EQ(load(eagle_), AERIE_OK) << err_.message;
  EXPECT_EQ(ids(), (std::set<std::string>{"eagle", "eagle3", "ngram", "ngram-suffix"}));
  // What was borrowed before is what it was.
  for (const aerie_plugin_info& p : first) {
    EXPECT_EQ(std::string(p.id).find("ngram"), 0u);
    EXPECT_EQ(p.path, path);
    EXPECT_NE(p.title[0], '\0');
    EXPECT_NE(p.version[0], '\0');
  }
}

TEST_F(Plugins, OfADirectoryAreLoadedToTheFirstThatIsNone) {
  another_build(eagle_, "a");
  const std::string none = folder_ / "b" AERIE_LIBRARY_SUFFIX;
  std::ofstream(none) << "not a library";
  another_build(ngram_, "c");
  std::ofstream(folder_ / "readme.txt") << "not looked at";
  EXPECT_EQ(load_all(folder_.path()), AERIE_E_PLUGIN) << err_.message;
  EXPECT_NE(std::strstr(err_.message, "b" AERIE_LIBRARY_SUFFIX), nullptr) << err_.message;
  EXPECT_EQ(ids(), (std::set<std::string>{"eagle", "eagle3"}));
  fs::remove(none);
  EXPECT_EQ(load_all(folder_.path()), AERIE_OK) << err_.message;
  EXPECT_EQ(ids(), (std::set<std::string>{"eagle", "eagle3", "ngram", "ngram-suffix"}));
}

// One with an id that another has is refused, and the first goes on serving.
TEST_F(Plugins, WithAnIdThatIsTakenAreRefused) {
  const std::string first = another_build(ngram_, "first"), second = another_build(ngram_, "second");
  ASSERT_EQ(load(first), AERIE_OK) << err_.message;
  EXPECT_EQ(load(second), AERIE_E_MISMATCH);
  EXPECT_EQ(err_.message, second + ": id ngram is taken by " + first);
  ASSERT_EQ(loaded().size(), 2u);
  EXPECT_EQ(loaded()[0].path, first);
}

// A library of two drafters, the second of which is taken by another: neither is there afterwards.
TEST_F(Plugins, AreRegisteredWholeOrNotAtAll) {
  static const auto create = [](const aerie_drafter_host*, const char*, aerie_drafter*, aerie_drafter_error*) -> int32_t { return AERIE_D_FAILED; };
  static const aerie_drafter_plugin_table one{
      sizeof one, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
      [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
        std::strcpy(out->id, "taken");
        return i == 0 ? AERIE_D_OK : AERIE_D_INVALID;
      },
      create};
  static const aerie_drafter_plugin_table two{
      sizeof two, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
      [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
        std::strcpy(out->id, i == 0 ? "fresh" : "taken");
        std::strcpy(out->title, "T\n\x1b[2J\xff");
        return i < 2 ? AERIE_D_OK : AERIE_D_INVALID;
      },
      create};
  ASSERT_EQ(aerie_runtime_add_plugin(runtime_, "one", [] { return &one; }, &err_), AERIE_OK) << err_.message;
  EXPECT_EQ(aerie_runtime_add_plugin(runtime_, "two", [] { return &two; }, &err_), AERIE_E_MISMATCH);
  EXPECT_STREQ(err_.message, "two: id taken is taken by one");
  EXPECT_EQ(ids(), (std::set<std::string>{"taken"}));
  aerie_runtime_release(runtime_);
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &runtime_, &err_), AERIE_OK);
  ASSERT_EQ(aerie_runtime_add_plugin(runtime_, "two", [] { return &two; }, &err_), AERIE_OK) << err_.message;
  EXPECT_EQ(ids(), (std::set<std::string>{"fresh", "taken"}));
  EXPECT_STREQ(loaded()[0].title, "T??[2J?");
}

// The host that holds a model twice lets it go twice.
TEST(RetainedModel, GoesWithItsLastRelease) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  aerie_model_retain(host.model);
  aerie_model_release(host.model);
  std::vector<int32_t> out;
  aerie_session* session = nullptr;
  ASSERT_EQ(Settings().create(host.model, &session, &host.err), AERIE_OK) << host.err.message;
  std::swap(session, host.session);
  aerie_session_release(session);
  ASSERT_EQ(host.text(24, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, plain_text());
}

}  // namespace
}  // namespace aerie_capi_test
