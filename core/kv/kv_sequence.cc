#include "core/kv/kv_pool.h"

#include <algorithm>

namespace aerie {

using kernels::kPageSlots;

namespace {
int32_t pages_of(int64_t positions) { return static_cast<int32_t>((positions + kPageSlots - 1) / kPageSlots); }
}  // namespace

KvSequence::KvSequence(std::shared_ptr<KvPool> pool, int64_t max_positions, int32_t scratch_slots)
    : pool_(std::move(pool)), state_(pool_->states()), scratch_pages_(pages_of(scratch_slots)) {
  const auto most = static_cast<size_t>(max_positions / kPageSlots + 1);
  pages_.reserve(most);
  scratch_.reserve(static_cast<size_t>(scratch_pages_));
  taken_.reserve(most + static_cast<size_t>(scratch_pages_));
}

KvSequence::~KvSequence() {
  pool_->give_back(pages_);
  pool_->give_back(scratch_);
}

// Nobody else can become a holder of a page with one holder: only its holders share it.
template <class F>
void KvSequence::each_shared(int64_t from, F&& f) const {
  for (auto i = static_cast<size_t>(from / kPageSlots); i < pages_.size(); ++i)
    if (pool_->holders(pages_[i]) > 1) f(i);
}

int32_t KvSequence::missing(int64_t n, int64_t from) const {
  int32_t count = std::max(0, pages_of(n) - static_cast<int32_t>(pages_.size()));
  if (scratch_.empty()) count += scratch_pages_;
  each_shared(from, [&](size_t) { ++count; });
  return count;
}

Status KvSequence::reserve(int64_t n, int64_t from) {
  AERIE_TRY(state_.reserve());
  taken_.clear();
  const int32_t wanted = missing(n, from);
  if (wanted == 0) return {};
  AERIE_TRY(pool_->take(wanted, &taken_));
  // A page of which something stays is copied before anything changes.
  const auto border = static_cast<size_t>(from / kPageSlots);
  const auto kept = static_cast<int32_t>(from % kPageSlots);
  if (kept > 0 && border < pages_.size() && pool_->holders(pages_[border]) > 1)
    if (Status s = pool_->copy(pages_[border], taken_.back(), kept); !s.ok()) {
      pool_->give_back(taken_);
      return s;
    }
  const auto next = [&] {
    const int32_t page = taken_.back();
    taken_.pop_back();
    return page;
  };
  each_shared(from, [&](size_t i) {
    const int32_t old = pages_[i];
    pages_[i] = next();
    pool_->give_back({&old, 1});
  });
  if (scratch_.empty())
    for (int32_t i = 0; i < scratch_pages_; ++i) scratch_.push_back(next());
  while (static_cast<int32_t>(pages_.size()) < pages_of(n)) pages_.push_back(next());
  pool_->give_back(taken_);  // another holder may have let go meanwhile
  return {};
}

void KvSequence::shrink(int64_t n) {
  const auto keep = static_cast<size_t>(pages_of(n));
  if (keep >= pages_.size()) return;
  pool_->give_back(std::span(pages_).subspan(keep));
  pages_.resize(keep);
}

void KvSequence::share(std::span<const int32_t> pages, int64_t n) {
  const std::span<const int32_t> first = pages.subspan(0, static_cast<size_t>(pages_of(n)));
  pool_->retain(first);
  pool_->give_back(pages_);
  pages_.assign(first.begin(), first.end());
}

void KvSequence::share(const KvSequence& other, int64_t n) {
  share(std::span<const int32_t>(other.pages_), n);
  state_.share(other.state_);
}
void KvSequence::share(const KvPages& pages, int64_t n) { share(std::span<const int32_t>(pages.ids()), n); }

}  // namespace aerie
