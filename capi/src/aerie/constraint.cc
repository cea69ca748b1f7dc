// A host's constraint as the core knows it.
#include <memory>

#include "capi/src/aerie/handles.h"
#include "core/sampling/constraint.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

Status answered(int32_t code, const char* function) {
  if (code == AERIE_OK) return {};
  const bool known = code > AERIE_OK && code <= AERIE_E_INTERNAL;
  return error(known ? static_cast<Code>(code) : Code::invalid_argument,
               std::string(function) + " answered " + (known ? aerie_code_name(code) : std::to_string(code)));
}

// Held as long as a session or a state has it.
class HeldConstraint {
 public:
  explicit HeldConstraint(const aerie_constraint& functions) : f(functions) {
    if (f.hold) f.hold(f.user);
  }
  ~HeldConstraint() {
    if (f.release) f.release(f.user);
  }
  HeldConstraint(const HeldConstraint&) = delete;
  HeldConstraint& operator=(const HeldConstraint&) = delete;

  const aerie_constraint f;
};

class HostState final : public ConstraintState {
 public:
  explicit HostState(std::shared_ptr<const HeldConstraint> held) : held_(std::move(held)) {}
  ~HostState() override {
    if (state_) held_->f.destroy(held_->f.user, state_);
  }
  Status begin() { return take(held_->f.begin(held_->f.user, &state_), "begin"); }
  Result<std::unique_ptr<ConstraintState>> copy() const override {
    auto twin = std::make_unique<HostState>(held_);
    AERIE_TRY(twin->take(held_->f.copy(held_->f.user, state_, &twin->state_), "copy").at("constraint"));
    return std::unique_ptr<ConstraintState>(std::move(twin));
  }
  Status allowed(std::span<uint32_t> mask) override {
    return answered(held_->f.allowed(held_->f.user, state_, mask.data(), mask.size()), "allowed");
  }
  Status accept(int32_t token) override { return answered(held_->f.accept(held_->f.user, state_, token), "accept"); }
  Status forced(size_t most, std::vector<int32_t>* tokens) override {
    if (!held_->f.forced) return {};
    tokens->resize(most);
    size_t n = 0;
    const Status s = answered(held_->f.forced(held_->f.user, state_, tokens->data(), most, &n), "forced");
    tokens->resize(s.ok() && n <= most ? n : 0);
    return s;
  }

 private:
  Status take(int32_t code, const char* function) {
    if (code != AERIE_OK) state_ = nullptr;
    AERIE_TRY(answered(code, function));
    return state_ ? Status() : error(Code::invalid_argument, std::string(function) + " gave no state");
  }

  std::shared_ptr<const HeldConstraint> held_;
  void* state_ = nullptr;
};

class HostConstraint final : public Constraint {
 public:
  explicit HostConstraint(const aerie_constraint& functions) : held_(std::make_shared<const HeldConstraint>(functions)) {}
  Result<std::unique_ptr<ConstraintState>> begin() const override {
    auto state = std::make_unique<HostState>(held_);
    AERIE_TRY(state->begin().at("constraint"));
    return std::unique_ptr<ConstraintState>(std::move(state));
  }

 private:
  std::shared_ptr<const HeldConstraint> held_;
};

}  // namespace

extern "C" int32_t aerie_session_set_constraint(aerie_session* session, const aerie_constraint* constraint, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    if (!constraint) return s.set_constraint(nullptr);
    aerie_constraint c;
    AERIE_TRY(read_struct(constraint, &c, "aerie_constraint"));
    if (!c.begin || !c.copy || !c.allowed || !c.accept || !c.destroy)
      return error(Code::invalid_argument, "aerie_constraint: begin, copy, allowed, accept or destroy is NULL");
    if ((c.hold == nullptr) != (c.release == nullptr))
      return error(Code::invalid_argument, "aerie_constraint: set hold and release, or none");
    return s.set_constraint(std::make_shared<const HostConstraint>(c));
  });
}
