// The table of ops: everything Aerie ever asks a device to compute.
//
// An Op is plain data: shapes and device addresses. A plan is a sequence of Ops; a Device runs
// plans asynchronously (device.h). Backends (cpu/, cuda/, reference/) are siblings that implement
// this table; none of them knows a model, a drafter or a session.
//
// Exactness rule for every backend: each output element has ONE fixed reduction order that depends
// only on the op's width (K, head size, position), never on the number of rows, the tree, the
// other rows, the thread count or how a run is sliced. So the same token gives the same bits in
// prefill, decode and verify.
//
// Index arrays (i32) and the small per-row structs below live in device memory; a plan brings them
// there with Upload. R = rows of the batch in this op.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/tensor.h"
#include "kernels/tree_ops.h"

namespace aerie::kernels {

// ---- data movement --------------------------------------------------------------------------

// Host -> device. `host` must stay unchanged until the plan has run.
struct Upload { void* device; const void* host; int64_t bytes; };
// Device -> host. `host` is valid once the plan has run.
struct Download { void* host; const void* device; int64_t bytes; };
// *out = nanoseconds by the device's clock, whose beginning nobody knows, once all before it is done.
struct Timestamp { int64_t* out; };
// The next `ops` ops are run only where *wanted is not 0 when their turn comes. They move nothing between host and device,
// and none of them is another RunIf.
struct RunIf {
  const int32_t* wanted;  // device
  int32_t ops;
};
// dst[dst_index ? dst_index[r] : r] = src[src_index ? src_index[r] : r], r < rows; f32 row_major,
// src.cols columns. An index outside src or dst skips the row. src and dst must not overlap.
struct CopyRows { Tensor src; const int32_t* src_index; Tensor dst; const int32_t* dst_index; int64_t rows; };

// ---- dense ----------------------------------------------------------------------------------

// out[r] = table[ids[r]] as f32, times scale. table: (V, H) any dtype, either layout. ids: i32[R].
struct Embed { Tensor table; const int32_t* ids; Tensor out; float scale = 1; };
// out[r] = x[r] * rsqrt(mean(x[r]^2) + eps) * weight. weight: (1, H) f32. out may be x. With `heads` the columns are so many
// vectors side by side, each normed by itself with the same weight (1, H / heads).
struct RmsNorm { Tensor x; Tensor weight; float eps; Tensor out; int32_t heads = 1; };
// How a CPU makes integers of a row of activations: x / scale to nearest, ties to even; the largest magnitude of what shares a scale is
// +-most_of(). Sums of products with int8 weights are exact: they fit int32.
struct ActivationCodes {
  int32_t most = 127;
  bool by_block = false;  // a scale for every 32 of K; else for the row

  constexpr bool wide() const { return most > 127; }  // 16 bits, else 8
  constexpr int64_t bytes() const { return wide() ? 2 : 1; }
  constexpr int64_t scales(int64_t blocks) const { return by_block ? blocks : 1; }
  // Of k numbers with that largest magnitude (top) whose magnitudes add up to `sum`, which wide codes alone look at. Those of 8 bits
  // always fit. Those of 16 have as many bits as the sum with weights of -128 has room for: all of them unless hundreds of numbers
  // are about as large as the largest. A hundredth is left for what float sums are off by, k / 2 for rounding.
  constexpr float most_of(int64_t k, float top, float sum) const {
    const auto all = static_cast<float>(most);
    if (!wide()) return all;
    const float room = 0.99f * static_cast<float>((int64_t{1} << 24) - k / 2);
    const float tops = sum <= 3.4e38f ? sum / top : static_cast<float>(k);  // of nothing but zeros: no number, and all
    return room < all * tops ? static_cast<float>(static_cast<int32_t>(room / tops)) : all;
  }
};
// What weights of 4 bits meet, and int8 weights where bytes are what is multiplied; else those meet 16 bits, of which both bytes,
// x = 256 * high + low, may be signed.
constexpr ActivationCodes kBlockCodes{127, true}, kWordCodes{127 * 256 + 127};
// out (R, N) = x (R, K) * w^T (+ bias (1, N)) (+ residual (R, N)); f32 in and out; w panel16 of any
// dtype. On a CPU int8, int4, q4_1 and mxfp4 weights multiply activations quantised to integers (kBlockCodes, or for int8 kWordCodes), others
// the activations as they are; bf16 weights where there is a matrix unit, activations that are two bf16 (cpu/linear_matrix-inl.h). On
// CUDA bf16 weights multiply two bf16 too, others halves, with a power of two per row.
// `residual` may be `out`. Order: residual + (bias + sum).
// `fast`: the host would rather have speed than the rule above; a device may then add up as it likes (Device::
// load_fast_linear). Only rows of prompts may ask for it.
struct Linear { Tensor x; Tensor w; Tensor bias; Tensor residual; Tensor out; bool fast = false; };
enum class Activation : uint8_t { silu, gelu_tanh, relu, sigmoid, none };
// out[r][i] = act(x[r][i]). out may be x.
struct Activate { Tensor x; Activation kind; Tensor out; };
// gate_up: (R, 2F), gate first; or, where there is an `up` (R, F) of its own, (R, F). out (R, F) = act(gate) * up; it may be the gate. With a limit (gpt-oss;
// above 0), whatever the kind: g = gate or the limit if that is less, u = up brought into [-limit, limit], out = g / (1 + exp(-1.702 g)) * (u + 1).
struct GatedActivate { Tensor gate_up; Activation kind; Tensor out; float limit = 0; Tensor up = {}; };
constexpr float kLimitedGateSlope = 1.702f;
// out = (a + b * scale) * times, elementwise (R, N), each product and the sum rounded by itself. out may be a.
struct Add { Tensor a; Tensor b; Tensor out; float scale = 1, times = 1; };
// out = cap * tanh(x / cap), elementwise, with tanh(u) = 1 - 2 / (1 + exp(2 u)); cap > 0. out may be x. Of what is not finite: NaN, lest an
// overflow be hidden.
struct SoftCap { Tensor x; float cap; Tensor out; };

// ---- mixtures of experts ----------------------------------------------------------------------

constexpr int kMaxExperts = 1024, kMaxExpertsUsed = 32;
// Which experts each row takes, and how much each counts. Scores are the softmax over all logits, or each logit's sigmoid. The k of the
// largest score + choice are taken, in descending order, ties to the lower number. They count their scores; if `normed`, over the sum of
// those of the k (of a softmax without choice that is the softmax over the k); times `scale`, and their own gain. Sums go in the order of
// experts taken, or of all; exp is exp_own, of a softmax of the difference to the largest logit; all in f32. A row with a logit that is not
// finite takes experts 0 .. k-1, with weights NaN.
struct Route {
  Tensor logits;     // (R, experts) f32, at most kMaxExperts
  int32_t k;         // <= kMaxExpertsUsed, <= experts
  bool normed;
  int32_t* experts;  // i32 (R, k)
  Tensor weights;    // (R, k) f32
  bool sigmoid = false;
  Tensor choice = {};  // absent, or (1, experts) f32
  float scale = 1;
  Tensor gain = {};    // absent, or (1, experts) f32
};
// Linear of the expert that a row takes: out[r k + i] = w_e x[x.rows == R ? r : r k + i] with e = experts[r k + i], whose outputs are rows
// [e N, (e + 1) N) of w, N = out.cols, a multiple of kPanel (+ row e of bias). Each output has the bits that an order of sums of its own gives it
// (Linear's rule), whatever else the row's expert is asked for. An e below 0 or beyond w: zeros.
struct ExpertLinear {
  Tensor x;                // (R, K) or (R k, K) f32
  Tensor w;                // (experts N, K) panel16 of any dtype; at most kMaxExperts of them
  const int32_t* experts;  // i32 (R, k)
  int32_t k;
  Tensor out;              // (R k, N)
  Tensor bias = {};        // absent, or (experts, N) f32
};
// out[r] = sum of weights[r][i] * x[r k + i], i ascending, each product and sum rounded by itself. k = weights.cols.
struct CombineExperts { Tensor x; Tensor weights; Tensor out; };

// ---- recurrent layers -------------------------------------------------------------------------
// Gated DeltaNet (arXiv:2412.06464) as Qwen3.5 has it: in place of keys and values a layer keeps a state, a matrix for each head, and
// the last few rows that its convolution looks back at. Each row makes a new state of the one before it, always by itself and in the same
// order of sums: so a state does not depend on how the text before it was cut into passes, nor on the tree around a row.

struct DeltaShape {
  int32_t key_heads = 0, heads = 0;  // heads of values; head h reads key head h / (heads / key_heads)
  int32_t key_dim = 0, value_dim = 0;  // multiples of kPanel, at most kMaxDeltaDim
  int32_t taps = 0;                    // of the convolution, 2 .. kMaxTaps
  int32_t convolved = 0;               // channels of a layer that is no more than the convolution: then it has no heads

  constexpr int64_t keys() const { return int64_t{key_heads} * key_dim; }
  constexpr int64_t values() const { return int64_t{heads} * value_dim; }
  constexpr int64_t channels() const { return 2 * keys() + values() + convolved; }  // [q | k | v]
  // Of one layer: [head][value_dim / 16][key_dim][16], and behind them the rows (taps - 1, channels) that came last, oldest first.
  constexpr int64_t head_floats() const { return int64_t{key_dim} * value_dim; }
  constexpr int64_t floats() const { return heads * head_floats() + (taps - 1) * channels(); }
};
constexpr int kMaxDeltaDim = 512, kMaxTaps = 8;

// States of texts, each of all layers. Memory comes as it is needed: chunk c has 1 << c of them.
struct StateCache {
  static constexpr int kChunks = 14;
  float* chunk[kChunks] = {};
  int64_t floats = 0;  // of a state

  static constexpr int32_t chunk_of(int32_t state) {
    int32_t c = 0;
    for (int32_t n = state + 1; n > 1; n /= 2) ++c;
    return c;
  }
  constexpr float* at(int32_t state) const {
    const int32_t c = chunk_of(state);
    return chunk[c] + (int64_t{state} - ((int32_t{1} << c) - 1)) * floats;
  }
};

// One row's turn. States on the way are in working memory, so that rows with the same row before them each have it.
struct DeltaStep {
  int32_t row;
  int32_t from;  // buffer; -1: the sequence's state in the cache
  int32_t to;    // may be `from`
};
struct DeltaSeq {
  int32_t from = -1;  // its state before the pass; -1: it begins, with zeros
  int32_t to = -1;    // where that after row `last` goes, another one than `from`; -1: none is kept
  int32_t last = -1;
  int32_t first_step = 0, steps = 0;
};
// All in device memory. Steps of a sequence come in an order in which each finds what it goes on from.
struct DeltaRows {
  const DeltaSeq* seqs = nullptr;
  const DeltaStep* steps = nullptr;
  const int32_t* seq = nullptr;     // i32[R]: of each row
  const int32_t* parent = nullptr;  // i32[R]: the row before it, in the pass; -1: it is the first of its sequence here
  int32_t n_seqs = 0;
  int32_t n_steps = 0;              // of all
  int32_t buffers = 0;
};

// out[r][c] = sum over t of weight[t][c] * x[r taken taps - 1 - t rows back][c], t ascending: rows before the pass are the state's, or zero.
struct ShortConv {
  Tensor x;       // (R, channels)
  Tensor weight;  // (taps, channels) f32
  StateCache cache;
  int64_t at;     // of the layer, in a state: floats
  DeltaShape shape;
  DeltaRows rows;
  Tensor out;     // (R, channels)
};
// out (R, 2 heads) = [exp(decay[0] * softplus(a + decay[1])) | sigmoid(b)] of gates (R, 2 heads) = [b | a]; decay (2, heads) f32. exp and log
// are those of scalar_math.h.
struct DeltaGates { Tensor gates; Tensor decay; Tensor out; };
// For each step and head, with S what it goes on from, q, k, v of `qkv`, g and beta of `gates`: S' = g S + k (beta (v - g S^T k))^T; out = S'^T q. Sums over
// key_dim go in four turns, ((0 + 1) + (2 + 3)). `to` of a sequence gets S' and the rows of x that came last.
struct DeltaRule {
  Tensor x;      // (R, channels): ShortConv's
  Tensor qkv;    // (R, channels), q and k as they are to be multiplied
  Tensor gates;  // (R, 2 heads): DeltaGates' out
  StateCache cache;
  int64_t at;
  DeltaShape shape;
  DeltaRows rows;
  Tensor out;    // (R, heads * value_dim), or absent: only the states are wanted
};
// Where the convolution is all that there is: `to` of a sequence gets the rows of x that came last.
struct KeepLast {
  Tensor x;  // (R, channels): ShortConv's
  StateCache cache;
  int64_t at;
  DeltaShape shape;
  DeltaRows rows;
};

// ---- attention ------------------------------------------------------------------------------

// Slots (key/value rows) come in pages of this many absolute positions. Attention reduces over
// blocks of exactly one page: positions [32 b, 32 b + 32), merged in ascending order.
constexpr int kPageSlots = 32;
// Blocks are merged within spans of this many absolute positions, [1024 s, 1024 s + 1024), and then the spans in
// ascending order: so the work on a long context can be divided without a bit depending on how.
constexpr int kSpanSlots = 1024;

// Rows of head_dim elements (kv_row says where). What attention reads for one head lies together: a page is one piece,
// and pages that follow one another are one stream.
struct KvCache {
  void* data = nullptr;
  int64_t slots = 0;  // pages * kPageSlots
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  DType dtype = DType::f32;  // f32, bf16 or int8
  // int8: data holds codes, element = code * scales[index of the element / head_dim]: one scale for each position,
  // layer, K or V, and head, so that a row does not depend on its neighbours. The scale is the largest magnitude / 127,
  // codes are to nearest even; a row that is not finite has scale NaN, so that no output which reads it is finite.
  float* scales = nullptr;
};
// The row of a key (which = 0) or value (1): element i of it is data[kv_row * head_dim + i].
// Heads of values follow those of keys: kv_head kv_heads of the keys is head 0 of the values.
constexpr int64_t kv_row(const KvCache& c, int64_t layer, int64_t which, int64_t kv_head, int64_t slot) {
  return ((layer * 2 + which) * c.kv_heads + kv_head) * c.slots + slot;
}
constexpr int64_t kv_element_bytes(DType t) { return t == DType::int8 ? 1 : t == DType::bf16 ? 2 : 4; }

// What each row may look at: first the committed positions [0, ctx_len[r]) of its sequence through
// the page table, then tail_len[r] explicit slots: its ancestors by depth and itself (absolute
// positions ctx_len[r], ctx_len[r] + 1, ...). A plain row has no tail and ctx_len = position + 1.
// With a window a row looks at no more than the last `window` of all these, itself among them.
struct AttentionRows {
  const int32_t* pages = nullptr;       // (S, page_stride): page id of positions [32 i, 32 i + 32)
  int32_t page_stride = 0;
  const int32_t* seq = nullptr;         // i32[R]: row of `pages`
  const int32_t* ctx_len = nullptr;     // i32[R]
  const int32_t* tail_offset = nullptr; // i32[R]: into tail_slots
  const int32_t* tail_len = nullptr;    // i32[R]
  const int32_t* tail_slots = nullptr;
  int32_t sequences = 0;                // of which the rows are; 0: not said. Decides who does what, and no bit
  int32_t window = 0;                   // positions; 0: all
};

// angles[r] = {cos(p f_0) .. cos(p f_{h-1}), sin(p f_0) .. sin(p f_{h-1})} * scale, p = positions[r],
// h = inv_freq.cols = head_dim / 2 (inv_freq f32). Computed in double, rounded once. Where f_i is 0 they are 1 and 0, whatever the
// scale: such a pair is not rotated.
struct RopeAngles { const int32_t* positions; Tensor inv_freq; float scale; Tensor angles; };
// qkv: (R, (heads + 2 kv_heads) * head_dim) as [q | k | v]. Rotates q in place (rotate-half pairs
// i, i + head_dim/2), writes rotated k and v to cache slot slots[r] of `layer`. Of q alone, (R, heads * head_dim): nothing is written.
struct RopeAndStore { Tensor qkv; Tensor angles; int32_t heads; KvCache cache; int32_t layer; const int32_t* slots; };
// q: (R, heads * head_dim), out likewise; softmax(q k^T * scale) v over AttentionRows. Query head h
// reads kv head h / (heads / kv_heads). With a cap (Gemma 2; above 0) scores go through SoftCap's function before anything else.
struct Attention {
  Tensor q;
  int32_t heads;
  KvCache cache;
  int32_t layer;
  AttentionRows rows;
  float scale;
  Tensor out;
  // Absent, or working memory (R * n, heads * (head_dim + 2)) for n spans, as many as the longest row has or more.
  // Then the op is many short tasks, and fills not `out` but this: row r * n + s has, for span s of row r if r looks at
  // any of it, for each head {maximum score m, sum of exp(score - m), sum of exp(score - m) * v (head_dim)}.
  Tensor partial;
  // Absent, or (1, heads) f32: a score of each head's (neither scaled nor capped) that is one more in the softmax, and has no value (gpt-oss's
  // attention sinks). The last thing that happens to a row: with m the larger of the sink and the maximum score, t = exp(maximum - m), its values
  // are divided by total * t + exp(sink - m), and multiplied by t.
  Tensor sinks = {};
  float cap = 0;
};
// out (R, heads * head_dim) from what Attention left in `partial`; the same bits as without. sinks: as Attention's.
struct AttentionMerge { Tensor partial; int32_t heads; AttentionRows rows; Tensor out; Tensor sinks = {}; };
// slot dst[i] = slot src[i] in every layer, i < n; a negative src: nothing. No dst is any src.
struct KvCopy { KvCache cache; const int32_t* src; const int32_t* dst; int32_t n; };

// ---- drawing --------------------------------------------------------------------------------

// The target's own dice: Gumbel noise G(seed, stream, position, token). See kernels/noise.h
// for the definition; all backends give identical bits.
struct DrawKey {
  uint64_t seed;
  uint64_t stream;
  int64_t position;   // absolute position of the token being drawn
  float temperature;  // <= 0: no noise, raw logits
  uint32_t pad;
};

// The k best tokens of each row by score, descending, ties to the lower id.
//   score[t] = logit[t]                                     (keys null, or temperature <= 0)
//            = logit[t] / temperature + G(key, id(t))       (shared draft noise)
// id(t) = vocab_map ? vocab_map[t] : t. out_logp = score - logsumexp(score): log of the
// confidence; out_token = id(t). Ids >= vocab_used are skipped. A row with a non-finite logit gets tokens -1.
// The sum inside logsumexp is taken over blocks of kTopKBlock places t, each relative to its own largest score; the
// blocks are merged in ascending order.
struct TopK {
  Tensor logits;             // (R, V) f32
  int32_t k;                 // <= kMaxTopK
  int32_t vocab_used;
  const int32_t* vocab_map;  // i32[V] or null
  const DrawKey* keys;       // DrawKey[R] or null
  int32_t* out_token;        // (R, k)
  float* out_logp;           // (R, k)
};
constexpr int kMaxTopK = 128;
constexpr int kTopKBlock = 256;

// An LM head of which only the best tokens are wanted: the bits of Linear{x, w, bias} and then TopK, without the
// logits ever being written out. It takes two ops, one after the other: LinearTopK looks at ranges of the vocabulary
// while their logits are in the cache and leaves each range's best and sums in `partial`, MergeTopK makes out_token
// and out_logp of them.
struct LinearTopK {
  Tensor x;                  // (R, K) f32
  Tensor w;                  // (V, K) panel16, any dtype
  Tensor bias;               // (1, V) or absent
  int32_t k;                 // as in TopK, to the end
  int32_t vocab_used;
  const int32_t* vocab_map;  // i32[V] or null
  const DrawKey* keys;       // DrawKey[R] or null
  Tensor partial;            // (R, topk_partial_cols(V, k)) f32, between the two ops the backend's
  int32_t* out_token;        // (R, k)
  float* out_logp;           // (R, k)
  int64_t every = 1;         // of keys, out_token and out_logp, row r of x has row r * every
};
struct MergeTopK { LinearTopK head; };
// Tokens of a range, at least: so many that its k best are few among them.
constexpr int64_t topk_least_range(int64_t k) { return round_up(8 * k, kTopKBlock); }
constexpr int64_t topk_partial_cols(int64_t v, int64_t k) {
  const int64_t blocks = round_up(v, kTopKBlock) / kTopKBlock, least = topk_least_range(k);
  return 2 * blocks + round_up(v, least) / least * (2 + 2 * k);
}

// A candidate head looks at the whole vocabulary through cheap approximate logits (TopK, k = n) and then
// at n tokens exactly. These two ops are the second look.
//
// out (R, n)[r][i] = what Linear{x, w} gives at (r, ids[r][i]), bit for bit; 0 where the id is negative.
struct LinearRows {
  Tensor x;            // (R, K) f32
  Tensor w;            // (V, K) panel16, any dtype
  const int32_t* ids;  // i32 (R, n), below V
  Tensor out;          // (R, n) f32
};
// The k best of those n by exact score, descending, ties to the lower id. score as in TopK, out_logp =
// score - logsumexp over the exact scores of the n and the approximate ones of the rest, whose share is what logp
// leaves of 1 (so to about 1e-6 of the approximate sum). A row without ids or with an exact logit that is not finite
// gets tokens -1.
struct Rescore {
  Tensor approx;        // (R, V) f32: the logits TopK saw
  const int32_t* ids;   // (R, n): what it gave for them with the same keys; -1: none
  const float* logp;    // (R, n)
  Tensor exact;         // (R, n) f32: LinearRows of the ids
  int32_t k;            // <= n <= kMaxTopK
  const DrawKey* keys;  // DrawKey[R] or null
  int32_t* out_token;   // (R, k)
  float* out_logp;      // (R, k)
};

// Temperature, then top-k, top-p, min-p, in the order of Hugging Face's logits warpers.
struct Sampling {
  uint64_t seed = 0;
  uint64_t stream = 0;
  float temperature = 0;  // 0: argmax, ties to the lowest id
  float top_p = 1;        // 1: off
  float min_p = 0;        // 0: off
  int32_t top_k = 0;      // 0: off
};

// The exact walk (ARCHITECTURE, cycle step 4): from root_row draw x; descend if a child carries x,
// otherwise stop. One per sequence; a row is in one walk at most.
struct WalkSeq {
  Sampling sampling;
  int64_t root_position;  // absolute position of the root's token; its children are drawn at +1
  int32_t root_row;       // row of logits
  int32_t pad;
};
struct WalkStep {
  int32_t row;      // the row whose logits drew `token`; step i + 1's row is the child reached
  int32_t token;
  float logprob;    // log-softmax of the raw logits (temperature 1, no filter) at `token`
  int32_t pad;
};
struct WalkOut {
  int32_t count;    // tokens emitted, >= 1; 0 with status != 0
  int32_t status;   // 0 good, 1 the target produced a non-finite logit
  // followed by WalkStep[max_steps]
};
constexpr int64_t walk_out_bytes(int64_t max_steps) {
  return static_cast<int64_t>(sizeof(WalkOut)) + max_steps * static_cast<int64_t>(sizeof(WalkStep));
}
struct Walk {
  Tensor logits;                // (R, V) f32
  int32_t vocab_used;
  const int32_t* token;         // i32[R]: token of each row
  const int32_t* first_child;   // i32[R]: row of the first child, -1 none
  const int32_t* next_sibling;  // i32[R]
  const WalkSeq* seqs;          // WalkSeq[n_seqs]
  int32_t n_seqs;
  int32_t max_steps;            // >= deepest path + 1
  void* out;                    // n_seqs * walk_out_bytes(max_steps)
};

using Op = std::variant<Upload, Download, CopyRows, Embed, RmsNorm, Linear, Activate, GatedActivate, Add, SoftCap, Route, ExpertLinear, CombineExperts,
                        ShortConv, DeltaGates, DeltaRule, KeepLast, RopeAngles, RopeAndStore, Attention, AttentionMerge, KvCopy, TopK, LinearTopK, MergeTopK,
                        LinearRows, Rescore, Walk, ExpandTree, SelectTree, PathSlots, Timestamp, RunIf>;

}  // namespace aerie::kernels
