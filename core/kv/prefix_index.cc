#include "core/kv/prefix_index.h"

#include <xxhash.h>

#include <algorithm>
#include <new>

namespace aerie {

using kernels::kPageSlots;

namespace {

uint64_t xxhash(std::span<const int32_t> tokens, uint64_t before) {
  return XXH64(tokens.data(), tokens.size_bytes(), before);
}

// The token after a page, where the drafter looks ahead and the text goes on.
int32_t token_after(std::span<const int32_t> text, int64_t page, const DraftRows& draft) {
  const auto at = static_cast<size_t>((page + 1) * kPageSlots);
  return draft.looks_ahead && at < text.size() ? text[at] : -1;
}

}  // namespace

PrefixIndex::PrefixIndex(std::shared_ptr<KvPool> pool, Hash hash)
    : pool_(std::move(pool)), hash_(hash ? hash : xxhash) {}

PrefixIndex::~PrefixIndex() {
  while (!entries_.empty()) drop(entries_.begin());
}

PrefixIndex::Entries::iterator PrefixIndex::at(uint64_t hash, uint64_t id) {
  const auto found = by_hash_.find(hash);
  return found != by_hash_.end() && found->second->id == id ? found->second : entries_.end();
}

// The page of `text` that follows `place`. The chain before it was confirmed, so its own tokens are what is left to ask.
PrefixIndex::Entries::iterator PrefixIndex::next(const PrefixPlace& place, std::span<const int32_t> text, uint64_t* hash) {
  const auto tokens = page_of(text, place.pages);
  *hash = hash_(tokens, place.hash);
  const auto found = by_hash_.find(*hash);
  if (found == by_hash_.end()) return entries_.end();
  const Entry& e = *found->second;
  const bool same = e.before_id == place.id && std::equal(tokens.begin(), tokens.end(), e.tokens.begin());
  return same ? found->second : entries_.end();
}

void PrefixIndex::keep(PrefixPlace* place, std::span<const int32_t> text, const KvSequence& target, int64_t pages,
                       std::span<const DraftRows> drafts) {
  if (place->pages >= pages) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (place->pages > 0 && at(place->hash, place->id) == entries_.end()) *place = {};  // dropped meanwhile
  bool follows = true;
  for (PrefixPlace here = *place; here.pages < pages;) {
    uint64_t hash = 0;
    auto entry = next(here, text, &hash);
    if (entry == entries_.end()) entry = add(here, hash, page_of(text, here.pages), target.pages()[static_cast<size_t>(here.pages)]);
    if (entry == entries_.end()) return;
    for (const DraftRows& draft : drafts) follows = keep_draft(&*entry, text, here.pages, draft) && follows;
    here = {here.pages + 1, hash, entry->id};
    if (follows) *place = here;
  }
}

// Behind the page that it follows: it goes first.
PrefixIndex::Entries::iterator PrefixIndex::add(const PrefixPlace& before, uint64_t hash, std::span<const int32_t> tokens,
                                                int32_t page) {
  // One that hangs on a page that is gone, or collides.
  if (const auto other = by_hash_.find(hash); other != by_hash_.end()) drop(other->second);
  auto where = entries_.begin();
  if (before.pages > 0) {
    where = at(before.hash, before.id);
    if (where == entries_.end()) return where;  // that was the one dropped
    ++where;
  }
  const auto entry = entries_.insert(where, Entry{hash, ++last_id_, before.hash, before.id, {}, page, {}});
  std::copy(tokens.begin(), tokens.end(), entry->tokens.begin());
  try {
    by_hash_.emplace(hash, entry);
  } catch (const std::bad_alloc&) {
    entries_.erase(entry);
    throw;
  }
  pool_->keep(page);
  return entry;
}

// False: the drafter's rows are not there yet.
bool PrefixIndex::keep_draft(Entry* entry, std::span<const int32_t> text, int64_t page, const DraftRows& draft) {
  if (!draft.kv) return true;
  if (draft.rows < (page + 1) * kPageSlots) return false;
  const int32_t next = token_after(text, page, draft);
  for (const DraftPage& d : entry->drafts)
    if (d.next == next && d.pool.lock() == draft.kv->pool()) return true;
  const int32_t own = draft.kv->pages()[static_cast<size_t>(page)];
  entry->drafts.push_back({draft.kv->pool(), own, next});
  draft.kv->pool()->keep(own);
  return true;
}

Prefix PrefixIndex::find(std::span<const int32_t> text, std::span<const DraftRows> drafts) {
  struct Chain {
    bool follows;
    std::vector<int32_t> pages;
  };
  Prefix found;
  found.drafts.resize(drafts.size());
  const auto most = text.empty() ? size_t{0} : (text.size() - 1) / kPageSlots;
  std::vector<int32_t> target;
  target.reserve(most);
  std::vector<Chain> chains;
  for (const DraftRows& draft : drafts) chains.push_back({draft.kv != nullptr, {}});
  for (Chain& chain : chains) chain.pages.reserve(most);
  const std::lock_guard<std::mutex> lock(mutex_);
  while (target.size() < most) {
    uint64_t hash = 0;
    const auto entry = next(found.place, text, &hash);
    if (entry == entries_.end()) break;
    for (size_t i = 0; i < drafts.size(); ++i) {
      if (!chains[i].follows) continue;
      // Without the right token after it, all of a drafter's page but its last row holds.
      const DraftPage* best = nullptr;
      const int32_t next = token_after(text, found.place.pages, drafts[i]);
      for (const DraftPage& d : entry->drafts)
        if (d.pool.lock() == drafts[i].kv->pool() && (!best || d.next == next)) best = &d;
      chains[i].follows = best && best->next == next;
      if (best) chains[i].pages.push_back(best->page);
      if (best) found.drafts[i].rows += chains[i].follows ? kPageSlots : kPageSlots - 1;
    }
    target.push_back(entry->page);
    found.place = {found.place.pages + 1, hash, entry->id};
  }
  pool_->retain(target);
  found.target = {pool_, std::move(target)};
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (!drafts[i].kv) continue;
    drafts[i].kv->pool()->retain(chains[i].pages);
    found.drafts[i].pages = {drafts[i].kv->pool(), std::move(chains[i].pages)};
  }
  touch_chain(found.place);
  return found;
}

bool PrefixIndex::has_more(const PrefixPlace& place, std::span<const int32_t> text) {
  if ((place.pages + 1) * kPageSlots >= static_cast<int64_t>(text.size())) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t hash = 0;
  return next(place, text, &hash) != entries_.end();
}

void PrefixIndex::touch(const PrefixPlace& place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  touch_chain(place);
}

// To the front, the first page of the text foremost: what hangs on a page goes before it does.
void PrefixIndex::touch_chain(const PrefixPlace& place) {
  if (place.pages == 0) return;
  for (auto e = at(place.hash, place.id); e != entries_.end(); e = at(e->before_hash, e->before_id))
    entries_.splice(entries_.begin(), entries_, e);
}

void PrefixIndex::drop(Entries::iterator entry) {
  pool_->unkeep(entry->page);
  for (const DraftPage& d : entry->drafts)
    if (const auto pool = d.pool.lock()) pool->unkeep(d.page);
  by_hash_.erase(entry->hash);
  entries_.erase(entry);
}

bool PrefixIndex::drop_one(KvPool& pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto frees = [&](const Entry& e) {
    if (&pool == pool_.get()) return pool.holders(e.page) == 1;
    return std::any_of(e.drafts.begin(), e.drafts.end(),
                       [&](const DraftPage& d) { return d.pool.lock().get() == &pool && pool.holders(d.page) == 1; });
  };
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), frees);
  if (last == entries_.rend()) return false;
  drop(std::prev(last.base()));
  return true;
}

size_t PrefixIndex::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace aerie
