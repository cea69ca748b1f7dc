// Drafters of the C++ helper that throw, each in another callback. Test only.
#include <stdexcept>
#include <string>

#include "aerie/drafter.hpp"

namespace {

constexpr uint32_t kHost = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
enum class In { create, open, begin, propose_host };

template <In where>
struct Thrower : aerie::Drafter {
  static constexpr const char* kIds[] = {"words_create", "words_open", "words_begin", "words_propose_host"};
  static constexpr aerie::DrafterAbout about = {kIds[static_cast<int>(where)], "Throws", "1", kHost, 0};
  static int32_t reach(In here) {
    if (here == where) throw std::runtime_error("the words of " + std::string(about.id));
    return AERIE_D_OK;
  }
  Thrower() { reach(In::create); }
  int32_t open(const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) { return reach(In::open); }
  int32_t begin(int32_t) { return reach(In::begin); }
  int32_t propose_host(const aerie_host_context*, aerie_host_candidates*) { return reach(In::propose_host); }
};

}  // namespace

AERIE_DRAFTER_PLUGIN(Thrower<In::create>, Thrower<In::open>, Thrower<In::begin>, Thrower<In::propose_host>)
