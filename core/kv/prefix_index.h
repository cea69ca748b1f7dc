// PrefixIndex: full pages of texts, kept for later texts that begin alike. A page is found by a hash of its tokens
// chained to the page before it, and taken only when the tokens themselves are equal. Kept pages count as free:
// when a pool is short, those found least recently and held by nobody else go first.
//
// The pages of drafters, each from a pool of its own, stand beside the target's, since their rows follow the same tokens.
// A drafter that reads features looks one token ahead (row j pairs feature j with token j + 1), so its page also depends
// on the first token of the next one; there may be several of a page.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/kv/kv_pool.h"

namespace aerie {

// Where a text stands in the index: its first `pages` pages are kept.
struct PrefixPlace {
  int64_t pages = 0;
  uint64_t hash = 0, id = 0;  // of the last of them
};

// A drafter's side of a text.
struct DraftRows {
  const KvSequence* kv = nullptr;  // null: nothing to keep or to find
  int64_t rows = 0;
  bool looks_ahead = false;
};

// What is kept of a text's beginning.
struct Prefix {
  struct Draft {
    KvPages pages;
    int64_t rows = 0;  // that hold for this text
  };
  KvPages target;
  PrefixPlace place;          // how far `target` goes
  std::vector<Draft> drafts;  // one for each drafter asked for
};

// Thread-safe.
class PrefixIndex {
 public:
  using Hash = uint64_t (*)(std::span<const int32_t> tokens, uint64_t before);
  explicit PrefixIndex(std::shared_ptr<KvPool> pool, Hash hash = nullptr);  // null: xxHash
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // Keep the first `pages` pages of a text, of which place->pages are kept already. The place moves on as far as the rows
  // of every drafter are kept too.
  void keep(PrefixPlace* place, std::span<const int32_t> text, const KvSequence& target, int64_t pages,
            std::span<const DraftRows> drafts);
  // The longest beginning of `text` that is kept, less than all of it.
  Prefix find(std::span<const int32_t> text, std::span<const DraftRows> drafts);
  // More of `text` than `place` says may be there. (A cheap look before find.)
  bool has_more(const PrefixPlace& place, std::span<const int32_t> text);
  // Its beginning was of use just now.
  void touch(const PrefixPlace& place);
  // Let go of a page of `pool` that nobody else holds, and of what stands beside it. False: there is none.
  bool drop_one(KvPool& pool);
  size_t size();

 private:
  struct DraftPage {
    std::weak_ptr<KvPool> pool;
    int32_t page;
    int32_t next;  // the token its last row looks ahead to; -1: it does not
  };
  struct Entry {
    uint64_t hash, id;
    uint64_t before_hash, before_id;  // of the page before
    std::array<int32_t, kernels::kPageSlots> tokens;
    int32_t page;
    std::vector<DraftPage> drafts;
  };
  using Entries = std::list<Entry>;  // found most recently first

  static std::span<const int32_t> page_of(std::span<const int32_t> text, int64_t page) {
    return text.subspan(static_cast<size_t>(page * kernels::kPageSlots), kernels::kPageSlots);
  }
  Entries::iterator at(uint64_t hash, uint64_t id);
  Entries::iterator next(const PrefixPlace& place, std::span<const int32_t> text, uint64_t* hash);
  Entries::iterator add(const PrefixPlace& before, uint64_t hash, std::span<const int32_t> tokens, int32_t page);
  bool keep_draft(Entry* entry, std::span<const int32_t> text, int64_t page, const DraftRows& draft);
  void touch_chain(const PrefixPlace& place);
  void drop(Entries::iterator entry);

  std::shared_ptr<KvPool> pool_;
  Hash hash_;
  std::mutex mutex_;
  uint64_t last_id_ = 0;
  Entries entries_;
  std::unordered_map<uint64_t, Entries::iterator> by_hash_;
};

}  // namespace aerie
