#include "kernels/mock/translate.h"

#include <algorithm>
#include <string>

namespace aerie::kernels::mock {
namespace {

int64_t element_bytes(DType t) { return t == DType::bf16 ? 2 : has_scales(t) ? 1 : 4; }

// Remembers the first thing wrong with one op.
class Translator {
 public:
  Translator(const AddressMap& map, const char* op) : map_(map), op_(op) {}

  template <class T>
  void device(T*& p, int64_t bytes, const char* field) {
    if (!p) return;
    void* backing = map_.find(p, std::max<int64_t>(bytes, 0));
    if (!backing)
      return fail(field, map_.contains(p) ? "reaches past the end of its device memory" : "is not device memory");
    p = static_cast<T*>(backing);
  }
  void required(bool present, const char* field) {
    if (!present) fail(field, "is missing");
  }
  void host(const void* p, const char* field) {
    if (!p)
      fail(field, "is missing");
    else if (map_.contains(p))
      fail(field, "is device memory, a host address was expected");
  }
  void tensor(Tensor& t, const char* field) {
    if (!t) return;
    int64_t bytes = data_bytes(t.dtype, t.layout, t.rows, t.cols);
    if (t.layout == Layout::row_major)
      bytes = t.rows > 0 ? ((t.rows - 1) * t.stride + t.cols) * element_bytes(t.dtype) : 0;
    device(t.data, bytes, field);
    if (t.scales) device(t.scales, scale_bytes(t.dtype, t.rows, t.cols), field);
  }
  void ints(const int32_t*& p, int64_t n, const char* field) { device(p, n * 4, field); }
  void cache(KvCache& c) {
    required(c.data, "cache");
    const int64_t rows = int64_t{c.layers} * 2 * c.slots * c.kv_heads;
    device(c.data, rows * c.head_dim * kv_element_bytes(c.dtype), "cache");
    if (c.dtype != DType::int8) return;
    required(c.scales, "cache scales");
    device(c.scales, rows * 4, "cache scales");
  }
  void attention_rows(AttentionRows& a, int64_t r) {
    ints(a.pages, 0, "pages");
    ints(a.seq, r, "seq");
    ints(a.ctx_len, r, "ctx_len");
    ints(a.tail_offset, r, "tail_offset");
    ints(a.tail_len, r, "tail_len");
    ints(a.tail_slots, 0, "tail_slots");
  }

  void operator()(Upload& o) {
    required(o.device || o.bytes == 0, "device");
    device(o.device, o.bytes, "device");
    if (o.bytes > 0) host(o.host, "host");
  }
  void operator()(Download& o) {
    required(o.device || o.bytes == 0, "device");
    device(o.device, o.bytes, "device");
    if (o.bytes > 0) host(o.host, "host");
  }
  void operator()(CopyRows& o) {
    tensor(o.src, "src");
    tensor(o.dst, "dst");
    ints(o.src_index, o.rows, "src_index");
    ints(o.dst_index, o.rows, "dst_index");
  }
  void operator()(Embed& o) {
    tensor(o.table, "table");
    tensor(o.out, "out");
    ints(o.ids, o.out.rows, "ids");
  }
  void operator()(RmsNorm& o) {
    tensor(o.x, "x");
    tensor(o.weight, "weight");
    tensor(o.out, "out");
  }
  void operator()(Linear& o) {
    tensor(o.x, "x");
    tensor(o.w, "w");
    tensor(o.bias, "bias");
    tensor(o.residual, "residual");
    tensor(o.out, "out");
  }
  void operator()(Activate& o) {
    tensor(o.x, "x");
    tensor(o.out, "out");
  }
  void operator()(GatedActivate& o) {
    tensor(o.gate_up, "gate_up");
    tensor(o.out, "out");
    tensor(o.up, "up");
  }
  void operator()(Add& o) {
    tensor(o.a, "a");
    tensor(o.b, "b");
    tensor(o.out, "out");
  }
  void operator()(SoftCap& o) {
    tensor(o.x, "x");
    tensor(o.out, "out");
  }
  void operator()(Route& o) {
    tensor(o.logits, "logits");
    device(o.experts, o.logits.rows * o.k * 4, "experts");
    tensor(o.weights, "weights");
    tensor(o.choice, "choice");
    tensor(o.gain, "gain");
  }
  void operator()(ExpertLinear& o) {
    tensor(o.x, "x");
    tensor(o.w, "w");
    ints(o.experts, o.out.rows, "experts");
    tensor(o.out, "out");
    tensor(o.bias, "bias");
  }
  void operator()(CombineExperts& o) {
    tensor(o.x, "x");
    tensor(o.weights, "weights");
    tensor(o.out, "out");
  }
  void delta(StateCache& c, DeltaRows& rows, int64_t r) {
    for (int32_t i = 0; i < StateCache::kChunks; ++i) device(c.chunk[i], (int64_t{1} << i) * c.floats * 4, "cache");
    required(rows.seqs, "seqs");
    required(rows.steps, "steps");
    device(rows.seqs, rows.n_seqs * static_cast<int64_t>(sizeof(DeltaSeq)), "seqs");
    device(rows.steps, rows.n_steps * static_cast<int64_t>(sizeof(DeltaStep)), "steps");
    ints(rows.seq, r, "seq");
    ints(rows.parent, r, "parent");
  }
  void operator()(ShortConv& o) {
    tensor(o.x, "x");
    tensor(o.weight, "weight");
    delta(o.cache, o.rows, o.out.rows);
    tensor(o.out, "out");
  }
  void operator()(DeltaGates& o) {
    tensor(o.gates, "gates");
    tensor(o.decay, "decay");
    tensor(o.out, "out");
  }
  void operator()(DeltaRule& o) {
    tensor(o.x, "x");
    tensor(o.qkv, "qkv");
    tensor(o.gates, "gates");
    delta(o.cache, o.rows, o.x.rows);
    tensor(o.out, "out");
  }
  void operator()(KeepLast& o) {
    tensor(o.x, "x");
    delta(o.cache, o.rows, o.x.rows);
  }
  void operator()(RopeAngles& o) {
    ints(o.positions, o.angles.rows, "positions");
    tensor(o.inv_freq, "inv_freq");
    tensor(o.angles, "angles");
  }
  void operator()(RopeAndStore& o) {
    ints(o.slots, o.qkv.rows, "slots");
    tensor(o.qkv, "qkv");
    tensor(o.angles, "angles");
    cache(o.cache);
  }
  void operator()(Attention& o) {
    const int64_t r = o.out.rows;
    tensor(o.q, "q");
    tensor(o.out, "out");
    cache(o.cache);
    tensor(o.partial, "partial");
    tensor(o.sinks, "sinks");
    attention_rows(o.rows, r);
  }
  void operator()(AttentionMerge& o) {
    required(static_cast<bool>(o.partial), "partial");
    tensor(o.partial, "partial");
    attention_rows(o.rows, o.out.rows);
    tensor(o.out, "out");
    tensor(o.sinks, "sinks");
  }
  void operator()(KvCopy& o) {
    cache(o.cache);
    ints(o.src, o.n, "src");
    ints(o.dst, o.n, "dst");
  }
  void operator()(TopK& o) {
    const int64_t r = o.logits.rows;
    ints(o.vocab_map, o.logits.cols, "vocab_map");
    device(o.keys, r * static_cast<int64_t>(sizeof(DrawKey)), "keys");
    device(o.out_token, r * o.k * 4, "out_token");
    device(o.out_logp, r * o.k * 4, "out_logp");
    tensor(o.logits, "logits");
  }
  void operator()(LinearTopK& o) {
    const int64_t r = o.x.rows, last = (r - 1) * o.every + 1;
    ints(o.vocab_map, o.w.rows, "vocab_map");
    device(o.keys, last * static_cast<int64_t>(sizeof(DrawKey)), "keys");
    device(o.out_token, last * o.k * 4, "out_token");
    device(o.out_logp, last * o.k * 4, "out_logp");
    required(o.partial.rows >= r && o.partial.cols >= topk_partial_cols(o.w.rows, o.k), "partial");
    tensor(o.x, "x");
    tensor(o.w, "w");
    tensor(o.bias, "bias");
    tensor(o.partial, "partial");
  }
  void operator()(MergeTopK& o) { (*this)(o.head); }
  void operator()(LinearRows& o) {
    ints(o.ids, o.out.rows * o.out.cols, "ids");
    tensor(o.x, "x");
    tensor(o.w, "w");
    tensor(o.out, "out");
  }
  void operator()(Rescore& o) {
    const int64_t r = o.exact.rows, n = r * o.exact.cols;
    ints(o.ids, n, "ids");
    device(o.logp, n * 4, "logp");
    device(o.keys, r * static_cast<int64_t>(sizeof(DrawKey)), "keys");
    device(o.out_token, r * o.k * 4, "out_token");
    device(o.out_logp, r * o.k * 4, "out_logp");
    tensor(o.approx, "approx");
    tensor(o.exact, "exact");
  }
  void operator()(Walk& o) {
    const int64_t r = o.logits.rows;
    ints(o.token, r, "token");
    ints(o.first_child, r, "first_child");
    ints(o.next_sibling, r, "next_sibling");
    device(o.seqs, o.n_seqs * static_cast<int64_t>(sizeof(WalkSeq)), "seqs");
    device(o.out, o.n_seqs * walk_out_bytes(o.max_steps), "out");
    tensor(o.logits, "logits");
  }
  void operator()(ExpandTree& o) {
    const int64_t n = int64_t{o.rows} * o.width;
    device(o.places, (o.first + n) * static_cast<int64_t>(sizeof(TreePlace)), "places");
    device(o.out, sizeof(TreeOut), "out");
    ints(o.from, o.rows, "from");
    ints(o.token, o.one_list ? o.width : n, "token");
    device(o.logp, (o.one_list ? o.width : n) * 4, "logp");
    device(o.slots, o.next_rows * static_cast<int64_t>(sizeof(TreeSlot)), "slots");
    device(o.beliefs, sizeof(Beliefs), "beliefs");
    device(o.weigh.gain_by_best, sizeof(GainByBest), "gain_by_best");
    device(o.next, o.next_rows * int64_t{4}, "next");
    device(o.draft.token, o.next_rows * int64_t{4}, "draft token");
    device(o.draft.parent, o.next_rows * int64_t{4}, "draft parent");
    device(o.draft.tail_slots, int64_t{o.next_rows} * (o.level + 1) * 4, "draft tail_slots");
    device(o.wanted, sizeof(int32_t), "wanted");
    ints(o.draft.slots, o.draft.slots ? 1 + o.level * int64_t{o.draft.stride} + o.next_rows : 0, "draft slots");
  }
  void operator()(SelectTree& o) {
    device(o.places, o.n_places * static_cast<int64_t>(sizeof(TreePlace)), "places");
    device(o.slots, o.keep * static_cast<int64_t>(sizeof(TreeSlot)), "slots");
    ints(o.slot, o.rows, "slot");
    for (int32_t** p : {&o.token, &o.position, &o.tail_len, &o.walk_token, &o.first_child, &o.next_sibling})
      device(*p, o.rows * int64_t{4}, "rows");
    device(o.tail_slots, (o.rows - 1) * int64_t{o.tail_room} * 4, "tail_slots");
    device(o.out, tree_out_bytes(o.rows), "out");
  }
  void operator()(PathSlots& o) {
    device(o.walks, 0, "walks");
    ints(o.walk, o.n, "walk");
    ints(o.step, o.n, "step");
    ints(o.slot, 0, "slot");
    device(o.src, o.n * int64_t{4}, "src");
  }
  void operator()(Timestamp& o) { device(o.out, sizeof(int64_t), "out"); }
  void operator()(RunIf& o) { ints(o.wanted, 1, "wanted"); }

  Status status;

 private:
  void fail(const char* field, const char* what) {
    if (status.ok()) status = error(Code::invalid_argument, std::string(op_) + ": " + field + " " + what);
  }
  const AddressMap& map_;
  const char* op_;
};

constexpr const char* kNames[] = {"Upload",       "Download",  "CopyRows",       "Embed",      "RmsNorm",
                                  "Linear",       "Activate",  "GatedActivate",  "Add",        "SoftCap",    "Route",
                                  "ExpertLinear", "CombineExperts", "ShortConv", "DeltaGates", "DeltaRule", "KeepLast", "RopeAngles", "RopeAndStore", "Attention", "AttentionMerge", "KvCopy",     "TopK",
                                  "LinearTopK",   "MergeTopK", "LinearRows",     "Rescore",    "Walk",
                                  "ExpandTree",   "SelectTree", "PathSlots",     "Timestamp",  "RunIf"};
static_assert(std::size(kNames) == std::variant_size_v<Op>);

}  // namespace

Status translate(const AddressMap& map, Op* op) {
  Translator t(map, kNames[op->index()]);
  std::visit(t, *op);
  return t.status;
}

}  // namespace aerie::kernels::mock
