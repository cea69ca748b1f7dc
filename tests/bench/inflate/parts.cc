#include "parts.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_device.h"

namespace aerie::inflate {

namespace {

// A map must show all of the tensor or nothing: a part left out would change the function, one beyond the end is
// none of the package's.
Status check(const Package& package, const std::string& name, const char* axis, const Map& m, int64_t unit, int64_t size) {
  const int64_t n = shown(m) * unit;
  if (n == 0 || n == size) return {};
  return error(Code::mismatch, package.path() + ": tensor " + name + ": has " + std::to_string(size) + " " + axis + ", " +
                                   std::to_string(n) + " expected");
}

Map for_each_expert(const Map& rows, int32_t experts) {
  Map all;
  for (int32_t e = 0; e < std::max(experts, 1); ++e) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace

Status Parts::matrix(const std::string& name, const Map& rows, const Map& columns, const std::string& as) {
  AERIE_ASSIGN(const kernels::Tensor t, job_.small->tensor(name));
  if (t.layout != kernels::Layout::panel16)
    return error(Code::mismatch, job_.small->path() + ": tensor " + name + ": not a packed weight");
  AERIE_TRY(check(*job_.small, name, "rows", rows, 1, t.rows));
  AERIE_TRY(check(*job_.small, name, "columns", columns, maps_.unit, t.cols));
  const std::string& to = as.empty() ? name : as;
  const Matrix m = inflate_matrix(t, rows, columns, maps_.unit, Random(job_.seed, to));
  return put(to, m.tensor);
}

Status Parts::vector(const std::string& name, const Map& places, float factor, float typical, const std::string& as) {
  AERIE_ASSIGN(const kernels::Tensor t, job_.small->tensor(name));
  if (t.rows != 1 || t.dtype != kernels::DType::f32 || t.layout != kernels::Layout::row_major)
    return error(Code::mismatch, job_.small->path() + ": tensor " + name + ": not a vector of floats");
  AERIE_TRY(check(*job_.small, name, "elements", places, 1, t.cols));
  const std::string& to = as.empty() ? name : as;
  std::vector<float> v = inflate_vector(t, places, factor, typical, Random(job_.seed, to));
  return put(to, kernels::matrix(v.data(), 1, static_cast<int64_t>(v.size())));
}

// mean(x^2) over D instead of d values is smaller by d / D; so are eps and, by the root, the weights.
Status Parts::norm(const std::string& name, const std::string& as) {
  const float factor = norm_factor(s_.hidden, s_.big_hidden);
  return vector(name, maps_.rows_from(s_.hidden, s_.big_hidden, kNoise), factor, factor, as);
}

Status Parts::candidate_head(const Map& vocabulary) {
  if (!job_.small->has("candidate.up")) return {};
  AERIE_ASSIGN(const kernels::Tensor down, job_.small->tensor("candidate.down"));
  const auto rank = static_cast<int32_t>(down.rows), unit = maps_.unit;
  if (rank % unit != 0) return error(Code::invalid_argument, "candidate head: rank " + std::to_string(rank) + " is no multiple of " + std::to_string(unit));
  const int32_t big = std::max(rank, (s_.big_hidden / 16 + unit - 1) / unit * unit);
  AERIE_TRY(matrix("candidate.down", maps_.rows_from(rank, big, kSilent), residual_columns()));
  return matrix("candidate.up", vocabulary, maps_.columns(rank, big));
}

// Wide enough for rows to disagree on what is best. Columns that are not live meet zeros.
Status Parts::router(const std::string& as) {
  const float width = 2 / std::sqrt(static_cast<float>(s_.hidden));
  const kernels::DType dtype = kernels::DType::bf16;
  Random random(job_.seed, as);
  std::vector<float> values(static_cast<size_t>(int64_t{s_.experts} * s_.big_hidden));
  for (float& v : values) v = (2 * random.uniform() - 1) * width;
  std::vector<char> data(static_cast<size_t>(kernels::data_bytes(dtype, kernels::Layout::panel16, s_.experts, s_.big_hidden)));
  kernels::pack_panel16(values.data(), s_.experts, s_.big_hidden, dtype, data.data(), nullptr);
  return put(as, {data.data(), nullptr, s_.experts, s_.big_hidden, 0, dtype, kernels::Layout::panel16});
}

Status Parts::layer(int32_t from, int32_t to, int32_t groups) {
  return layer_as("layers." + std::to_string(from) + ".", "layers." + std::to_string(to) + ".", true, groups);
}
Status Parts::idle_layer(int32_t like, int32_t to) {
  return layer_as("layers." + std::to_string(like) + ".", "layers." + std::to_string(to) + ".", false, 1);
}

Status Parts::layer_as(const std::string& from, const std::string& to, bool live, int32_t groups) {
  const int32_t hd = s_.head_dim;
  const int32_t q0 = 0, k0 = shown(s_.heads.query) * hd, v0 = k0 + shown(s_.heads.kv) * hd;
  Map qkv;
  const auto add = [&](const Map& heads, int32_t first, int32_t idle) {
    for (const int32_t h : heads)
      for (int32_t i = 0; i < hd; ++i) qkv.push_back(live && h >= 0 ? first + h * hd + i : idle);
  };
  add(s_.heads.query, q0, kNoise);
  add(s_.heads.kv, k0, kNoise);
  add(s_.heads.kv, v0, kSilent);  // an idle group's values are zero, and so is what its heads give
  Map o;
  for (size_t h = 0; h < s_.heads.query.size(); ++h)
    for (int32_t i = 0; i < hd / maps_.unit; ++i) {
      const int32_t head = live ? s_.heads.query[h] : -1;
      o.push_back(head < 0 ? kQuiet : s_.heads.repeated[h] ? kHot : head * (hd / maps_.unit) + i);
    }
  const int32_t f = live ? s_.ffn : 0;
  Map gate_up = maps_.rows_from(f, s_.big_ffn, kNoise), up = maps_.rows_from(f, s_.big_ffn, kSilent);
  for (const int32_t u : up) gate_up.push_back(u >= 0 ? s_.ffn + u : u);

  if (job_.small->has(from + "attn_norm")) AERIE_TRY(norm(from + "attn_norm", to + "attn_norm"));
  AERIE_TRY(matrix(from + "attn.qkv", qkv, residual_columns(groups), to + "attn.qkv"));
  if (job_.small->has(from + "attn.qkv.bias")) AERIE_TRY(vector(from + "attn.qkv.bias", qkv, 1, 1, to + "attn.qkv.bias"));
  const Map out = live ? residual_rows() : Map(static_cast<size_t>(s_.big_hidden), kNoise);
  AERIE_TRY(matrix(from + "attn.o", out, o, to + "attn.o"));
  AERIE_TRY(norm(from + "mlp_norm", to + "mlp_norm"));
  const int32_t experts = s_.experts;
  const std::string mlp = to + (experts > 0 ? "mlp.experts." : "mlp.");
  if (experts > 0) AERIE_TRY(router(to + "mlp.router"));
  AERIE_TRY(matrix(from + "mlp.gate_up", for_each_expert(gate_up, experts), residual_columns(), mlp + "gate_up"));
  return matrix(from + "mlp.down", for_each_expert(out, experts), maps_.columns(f, s_.big_ffn), mlp + "down");
}

}  // namespace aerie::inflate
