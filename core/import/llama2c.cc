// llama2.c checkpoints (run.c, legacy export): seven int32, then f32 weights. Rotary pairs are neighbours there.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/import/rotary_order.h"
#include "core/import/sink.h"
#include "core/import/taps.h"
#include "core/package/validate.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

// The file's weights, read as they are asked for; the first failure sticks.
class Weights {
 public:
  explicit Weights(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Room for n floats after what was placed before; its first element.
  uint64_t place(int64_t n) {
    const uint64_t at = end_;
    end_ += static_cast<uint64_t>(n);
    return at;
  }
  // The file must hold what was placed, neither less nor more: that is how it is recognised.
  Status fits() const {
    if (end_ * 4 == bytes_.size()) return {};
    return error(Code::bad_format, "weights: its header asks for " + std::to_string(end_ * 4) +
                                       " bytes, the file has " + std::to_string(bytes_.size()) +
                                       " (truncated, or not a llama2.c checkpoint)");
  }
  std::vector<float> read(uint64_t at, int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    std::memcpy(v.data(), bytes_.data() + at * 4, v.size() * 4);
    for (const float x : v)
      if (!std::isfinite(x) && status.ok()) status = error(Code::bad_format, "weights: a value is not finite");
    return v;
  }
  Status status;

 private:
  std::span<const uint8_t> bytes_;
  uint64_t end_ = 0;  // at most a few times 2^44: the config was checked
};

std::vector<float> concat(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Result<LlamaConfig> read_header(std::span<const uint8_t> bytes) {
  int32_t header[7];
  if (bytes.size() < sizeof header) return error(Code::bad_format, "header: too short for any known format");
  std::memcpy(header, bytes.data(), sizeof header);
  LlamaConfig c;
  c.hidden = header[0];
  c.ffn = header[1];
  c.layers = header[2];
  c.heads = header[3];
  c.kv_heads = header[4];
  c.tied = header[5] > 0;  // llama2.c marks a separate classifier with a negative vocabulary
  c.vocab_size = header[5] == INT32_MIN ? 0 : std::abs(header[5]);
  c.vocab_used = c.vocab_size;
  c.max_context = header[6];
  c.head_dim = c.heads > 0 ? c.hidden / c.heads : 0;
  c.bos_id = 1;
  c.eos_ids = {1, 2};  // run.c stops at BOS: it separates stories
  if (c.layers > 0) c.tap_layers = default_taps(c.layers);
  AERIE_TRY(package::check_config(c).at("header"));
  if (int64_t{c.heads} * c.head_dim != c.hidden) return error(Code::bad_format, "header: heads do not divide hidden");
  return c;
}

}  // namespace

Status import_llama2c(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const auto file, platform::MappedFile::open(o.source));
  const auto bytes = file->bytes();
  Result<LlamaConfig> header = read_header(bytes);
  if (!header.ok())
    return header.status().at(o.source + ": not a checkpoint of any known format (Hugging Face folder, safetensors, GGUF, llama2.c, "
                                         ".aerie); as llama2.c's");
  LlamaConfig c = *header;
  const int64_t h = c.hidden, f = c.ffn, v = c.vocab_size, kv = int64_t{c.kv_heads} * c.head_dim, n = c.layers;
  Weights w(bytes.subspan(7 * sizeof(int32_t)));
  const auto embed = w.place(v * h), attn_norm = w.place(n * h), wq = w.place(n * h * h), wk = w.place(n * kv * h),
             wv = w.place(n * kv * h), wo = w.place(n * h * h), mlp_norm = w.place(n * h), w1 = w.place(n * f * h),
             w2 = w.place(n * h * f), w3 = w.place(n * f * h), norm = w.place(h);
  w.place(int64_t{c.max_context} * c.head_dim);  // freq_cis, real and imaginary: run.c computes them now
  const auto head = c.tied ? 0 : w.place(v * h);
  AERIE_TRY(w.fits().at(o.source));

  AERIE_TRY(sink.weight("embed", {v, h, w.read(embed, v * h)}));
  for (int64_t i = 0; i < n && w.status.ok(); ++i) {
    const auto read = [&](uint64_t base, int64_t size) { return w.read(base + static_cast<uint64_t>(i * size), size); };
    const std::string at = "layers." + std::to_string(i) + ".";
    const auto q = rotate_half_order(read(wq, h * h), c.heads, c.head_dim, h);
    const auto k = rotate_half_order(read(wk, kv * h), c.kv_heads, c.head_dim, h);
    AERIE_TRY(sink.vector(at + "attn_norm", read(attn_norm, h)));
    AERIE_TRY(sink.weight(at + "attn.qkv", {h + 2 * kv, h, concat(concat(q, k), read(wv, kv * h))}));
    AERIE_TRY(sink.weight(at + "attn.o", {h, h, read(wo, h * h)}));
    AERIE_TRY(sink.vector(at + "mlp_norm", read(mlp_norm, h)));
    AERIE_TRY(sink.weight(at + "mlp.gate_up", {2 * f, h, concat(read(w1, f * h), read(w3, f * h))}));
    AERIE_TRY(sink.weight(at + "mlp.down", {h, f, read(w2, h * f)}));
    if (o.progress && !o.progress(static_cast<uint64_t>(i + 1), static_cast<uint64_t>(n)))
      return error(Code::cancelled, o.source + ": conversion cancelled");
  }
  AERIE_TRY(sink.vector("norm", w.read(norm, h)));
  if (!c.tied) AERIE_TRY(sink.weight("lm_head", {v, h, w.read(head, v * h)}));
  AERIE_TRY(w.status.at(o.source));

  const bool no_tokenizer = o.tokenizer == kNoTokenizer;
  if (!o.tokenizer.empty() && !no_tokenizer) {
    AERIE_ASSIGN(const auto blob, platform::read_file(o.tokenizer, 64u << 20));
    const auto tokenizer = text::Tokenizer::from_llama2c(blob, c.vocab_size);
    if (!tokenizer.ok()) return tokenizer.status().at(o.tokenizer);
    AERIE_TRY(sink.tokenizer(**tokenizer, blob, &c).at(o.tokenizer));
  } else if (!no_tokenizer) {
    sink.warn(o.source +
              ": no tokenizer given (llama2.c keeps it in a file of its own): the package speaks token ids only");
  }
  sink.finish_target(o.source, c);
  return {};
}

}  // namespace aerie
