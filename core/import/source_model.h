// A decoder as its source describes it, whatever the format: what config.json and GGUF's keys have in common.
#pragma once

#include "core/import/layer.h"
#include "core/package/config.h"

namespace aerie {

// Rotary positions, of all layers or of some.
struct SourceRope {
  float theta = 10000;
  RopeScaling scaling;
  float partial = 1;            // of a head's elements, the first so many are rotated
  bool whole_waves = true;      // YaRN: rope_inverse_frequencies(). If not, frequencies are listed: no parameter of a package says it
  bool whole_head = false;      // those rotated turn as slowly as if all were (Gemma 4's proportional RoPE), and are the first of each half
  std::vector<float> divisors;  // LongRoPE: of each frequency
  int32_t context = 0;          // positions that it is for, if it says so; 0: not
  std::string note;             // what a user should know
  // A file may give the part or the number: a little is for what division rounds off.
  int32_t rotated(int32_t head_dim) const { return static_cast<int32_t>(static_cast<float>(head_dim) * partial + 1e-3f); }
  bool plain() const { return partial == 1 && divisors.empty(); }  // theta and scaling say it all
};

struct SourceModel {
  int32_t wanted = 0;  // the longest text that is asked for; 0: any
  LlamaConfig config;  // but what the tensors decide (tied, qkv_bias) and the tokenizer narrows (vocab_used)
  const DecoderNames* names = nullptr;
  bool tied = false;               // the LM head may be missing, and is the embedding
  std::vector<float> frequencies;  // rope.frequencies, where config.rope_scaling is listed
  int32_t rotated = 0;             // elements of a head that are rotated, the first; others are left alone. 0: all
  bool neighbours = false;         // rotary pairs are side by side, not halves of a head
  float norm_offset = 0;           // of norms' weights: Gemma's are 1 more than the file says
  float logits_scale = 1;          // logits are divided by it
  bool reads_target = false;       // asked for: a drafter whose layers all read the target's keys and values
  int32_t more_layers = 0;         // behind config.layers, for multi-token prediction: left out
  int32_t usual_end = -1;          // ends a text where a file says nothing
  std::vector<std::string> notes;  // what a user should know
};

// LongRoPE's divisors: of its two lists, one for texts up to the context `original` and one for longer ones, that which is wanted. The
// model reads `reads` tokens. rope->context and rope->note come of it, too.
void choose_longrope(std::vector<float> of_short, std::vector<float> of_long, int32_t original, int32_t reads, int32_t wanted,
                     SourceRope* rope);

// Of a head of head_dim elements, half as many, in the order of partly_rotated_order() (rotary_order.h) or as `whole_head` has it.
std::vector<float> listed_frequencies(const SourceRope& rope, int32_t head_dim);

// Takes those out, and tells of them.
void leave_out_more_layers(const SourceModel& m, const ConvertOptions& o, Sink& sink, TensorTaker* take);

// Rotary positions that all layers share, or those that see everything.
void use_rope(const SourceRope& rope, SourceModel* m);
// Row i of rope.frequencies is of[i]; layers[l]: which of them layer l has. After use_rope().
void list_ropes(std::initializer_list<const SourceRope*> of, const std::vector<int32_t>& layers, SourceModel* m);
// The same where some layers have no positions at all (NoPE): turns[l] says whether layer l has any.
void list_turning(const SourceRope& rope, const std::vector<bool>& turns, SourceModel* m);
// The last `shared` layers read the keys and values of the last one of their kind before them. False: there is none.
bool share_last_layers(int32_t shared, const std::vector<bool>& sliding, LlamaConfig* c);
// Layers that slide look at `window` positions, the row's own among them. After use_rope(), which may change the context.
void set_windows(const std::vector<bool>& sliding, int32_t window, SourceModel* m);
// A mixture of experts as it was read: how many there are and how many a row takes, under the file's own keys. Messages are "KEY: what".
Status check_experts(const std::string& count_key, const std::string& used_key, const Departures& d);
// What follows from all this: rope.frequencies where the model departs from Llama's architecture, and the context that is wanted.
// `context_key`: what the file calls its own.
Status settle(const std::string& context_key, SourceModel* m);

// The tensors as a package has them. What `m` says counts when they are read; it outlives them.
std::unique_ptr<TensorSource> as_ours(const TensorSource& source, const SourceModel& m);
// All of them, out of such a source.
Status import_model(const ConvertOptions& o, Sink& sink, TensorTaker& take, SourceModel* m);

}  // namespace aerie
