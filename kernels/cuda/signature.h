// What a plan would put on a stream, as bytes: plans with equal signatures are the same work at the same addresses. Host
// addresses do not count, their data goes through memory of the queue.
#pragma once

#include <cstring>
#include <string>

#include "kernels/ops.h"

namespace aerie::kernels::cuda {

class Signature {
 public:
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }
  void add(const Op& op) {
    put(static_cast<int64_t>(op.index()));
    std::visit(*this, op);
  }

  void operator()(const Upload& o) { put(o.device, o.bytes); }
  void operator()(const Download& o) { put(o.device, o.bytes); }
  void operator()(const CopyRows& o) { put(o.src, o.src_index, o.dst, o.dst_index, o.rows); }
  void operator()(const Embed& o) { put(o.table, o.ids, o.out); }
  void operator()(const RmsNorm& o) { put(o.x, o.weight, o.eps, o.out); }
  void operator()(const Linear& o) { put(o.x, o.w, o.bias, o.residual, o.out); }
  void operator()(const Activate& o) { put(o.x, o.kind, o.out); }
  void operator()(const GatedActivate& o) { put(o.gate_up, o.kind, o.out); }
  void operator()(const Add& o) { put(o.a, o.b, o.out); }
  void operator()(const RopeAngles& o) { put(o.positions, o.inv_freq, o.scale, o.angles); }
  void operator()(const RopeAndStore& o) { put(o.qkv, o.angles, o.heads, o.cache, o.layer, o.slots); }
  void operator()(const Attention& o) { put(o.q, o.heads, o.cache, o.layer, o.rows, o.scale, o.out, o.partial); }
  void operator()(const AttentionMerge& o) { put(o.partial, o.heads, o.rows, o.out); }
  void operator()(const KvCopy& o) { put(o.cache, o.src, o.dst, o.n); }
  void operator()(const TopK& o) { put(o.logits, o.k, o.vocab_used, o.vocab_map, o.keys, o.out_token, o.out_logp); }
  void operator()(const LinearTopK& o) {
    put(o.x, o.w, o.bias, o.k, o.vocab_used, o.vocab_map, o.keys, o.partial, o.out_token, o.out_logp, o.every);
  }
  void operator()(const MergeTopK& o) { (*this)(o.head); }
  void operator()(const LinearRows& o) { put(o.x, o.w, o.ids, o.out); }
  void operator()(const Rescore& o) { put(o.approx, o.ids, o.logp, o.exact, o.k, o.keys, o.out_token, o.out_logp); }
  void operator()(const Walk& o) {
    put(o.logits, o.vocab_used, o.token, o.first_child, o.next_sibling, o.seqs, o.n_seqs, o.max_steps, o.out);
  }
  void operator()(const ExpandTree& o) {
    put(o.places, o.out, o.first, o.rows, o.width, o.level, o.from, o.token, o.logp, o.one_list, o.vocab_used, o.keep,
        o.next, o.next_rows, o.draft.token, o.draft.parent, o.draft.tail_slots, o.draft.slots, o.draft.node_base,
        o.draft.stride);
  }
  void operator()(const SelectTree& o) {
    put(o.places, o.n_places, o.keep, o.rows, o.first_row, o.tail_room, o.slot, o.token, o.position, o.tail_len,
        o.tail_slots, o.walk_token, o.first_child, o.next_sibling, o.out);
  }
  void operator()(const PathSlots& o) { put(o.walks, o.max_steps, o.walk, o.step, o.slot, o.n, o.src); }

 private:
  void put(const Tensor& t) { put(t.data, t.scales, t.rows, t.cols, t.stride, t.dtype, t.layout); }
  void put(const KvCache& c) { put(c.data, c.slots, c.layers, c.kv_heads, c.head_dim, c.dtype, c.scales); }
  void put(const AttentionRows& a) {
    put(a.pages, a.page_stride, a.seq, a.ctx_len, a.tail_offset, a.tail_len, a.tail_slots);
  }
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>)
  void put(const T& v) {  // no padding
    char raw[sizeof(T)];
    std::memcpy(raw, &v, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  template <class A, class B, class... Rest>
  void put(const A& a, const B& b, const Rest&... rest) {
    put(a);
    put(b);
    (put(rest), ...);
  }

  std::string bytes_;
};

}  // namespace aerie::kernels::cuda
