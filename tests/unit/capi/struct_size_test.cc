// Size-first structs: a host built with an older or a newer header than the library.
#include <cstddef>
#include <cstring>

#include "kernels/status.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

using aerie::Code;
static_assert(AERIE_OK == static_cast<int>(Code::ok) && AERIE_E_INVALID_ARGUMENT == static_cast<int>(Code::invalid_argument) &&
              AERIE_E_NOT_FOUND == static_cast<int>(Code::not_found) && AERIE_E_IO == static_cast<int>(Code::io) &&
              AERIE_E_BAD_FORMAT == static_cast<int>(Code::bad_format) && AERIE_E_MISMATCH == static_cast<int>(Code::mismatch) &&
              AERIE_E_UNSUPPORTED == static_cast<int>(Code::unsupported) &&
              AERIE_E_OUT_OF_MEMORY == static_cast<int>(Code::out_of_memory) && AERIE_E_CANCELLED == static_cast<int>(Code::cancelled) &&
              AERIE_E_LIMIT == static_cast<int>(Code::limit) && AERIE_E_PLUGIN == static_cast<int>(Code::plugin) &&
              AERIE_E_DEVICE == static_cast<int>(Code::device) && AERIE_E_BUSY == static_cast<int>(Code::busy) &&
              AERIE_E_INTERNAL == static_cast<int>(Code::internal));

// A caller's struct between bytes it does not own, as an older or newer header lays it out.
template <class T>
struct Framed {
  static constexpr size_t kRoom = 64;
  alignas(T) unsigned char bytes[sizeof(T) + kRoom];
  explicit Framed(uint32_t size, unsigned char beyond) {
    std::memset(bytes, beyond, sizeof bytes);
    std::memset(bytes, 0, std::min<size_t>(size, sizeof bytes));
    std::memcpy(bytes, &size, sizeof size);
  }
  T* get() { return reinterpret_cast<T*>(bytes); }
};

TEST(StructSize, AnOlderHostsMissingFieldsAreDefaults) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK);
  aerie_session* session = nullptr;
  // This host ends before `tree`; what follows in its memory is garbage that must not be read.
  Framed<aerie_session_options> s(offsetof(aerie_session_options, tree), 0xAB);
  const Settings settings;
  s.get()->sampling = &settings.sampling;
  ASSERT_EQ(aerie_session_create(host.model, s.get(), &session, &host.err), AERIE_OK) << host.err.message;
  std::swap(session, host.session);
  aerie_session_release(session);
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK);
  EXPECT_EQ(out, plain_text());
}

TEST(StructSize, ANewerHostsRequestsAreRefusedUnlessZero) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK);
  aerie_session* session = nullptr;
  Framed<aerie_session_options> zero(sizeof(aerie_session_options) + 16, 0);
  EXPECT_EQ(aerie_session_create(host.model, zero.get(), &session, &host.err), AERIE_OK) << host.err.message;
  aerie_session_release(session);
  session = nullptr;
  Framed<aerie_session_options> set(sizeof(aerie_session_options) + 16, 0);
  set.bytes[sizeof(aerie_session_options) + 3] = 1;
  EXPECT_EQ(aerie_session_create(host.model, set.get(), &session, &host.err), AERIE_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(host.err.message, "aerie_session_options"), nullptr) << host.err.message;
  Settings settings;  // a field without a meaning today may have one tomorrow
  settings.tree.reserved0 = 1;
  EXPECT_EQ(settings.create(host.model, &session, &host.err), AERIE_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(host.err.message, "aerie_tree_options"), nullptr) << host.err.message;
  EXPECT_EQ(session, nullptr) << "untouched on failure";
}

// What options point at has a size of its own, so that it grows without moving them.
TEST(StructSize, AStructBehindAPointerGrowsByItself) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK);
  aerie_session* session = nullptr;
  Settings settings;
  Framed<aerie_sampling> older(offsetof(aerie_sampling, top_p), 0xAB);
  older.get()->temperature = 0.8f;
  older.get()->seed = 5;
  Framed<aerie_tree_options> newer(sizeof(aerie_tree_options) + 16, 0);
  settings.options.sampling = older.get();
  settings.options.tree = newer.get();
  ASSERT_EQ(settings.create(host.model, &session, &host.err), AERIE_OK) << host.err.message;
  std::swap(session, host.session);
  aerie_session_release(session);
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(24, &out), AERIE_OK);
  EXPECT_EQ(out, plain_text());
  newer.bytes[sizeof(aerie_tree_options)] = 1;
  EXPECT_EQ(settings.create(host.model, &session, &host.err), AERIE_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(host.err.message, "aerie_tree_options"), nullptr) << host.err.message;
}

TEST(StructSize, ResultsStayWithinTheCallersStruct) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK);
  std::vector<int32_t> out;
  ASSERT_EQ(host.text(8, &out), AERIE_OK);
  constexpr uint32_t kOld = offsetof(aerie_statistics, full_cycles);
  Framed<aerie_statistics> old(kOld, 0xCD);
  ASSERT_EQ(aerie_session_statistics(host.session, old.get(), &host.err), AERIE_OK);
  EXPECT_EQ(old.get()->emitted, 8u);
  EXPECT_EQ(old.get()->struct_size, kOld);
  for (size_t i = kOld; i < sizeof old.bytes; ++i) ASSERT_EQ(old.bytes[i], 0xCD) << "byte " << i;
  constexpr uint32_t kNew = sizeof(aerie_statistics) + 24;
  Framed<aerie_statistics> newer(kNew, 0xCD);
  std::memset(newer.bytes + sizeof(aerie_statistics), 0xEE, 24);
  ASSERT_EQ(aerie_session_statistics(host.session, newer.get(), &host.err), AERIE_OK);
  EXPECT_EQ(newer.get()->emitted, 8u);
  for (size_t i = sizeof(aerie_statistics); i < kNew; ++i) EXPECT_EQ(newer.bytes[i], 0) << "a field we do not know reads as zero";
  for (size_t i = kNew; i < sizeof newer.bytes; ++i) ASSERT_EQ(newer.bytes[i], 0xCD) << "byte " << i;
}

TEST(StructSize, AForgottenSizeIsAnErrorThatSaysSo) {
  aerie_runtime_options options;
  std::memset(&options, 0, sizeof options);
  aerie_runtime* runtime = nullptr;
  aerie_error err;
  AERIE_INIT(err);
  EXPECT_EQ(aerie_runtime_create(&options, &runtime, &err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(err.message, "struct_size"), nullptr) << err.message;
  options.struct_size = 0xFFFFFFFFu;
  EXPECT_EQ(aerie_runtime_create(&options, &runtime, &err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(runtime, nullptr);
}

TEST(StructSize, AnErrorIsWrittenWithinItsSize) {
  for (const uint32_t size : {uint32_t{0}, uint32_t{4}, uint32_t{8}, uint32_t{9}, uint32_t{24}}) {
    Framed<aerie_error> err(size, 0xCD);
    EXPECT_EQ(aerie_model_open(nullptr, "x", nullptr, nullptr, err.get()), AERIE_E_INVALID_ARGUMENT);
    for (size_t i = std::max<size_t>(size, 4); i < sizeof err.bytes; ++i) ASSERT_EQ(err.bytes[i], 0xCD) << size << ": byte " << i;
    if (size >= 8) {
      EXPECT_EQ(err.get()->code, AERIE_E_INVALID_ARGUMENT);
    }
    if (size > 8) {
      EXPECT_EQ(err.bytes[size - 1], 0) << "cut, but a string";
    }
  }
  EXPECT_EQ(aerie_model_open(nullptr, "x", nullptr, nullptr, nullptr), AERIE_E_INVALID_ARGUMENT) << "err may be NULL";
}

}  // namespace
}  // namespace aerie_capi_test
