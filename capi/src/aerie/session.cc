// Session handle: one thread at a time, except cancel.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <thread>

#include "capi/src/aerie/handles.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

constexpr int32_t kMaxMoreDrafters = 15;
constexpr int32_t kMaxBiases = 1 << 20;

Status read_sampling(const aerie_sampling* in, kernels::Sampling* out, LogitOptions* logits) {
  aerie_sampling s;
  AERIE_TRY(read_struct(in, &s, "aerie_sampling"));
  out->seed = s.seed;
  out->stream = s.stream;
  out->temperature = s.temperature;
  out->top_k = s.top_k;
  out->top_p = s.top_p == 0 || s.top_p > 1 ? 1.0f : s.top_p;
  out->min_p = s.min_p;
  PenaltyOptions& p = logits->penalties;
  p.repetition = s.repetition_penalty == 0 ? 1.0f : s.repetition_penalty;
  p.presence = s.presence_penalty;
  p.frequency = s.frequency_penalty;
  p.window = s.penalty_window;
  if (s.n_logit_bias < 0 || s.n_logit_bias > kMaxBiases)
    return error(Code::invalid_argument, "sampling: n_logit_bias " + std::to_string(s.n_logit_bias));
  if (s.n_logit_bias > 0) AERIE_TRY(require(s.logit_bias, "sampling: logit_bias"));
  logits->biases.clear();
  for (int32_t i = 0; i < s.n_logit_bias; ++i) logits->biases.push_back({s.logit_bias[i].token, s.logit_bias[i].bias});
  return {};
}

// A field that the policy does not have would be a wish ignored.
Status check_tree_fields(const aerie_tree_options& t) {
  const auto among = [&](std::initializer_list<int32_t> policies) {
    return std::find(policies.begin(), policies.end(), t.policy) != policies.end();
  };
  const auto check = [&](const char* field, bool set, std::initializer_list<int32_t> policies) {
    return !set || among(policies) ? Status()
                                   : error(Code::invalid_argument, std::string("tree: ") + field + " is set, and this policy has none");
  };
  AERIE_TRY(check("nodes", t.nodes != 0, {AERIE_TREE_CHAIN, AERIE_TREE_EAGLE2, AERIE_TREE_CAST}));
  AERIE_TRY(check("depth", t.depth != 0, {AERIE_TREE_EAGLE2, AERIE_TREE_BACKBONE, AERIE_TREE_CAST}));
  AERIE_TRY(check("top_k", t.top_k != 0, {AERIE_TREE_EAGLE2, AERIE_TREE_BACKBONE, AERIE_TREE_CAST}));
  AERIE_TRY(check("n_paths", t.n_paths != 0, {AERIE_TREE_STATIC}));
  return check("threshold", t.threshold != 0, {AERIE_TREE_CAST});
}

Status read_tree(const aerie_tree_options* in, bool sampled, PolicySpec* out) {
  aerie_tree_options t;
  AERIE_TRY(read_struct(in, &t, "aerie_tree_options"));
  if (t.policy < AERIE_TREE_DEFAULT || t.policy > AERIE_TREE_AUTO)
    return error(Code::invalid_argument, "tree: policy " + std::to_string(t.policy));
  AERIE_TRY(check_tree_fields(t));
  *out = PolicySpec{};
  switch (t.policy) {
    case AERIE_TREE_CHAIN:
      out->name = "chain";
      if (t.nodes != 0) out->length = t.nodes;
      return {};
    case AERIE_TREE_STATIC: {
      out->name = "static";
      if (t.n_paths < 0 || t.n_paths > kMaxTreeNodes)
        return error(Code::invalid_argument, "tree: n_paths " + std::to_string(t.n_paths));
      if (t.n_paths > 0) AERIE_TRY(require(t.paths, "tree: paths"));
      const int32_t* p = t.paths;
      for (int32_t i = 0; i < t.n_paths; ++i) {
        std::vector<int32_t> path;
        for (; *p != -1; ++p) {
          if (*p < 0 || path.size() >= static_cast<size_t>(kMaxTreeLevels))
            return error(Code::invalid_argument, "tree: path " + std::to_string(i) + " is too long or has a negative rank");
          path.push_back(*p);
        }
        ++p;
        out->paths.push_back(std::move(path));
      }
      return {};
    }
    case AERIE_TREE_EAGLE2:
      out->name = "eagle2";
      if (t.nodes != 0) out->total = t.nodes;
      if (t.depth != 0) out->depth = t.depth == -1 ? 0 : t.depth;
      if (t.top_k != 0) out->top_k = t.top_k;
      return {};
    case AERIE_TREE_BACKBONE:
      out->name = "backbone";
      if (t.depth != 0) out->levels = t.depth;
      if (t.top_k != 0) out->top_k = t.top_k;
      return {};
    case AERIE_TREE_CAST:
      out->name = "cast";
      if (t.nodes != 0) out->cast.total = t.nodes;
      if (t.depth != 0) out->cast.depth = t.depth;
      if (t.top_k != 0) out->cast.top_k = t.top_k;
      if (t.threshold != 0) out->cast.threshold = static_cast<double>(t.threshold);
      return {};
    case AERIE_TREE_DEFAULT:  // the sampled rule needs a tree of fixed shape
      out->name = sampled ? "static" : "auto";
      return {};
    default: out->name = "auto"; return {};
  }
}

// What is held of the host's as long as a session or its forks read tokens with it.
class HeldSource {
 public:
  explicit HeldSource(const aerie_token_source& source) : source_(source) {
    if (source_.hold) source_.hold(source_.user);
  }
  ~HeldSource() {
    if (source_.release) source_.release(source_.user);
  }
  HeldSource(const HeldSource&) = delete;
  HeldSource& operator=(const HeldSource&) = delete;
  bool bytes(int32_t token, int32_t previous, std::string_view* out) const {
    const char* data = nullptr;
    const int32_t size = source_.bytes(source_.user, token, previous, &data);
    if (size < 0 || (size > 0 && !data)) return false;
    *out = std::string_view(data ? data : "", static_cast<size_t>(size));
    return true;
  }

 private:
  const aerie_token_source source_;
};

StopScanner::TokenBytes token_bytes(const aerie_token_source& source) {
  return [held = std::make_shared<const HeldSource>(source)](int32_t token, int32_t previous, std::string_view* bytes) {
    return held->bytes(token, previous, bytes);
  };
}

}  // namespace

namespace aerie::capi {

Status last_result(aerie_session* session, aerie_step_result* out) {
  AERIE_TRY(session->session->status());
  const StepResult r = session->session->result();
  session->tokens.clear();
  for (const EmittedToken& t : r.tokens) {
    aerie_token token{};
    token.id = t.id;
    token.logprob = t.logprob;
    token.drafted = t.drafted;
    session->tokens.push_back(token);
  }
  aerie_step_result result{};
  result.state = static_cast<int32_t>(r.state);
  result.tokens = session->tokens.data();
  result.n_tokens = static_cast<int32_t>(session->tokens.size());
  result.finish = static_cast<int32_t>(r.finish);
  result.stop_bytes = r.stop_bytes;
  write_result(result, out);
  return {};
}

Status read_step(const aerie_step_options* in, int32_t* max_tokens, std::chrono::microseconds* budget) {
  aerie_step_options o;
  AERIE_TRY(read_struct(in, &o, "aerie_step_options"));
  *max_tokens = o.max_tokens;
  *budget = std::chrono::microseconds(o.budget_us);
  return {};
}

Status read_session(const aerie_session_options* in, SessionOptions* out) {
  aerie_session_options o;
  AERIE_TRY(read_struct(in, &o, "aerie_session_options"));
  SessionOptions& s = *out;
  s.max_context = o.max_context;
  if (o.drafter) s.drafter = o.drafter->drafter;
  if (o.n_more_drafters < 0 || o.n_more_drafters > kMaxMoreDrafters)
    return error(Code::invalid_argument, "n_more_drafters: " + std::to_string(o.n_more_drafters));
  if (o.n_more_drafters > 0) {
    AERIE_TRY(require(o.more_drafters, "more_drafters"));
    AERIE_TRY(require(o.drafter, "more_drafters without drafter"));
  }
  for (int32_t i = 0; i < o.n_more_drafters; ++i) {
    AERIE_TRY(require(o.more_drafters[i], ("more_drafters: number " + std::to_string(i)).c_str()));
    s.more_drafters.push_back(o.more_drafters[i]->drafter);
  }
  AERIE_TRY(read_sampling(o.sampling, &s.sampling, &s.logits));
  AERIE_TRY(read_tree(o.tree, o.verify == AERIE_VERIFY_SAMPLED, &s.tree));
  if (o.draft_noise != AERIE_NOISE_SHARED && o.draft_noise != AERIE_NOISE_NONE)
    return error(Code::invalid_argument, "draft_noise: " + std::to_string(o.draft_noise));
  if (o.verify != AERIE_VERIFY_EXACT && o.verify != AERIE_VERIFY_SAMPLED)
    return error(Code::invalid_argument, "verify: " + std::to_string(o.verify));
  s.shared_noise = o.draft_noise == AERIE_NOISE_SHARED;
  s.sampled_rule = o.verify == AERIE_VERIFY_SAMPLED;
  s.ignore_eos = o.ignore_eos != 0;
  s.foresight = o.no_foresight == 0;
  if (o.n_stop_tokens < 0) return error(Code::invalid_argument, "n_stop_tokens: " + std::to_string(o.n_stop_tokens));
  if (o.n_stop_tokens > 0) {
    AERIE_TRY(require(o.stop_tokens, "stop_tokens"));
    s.stop_tokens.assign(o.stop_tokens, o.stop_tokens + o.n_stop_tokens);
  }
  return {};
}

std::unique_ptr<aerie_session> session_handle(const std::shared_ptr<Runtime>& runtime) {
  auto handle = std::make_unique<aerie_session>();
  handle->runtime = runtime;
  handle->tokens.reserve(kMaxTreeNodes);  // what a step has committed is handed out without memory
  return handle;
}

}  // namespace aerie::capi

extern "C" {

int32_t aerie_session_create(aerie_model* model, const aerie_session_options* options, aerie_session** out,
                             aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(out, "out"));
    SessionOptions s;
    AERIE_TRY(read_session(options, &s));
    auto handle = session_handle(model->runtime);
    AERIE_ASSIGN(handle->session, Session::create(model->model, std::move(s)));
    *out = handle.release();
    return {};
  });
}

void aerie_session_release(aerie_session* session) {
  if (!session) return;
  std::shared_ptr<std::atomic<int32_t>> leaving;
  for (;;) {
    {
      const Hold hold(session);
      if (hold) {
        if (session->batch) std::erase(session->batch->sessions, session);
        session->session.reset();  // leaves the batch
        break;
      }
    }
    if (const HoldFlag own(session->busy); own && session->batch && !leaving) {
      leaving = session->batch->leaving;
      leaving->fetch_add(1);
    }
    session->session->request_cancel();
    std::this_thread::yield();
  }
  if (leaving) leaving->fetch_sub(1);
  delete session;
}

int32_t aerie_session_set_stop_strings(aerie_session* session, const char* const* strings, int32_t n,
                                       const aerie_token_source* source, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    if (n < 0 || n > 256) return error(Code::invalid_argument, "stop strings: n is " + std::to_string(n));
    std::vector<std::string> list;
    if (n > 0) {
      AERIE_TRY(require(strings, "strings"));
      AERIE_TRY(require(source, "source"));
    }
    for (int32_t i = 0; i < n; ++i) {
      AERIE_TRY(require(strings[i], ("stop string " + std::to_string(i)).c_str()));
      list.emplace_back(strings[i]);
      if (list.back().empty()) return error(Code::invalid_argument, "stop string " + std::to_string(i) + " is empty");
    }
    aerie_token_source from;
    AERIE_TRY(read_struct(source, &from, "aerie_token_source"));
    if (n > 0 && !from.bytes) return error(Code::invalid_argument, "aerie_token_source: bytes is NULL");
    if ((from.hold == nullptr) != (from.release == nullptr))
      return error(Code::invalid_argument, "aerie_token_source: set hold and release, or none");
    if (n == 0) s.set_stop_strings({}, nullptr);
    else s.set_stop_strings(std::move(list), token_bytes(from));
    return {};
  });
}

int32_t aerie_session_append(aerie_session* session, const int32_t* tokens, size_t n, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    if (n > 0) AERIE_TRY(require(tokens, "tokens"));
    return s.append({tokens, n});
  });
}

int32_t aerie_session_rewind(aerie_session* session, size_t length, aerie_error* err) {
  return on_session(session, err, [&](Session& s) { return s.rewind(length); });
}

int32_t aerie_session_set_sampling(aerie_session* session, const aerie_sampling* sampling, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(sampling, "sampling"));
    kernels::Sampling k;
    LogitOptions logits;
    AERIE_TRY(read_sampling(sampling, &k, &logits));
    return s.set_sampling(k, logits);
  });
}

int32_t aerie_session_set_tree(aerie_session* session, const aerie_tree_options* tree, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(tree, "tree"));
    PolicySpec spec;
    AERIE_TRY(read_tree(tree, s.sampled_rule(), &spec));
    return s.set_tree(spec);
  });
}

int32_t aerie_session_fork(aerie_session* session, const aerie_fork_options* options, aerie_session** out,
                           aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(out, "out"));
    aerie_fork_options o;
    AERIE_TRY(read_struct(options, &o, "aerie_fork_options"));
    auto handle = session_handle(session->runtime);
    AERIE_ASSIGN(handle->session, s.fork(o.stream));
    *out = handle.release();
    return {};
  });
}

void aerie_session_cancel(aerie_session* session) {
  if (session) session->session->request_cancel();
}

void aerie_session_clear_cancel(aerie_session* session) {
  if (session) session->session->clear_cancel();
}

int32_t aerie_session_step(aerie_session* session, const aerie_step_options* options, aerie_step_result* out,
                           aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(check_result(out, "aerie_step_result"));
    int32_t max_tokens = 0;
    std::chrono::microseconds budget{};
    AERIE_TRY(read_step(options, &max_tokens, &budget));
    StepResult r;
    const SteppedBatch none(nullptr);  // a batch whose step this one is run inside of, as a host's job, asks for no room here
    AERIE_TRY(s.step(max_tokens, budget, &r));
    return last_result(session, out);
  });
}

int32_t aerie_session_result(aerie_session* session, aerie_step_result* out, aerie_error* err) {
  return on_session(session, err, [&](Session&) -> Status {
    AERIE_TRY(check_result(out, "aerie_step_result"));
    return last_result(session, out);
  });
}

int32_t aerie_session_tokens(aerie_session* session, const int32_t** tokens, size_t* n, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(tokens, "tokens"));
    AERIE_TRY(require(n, "n"));
    *tokens = s.tokens().data();
    *n = s.tokens().size();
    return {};
  });
}

int32_t aerie_session_statistics(aerie_session* session, aerie_statistics* out, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(check_result(out, "aerie_statistics"));
    const SessionStatistics& k = s.statistics();
    aerie_statistics a{};
    a.quarantined = s.quarantined();
    a.emitted = k.emitted;
    a.cycles = k.cycles;
    a.full_cycles = k.full_cycles;
    a.full_emitted = k.full_emitted;
    a.proposed = k.proposed;
    a.verified = k.verified;
    a.accepted = k.accepted;
    a.drafter_failures = k.drafter_failures;
    a.prefill_ns = k.prefill_ns;
    a.draft_ns = k.draft_ns;
    a.verify_ns = k.verify_ns;
    a.other_ns = k.other_ns;
    a.prefill_tokens = k.prefill_tokens;
    a.draft_passes = k.draft_passes;
    static_assert(sizeof a.tried == sizeof k.tried && sizeof a.taken == sizeof k.taken);
    std::copy(std::begin(k.tried), std::end(k.tried), a.tried);
    std::copy(std::begin(k.taken), std::end(k.taken), a.taken);
    a.reused_tokens = k.reused_tokens;
    a.chosen_drafter = k.chosen_drafter;
    a.chosen_nodes = k.chosen_nodes;
    a.chosen_depth = k.chosen_depth;
    a.plain_cycles = k.plain_cycles;
    a.foreseen_verified = k.foreseen_verified;
    a.foreseen_accepted = k.foreseen_accepted;
    static_assert(sizeof a.chosen_cycles == sizeof k.chosen_cycles);
    std::copy(std::begin(k.chosen_cycles), std::end(k.chosen_cycles), a.chosen_cycles);
    write_result(a, out);
    return {};
  });
}

}  // extern "C"
