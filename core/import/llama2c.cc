// llama2.c checkpoints (run.c, legacy export): seven int32, then f32 weights. Rotary pairs are
// interleaved there; q and k rows are put in rotate-half order, which leaves every dot product as it was.
#include <cmath>
#include <cstring>

#include "core/import/sink.h"
#include "core/package/validate.h"
#include "core/platform/file.h"
#include "core/text/tokenizer.h"

namespace aerie {

namespace {

struct Weights {
  const uint8_t* at;
  uint64_t left;
  Status status;
  std::vector<float> take(int64_t n) {
    const auto bytes = static_cast<uint64_t>(n) * 4;
    if (!status.ok()) return {};
    if (bytes > left) {
      status = error(Code::bad_format, "weights: the file is too short for its header (truncated, or not a llama2.c checkpoint)");
      return {};
    }
    std::vector<float> v(static_cast<size_t>(n));
    std::memcpy(v.data(), at, bytes);
    at += bytes;
    left -= bytes;
    for (const float x : v)
      if (!std::isfinite(x)) status = error(Code::bad_format, "weights: a value is not finite");
    return v;
  }
  void skip(int64_t n) {
    const auto bytes = static_cast<uint64_t>(n) * 4;
    if (bytes > left) status = error(Code::bad_format, "weights: the file is too short for its header");
    else at += bytes, left -= bytes;
  }
};

std::vector<float> rotate_half_order(const std::vector<float>& w, int64_t heads, int64_t head_dim, int64_t cols) {
  std::vector<float> out(w.size());
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < head_dim; ++i) {
      const int64_t from = h * head_dim + i, to = h * head_dim + (i % 2) * (head_dim / 2) + i / 2;
      std::memcpy(&out[static_cast<size_t>(to * cols)], &w[static_cast<size_t>(from * cols)], static_cast<size_t>(cols) * 4);
    }
  return out;
}

}  // namespace

Status import_llama2c(const ConvertOptions& o, Sink& sink) {
  AERIE_ASSIGN(const auto file, platform::MappedFile::open(o.source));
  const auto bytes = file->bytes();
  int32_t header[7];
  if (bytes.size() < sizeof header) return error(Code::bad_format, o.source + ": header: too short for any known format");
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
  // run.c stops at BOS: it separates stories.
  c.eos_ids = {1, 2};
  c.tap_layers = {std::min(2, std::max(c.layers - 1, 0)), std::max(c.layers, 0) / 2, std::max(c.layers - 3, 0)};
  if (Status s = package::check_config(c); !s.ok() || int64_t{c.heads} * c.head_dim != c.hidden)
    return (s.ok() ? error(Code::bad_format, "config: heads do not divide hidden") : s)
        .at(o.source + ": not a llama2.c checkpoint, or a damaged one");
  const int64_t h = c.hidden, f = c.ffn, v = c.vocab_size, kv = int64_t{c.kv_heads} * c.head_dim, n = c.layers;
  Weights w{bytes.data() + sizeof header, bytes.size() - sizeof header, {}};
  const auto embed = w.take(v * h);
  const auto attn_norm = w.take(n * h), wq = w.take(n * h * h), wk = w.take(n * kv * h), wv = w.take(n * kv * h),
             wo = w.take(n * h * h), mlp_norm = w.take(n * h), w1 = w.take(n * f * h), w2 = w.take(n * h * f),
             w3 = w.take(n * f * h), norm = w.take(h);
  w.skip(int64_t{c.max_context} * c.head_dim);  // freq_cis real and imaginary
  const auto head = c.tied ? std::vector<float>() : w.take(v * h);
  if (w.status.ok() && w.left != 0)
    w.status = error(Code::bad_format, "weights: " + std::to_string(w.left) + " bytes left over");
  if (!w.status.ok()) return w.status.at(o.source);

  const auto part = [](const std::vector<float>& all, int64_t i, int64_t size) {
    return std::vector<float>(all.begin() + i * size, all.begin() + (i + 1) * size);
  };
  const auto concat = [](std::vector<float> a, const std::vector<float>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  AERIE_TRY(sink.weight("embed", embed, v, h));
  AERIE_TRY(sink.vector("norm", norm));
  if (!c.tied) AERIE_TRY(sink.weight("lm_head", head, v, h));
  for (int64_t i = 0; i < n; ++i) {
    const std::string at = "layers." + std::to_string(i) + ".";
    AERIE_TRY(sink.vector(at + "attn_norm", part(attn_norm, i, h)));
    const auto q = rotate_half_order(part(wq, i, h * h), c.heads, c.head_dim, h);
    const auto k = rotate_half_order(part(wk, i, kv * h), c.kv_heads, c.head_dim, h);
    AERIE_TRY(sink.weight(at + "attn.qkv", concat(concat(q, k), part(wv, i, kv * h)), h + 2 * kv, h));
    AERIE_TRY(sink.weight(at + "attn.o", part(wo, i, h * h), h, h));
    AERIE_TRY(sink.vector(at + "mlp_norm", part(mlp_norm, i, h)));
    AERIE_TRY(sink.weight(at + "mlp.gate_up", concat(part(w1, i, f * h), part(w3, i, f * h)), 2 * f, h));
    AERIE_TRY(sink.weight(at + "mlp.down", part(w2, i, h * f), h, f));
    if (o.progress && !o.progress(static_cast<uint64_t>(i + 1), static_cast<uint64_t>(n)))
      return error(Code::cancelled, "conversion cancelled");
  }
  if (!o.tokenizer.empty()) {
    AERIE_ASSIGN(const auto blob, platform::read_file(o.tokenizer, 64u << 20));
    auto tokenizer = text::Tokenizer::from_llama2c(blob, c.vocab_size);
    if (!tokenizer.ok()) return tokenizer.status().at(o.tokenizer);
    const std::vector<uint8_t> out = (*tokenizer)->serialize();
    sink.hash(out.data(), out.size());
    AERIE_TRY(sink.writer().add_blob("tokenizer", out));
  }
  sink.hash(header, sizeof header);
  const size_t slash = o.source.rfind('/');
  sink.writer().set_name(slash == std::string::npos ? o.source : o.source.substr(slash + 1));
  sink.writer().set_fingerprint(sink.fingerprint());
  sink.writer().set_target(std::move(c));
  return {};
}

}  // namespace aerie
