/* A drafter plugin as a C++20 class. Header only, and nothing beside drafter.h: what a class of this kind can do, a C
 * plugin can do with the tables there, which also say what every call means.
 *
 *   struct Repeat : aerie::Drafter {
 *     static constexpr aerie::DrafterAbout about = {"repeat", "Guesses a repetition", "1.0",
 *                                                   AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE, 0};
 *     int32_t open(const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) { return AERIE_D_OK; }
 *     int32_t propose_host(const aerie_host_context*, aerie_host_candidates*);
 *   };
 *   AERIE_DRAFTER_PLUGIN(Repeat)
 *
 * open is required; begin, end, observe, propose, propose_host, rollback and get_extension are entered into the table if
 * the class has them as public functions, with the parameters of aerie_drafter's members but for `self`; one that its flags
 * ask for, rollback or get_extension that is private or overloaded does not compile. No exception leaves the plugin:
 * std::bad_alloc becomes AERIE_D_NO_MEMORY, any other AERIE_D_FAILED. What a std::exception says is the error's message in create
 * and open, and goes to the host's log elsewhere. */
#ifndef AERIE_DRAFTER_HPP
#define AERIE_DRAFTER_HPP

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

#include "aerie/drafter.h"

namespace aerie {

/* Services a drafter cannot do without (DrafterAbout::services). */
enum : uint32_t { kDrafterCompute = 1, kDrafterPackage = 2, kDrafterModel = 4, kDrafterLayers = 8, kDrafterBlock = 16 };

/* What describe answers, and the services that create insists on. */
struct DrafterAbout {
  const char *id, *title, *version;
  uint32_t flags;    /* AERIE_DRAFTER_* */
  uint32_t services; /* kDrafter* */
};

/* Writes the message into err, if there is one, and returns the code. */
inline int32_t drafter_fail(aerie_drafter_error* err, int32_t code, const char* message) {
  if (err && err->struct_size >= sizeof *err) {
    err->code = code;
    std::snprintf(err->message, sizeof err->message, "%s", message);
  }
  return code;
}

/* Base of a drafter class: the host and its services, set before open; those not asked for may be NULL. */
struct Drafter {
  const aerie_drafter_host* host = nullptr;
  const aerie_service_compute* compute = nullptr;
  const aerie_service_package* package = nullptr;
  const aerie_service_model* model = nullptr;
  const aerie_service_layers* layers = nullptr;
  const aerie_service_block* block = nullptr;

  int32_t begin(int32_t /*seq*/) { return AERIE_D_OK; }
  void end(int32_t /*seq*/) {}

  /* For open: the KV cache of `layers` layers shaped as `layer`, RoPE as the package says. One a drafter. */
  int32_t open_kv(const aerie_package* p, const aerie_decoder_layer& layer, int32_t layers, aerie_kv** out, aerie_drafter_error* err) {
    aerie_kv_desc desc{};
    desc.struct_size = sizeof desc;
    desc.layers = layers;
    desc.kv_heads = layer.kv_heads;
    desc.head_dim = layer.head_dim;
    desc.rope_theta = static_cast<float>(package->param(p, "rope_theta", 10000));
    const int32_t code = compute->kv_create(host, &desc, out);
    return code ? drafter_fail(err, code, "no room for the KV cache") : AERIE_D_OK;
  }

  int32_t find_services(const aerie_drafter_host* from, uint32_t wanted, aerie_drafter_error* err) {
    host = from;
    const auto missing = [&](uint32_t bit, auto*& service, const char* id) {
      if (!(wanted & bit)) return false;
      service = static_cast<std::remove_reference_t<decltype(service)>>(host->get_service(host, id));
      if (service) return false;
      char message[128];
      std::snprintf(message, sizeof message, "the host lacks %s", id);
      drafter_fail(err, AERIE_D_UNSUPPORTED, message);
      return true;
    };
    const bool lacks = missing(kDrafterCompute, compute, AERIE_SERVICE_COMPUTE) ||
                       missing(kDrafterPackage, package, AERIE_SERVICE_PACKAGE) ||
                       missing(kDrafterModel, model, AERIE_SERVICE_MODEL) ||
                       missing(kDrafterLayers, layers, AERIE_SERVICE_LAYERS) ||
                       missing(kDrafterBlock, block, AERIE_SERVICE_BLOCK);
    return lacks ? AERIE_D_UNSUPPORTED : AERIE_D_OK;
  }
};

/* Hidden, for GCC and glibc give what is static in a template one place in a process, whatever library it is in: two plugins
 * with a class of one name, as two versions of one have it, would share the first one's table. */
#if defined(__GNUC__) && !defined(_WIN32)
#define AERIE_DRAFTER_HIDDEN __attribute__((visibility("hidden")))
#else
#define AERIE_DRAFTER_HIDDEN
#endif
namespace drafter_detail AERIE_DRAFTER_HIDDEN {

/* `tell` is called with what an exception says. */
template <class F, class Tell>
int32_t guarded(const F& call, [[maybe_unused]] const Tell& tell) noexcept {
#if defined(__cpp_exceptions)
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return AERIE_D_NO_MEMORY;
  } catch (const std::exception& e) {
    tell(e.what());
    return AERIE_D_FAILED;
  } catch (...) {
    return AERIE_D_FAILED;
  }
#else
  return call();
#endif
}

/* A callback of a drafter that is there: an answer has no room for words, the log has. */
template <class T, class F>
int32_t called(void* self, const char* name, const F& call) noexcept {
  T& drafter = *static_cast<T*>(self);
  return guarded([&] { return call(drafter); }, [&](const char* what) {
    const aerie_drafter_host* host = static_cast<const Drafter&>(drafter).host;
    const auto* log = static_cast<const aerie_service_log*>(host->get_service(host, AERIE_SERVICE_LOG));
    if (!log) return;
    char message[256];
    std::snprintf(message, sizeof message, "%s: %s", name, what);
    log->log(host, 1, message);
  });
}

/* A member that is meant for the table and cannot be called from here (private, overloaded, a template) would be left out
 * in silence. A name that a class has is ambiguous beside one of these, whatever it names. */
struct Names {
  int observe, propose, propose_host, rollback, get_extension;
};
template <class T>
struct Named : T, Names {};

#define AERIE_DRAFTER_HAS(name, meant)                                                           \
  [] {                                                                                           \
    constexpr bool has = requires { &T::name; };                                                 \
    if constexpr ((meant) && !has && !std::is_final_v<T>)                                        \
      static_assert(requires { &Named<T>::name; }, #name " is not public, or not one function"); \
    return has;                                                                                  \
  }()

/* aerie_drafter's functions for a class T. */
template <class T>
int32_t create(const aerie_drafter_host* host, aerie_drafter* out, aerie_drafter_error* err) {
  [[maybe_unused]] constexpr bool of_host = (T::about.flags & AERIE_DRAFTER_HOST_TOKENS) != 0;
  T* drafter = nullptr;
  int32_t code = guarded(
      [&] {
        drafter = new T;
        return drafter->find_services(host, T::about.services, err);
      },
      [&](const char* what) { drafter_fail(err, AERIE_D_FAILED, what); });
  if (code != AERIE_D_OK) {
    delete drafter;
    return code;
  }
  out->self = drafter;
  out->destroy = [](void* self) { delete static_cast<T*>(self); };
  out->open = [](void* self, const aerie_drafter_open_info* info, aerie_drafter_needs* needs, aerie_drafter_error* e) {
    return guarded([&] { return static_cast<T*>(self)->open(info, needs, e); },
                   [&](const char* what) { drafter_fail(e, AERIE_D_FAILED, what); });
  };
  out->begin = [](void* self, int32_t seq) { return called<T>(self, "begin", [&](T& d) { return d.begin(seq); }); };
  out->end = [](void* self, int32_t seq) {
    (void)called<T>(self, "end", [&](T& d) { return d.end(seq), AERIE_D_OK; });
  };
  if constexpr (AERIE_DRAFTER_HAS(observe, !of_host))
    out->observe = [](void* self, aerie_plan* plan, const aerie_draft_rows* rows) {
      return called<T>(self, "observe", [&](T& d) { return d.observe(plan, rows); });
    };
  if constexpr (AERIE_DRAFTER_HAS(propose, !of_host))
    out->propose = [](void* self, aerie_plan* plan, const aerie_draft_rows* rows, aerie_candidates* candidates) {
      return called<T>(self, "propose", [&](T& d) { return d.propose(plan, rows, candidates); });
    };
  if constexpr (AERIE_DRAFTER_HAS(propose_host, of_host))
    out->propose_host = [](void* self, const aerie_host_context* context, aerie_host_candidates* candidates) {
      return called<T>(self, "propose_host", [&](T& d) { return d.propose_host(context, candidates); });
    };
  if constexpr (AERIE_DRAFTER_HAS(rollback, true))
    out->rollback = [](void* self, int32_t seq, int32_t len) {
      return called<T>(self, "rollback", [&](T& d) { return d.rollback(seq, len); });
    };
  if constexpr (AERIE_DRAFTER_HAS(get_extension, true))
    out->get_extension = [](void* self, const char* id) {
      const void* table = nullptr; /* an exception: unknown */
      (void)called<T>(self, "get_extension", [&](T& d) { return table = d.get_extension(id), AERIE_D_OK; });
      return table;
    };
  return AERIE_D_OK;
}

#undef AERIE_DRAFTER_HAS

/* The plugin's table, for one drafter or several. */
template <class... T>
struct Plugin {
  static int32_t describe(uint32_t i, aerie_drafter_desc* out) {
    static constexpr DrafterAbout all[] = {T::about...};
    if (i >= sizeof...(T)) return AERIE_D_INVALID;
    out->flags = all[i].flags;
    std::snprintf(out->id, sizeof out->id, "%s", all[i].id);
    std::snprintf(out->title, sizeof out->title, "%s", all[i].title);
    std::snprintf(out->version, sizeof out->version, "%s", all[i].version);
    return AERIE_D_OK;
  }
  static int32_t create(const aerie_drafter_host* host, const char* id, aerie_drafter* out, aerie_drafter_error* err) {
    int32_t code = AERIE_D_INVALID;
    (void)((std::strcmp(id, T::about.id) == 0 && (code = drafter_detail::create<T>(host, out, err), true)) || ...);
    return code;
  }
  static const aerie_drafter_plugin_table* table() {
    static constexpr aerie_drafter_plugin_table it = {sizeof it, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
                                                      describe, create};
    return &it;
  }
};

}  // namespace drafter_detail
#undef AERIE_DRAFTER_HIDDEN
}  // namespace aerie

/* The plugin's one exported symbol: AERIE_DRAFTER_PLUGIN(Class...), outside of every namespace. */
#define AERIE_DRAFTER_PLUGIN(...)                                                         \
  extern "C" const aerie_drafter_plugin_table* aerie_drafter_plugin_entry(void) {         \
    return aerie::drafter_detail::Plugin<__VA_ARGS__>::table();                           \
  }

#endif /* AERIE_DRAFTER_HPP */
