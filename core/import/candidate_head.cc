// Subspace iteration on W^T W: multiply an orthonormal basis by it and orthonormalise, until what the basis holds
// of W stops growing. Products run on the CPU kernels: for a vocabulary of 128k and a width of 2048, W^T W alone is
// half a trillion multiplications.
#include "core/import/candidate_head.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "kernels/cpu/cpu_device.h"

namespace aerie {

namespace {

using kernels::DType;
using kernels::Layout;

class Products {
 public:
  static Result<std::unique_ptr<Products>> create(int64_t most, const std::function<bool()>& wanted) {
    std::unique_ptr<Products> p(new Products(wanted));
    AERIE_ASSIGN(p->device_, kernels::make_cpu_device({}));
    AERIE_ASSIGN(p->queue_, p->device_->make_queue());
    p->packed_ = p->device_->allocate(static_cast<size_t>(most));
    if (!p->packed_) return error(Code::out_of_memory, "out of memory");
    return p;
  }
  ~Products() {
    if (packed_) device_->release(packed_);
  }
  // The right factor of the products to come: w (n, k).
  void right(const float* w, int64_t n, int64_t k) {
    kernels::pack_panel16(w, n, k, DType::f32, packed_, nullptr);
    right_ = {packed_, nullptr, n, k, 0, DType::f32, Layout::panel16};
  }
  // out (m, n) = x (m, k) * w^T (+ out)
  Status multiply(const float* x, int64_t m, float* out, bool add = false) {
    const auto in = kernels::matrix(const_cast<float*>(x), m, right_.cols), to = kernels::matrix(out, m, right_.rows);
    const kernels::Op op = kernels::Linear{in, right_, {}, add ? to : kernels::Tensor{}, to};
    AERIE_TRY(queue_->submit({&op, 1}));
    for (;;) {
      AERIE_ASSIGN(const auto state, queue_->advance(kernels::Clock::now() + std::chrono::milliseconds(100)));
      if (wanted_ && !wanted_()) {
        queue_->abandon();
        return error(Code::cancelled, "cancelled");
      }
      if (state == kernels::RunState::done) return {};
    }
  }

 private:
  explicit Products(const std::function<bool()>& wanted) : wanted_(wanted) {}
  const std::function<bool()>& wanted_;
  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<kernels::Queue> queue_;
  void* packed_ = nullptr;
  kernels::Tensor right_;
};

float dot(const float* a, const float* b, int64_t n) {
  float lanes[16] = {};  // independent sums, which the compiler makes vectors of
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; ++l) lanes[l] += a[i + l] * b[i + l];
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float l : lanes) sum += l;
  return sum;
}

// Gram-Schmidt on the rows of q (rank, n), twice over because once loses digits. A row that the ones before it
// span (W may have a lower rank) is drawn anew.
void orthonormalise(float* q, int64_t rank, int64_t n, std::mt19937& random) {
  for (int64_t i = 0; i < rank; ++i) {
    float* row = q + i * n;
    for (float before = 0, after = 0;;) {
      before = dot(row, row, n);
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t j = 0; j < i; ++j) {
          const float share = dot(row, q + j * n, n);
          for (int64_t k = 0; k < n; ++k) row[k] -= share * q[j * n + k];
        }
      after = dot(row, row, n);
      if (after > 1e-10f * before) {
        const float scale = 1.0f / std::sqrt(after);
        for (int64_t k = 0; k < n; ++k) row[k] *= scale;
        break;
      }
      for (int64_t k = 0; k < n; ++k) row[k] = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    }
  }
}

// g (n, n) = w^T w, some rows of w at a time.
Status gram(Products& products, const std::vector<float>& w, int64_t rows, int64_t n, int64_t chunk, float* g) {
  std::vector<float> part(static_cast<size_t>(n * chunk));  // (n, chunk): transposed
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t m = std::min(chunk, rows - first);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c) part[static_cast<size_t>(c * m + r)] = w[static_cast<size_t>((first + r) * n + c)];
    products.right(part.data(), n, m);
    AERIE_TRY(products.multiply(part.data(), n, g, true));
  }
  return {};
}

// The rows of q (rank, n) become random mixtures of themselves: the same subspace, still orthonormal. Iteration leaves
// the strongest direction, mostly what all tokens have in common, in the first row; as one column among quantised ones
// it would drown the differences that decide. Spread over all of them its rounding errors shrink by sqrt(rank).
Status rotate(Products& products, int64_t rank, int64_t n, std::mt19937& random, std::vector<float>* q) {
  std::vector<float> turn(static_cast<size_t>(rank * rank)), columns(q->size());
  orthonormalise(turn.data(), rank, rank, random);  // rows of zeros: drawn
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t k = 0; k < n; ++k) columns[static_cast<size_t>(k * rank + i)] = (*q)[static_cast<size_t>(i * n + k)];
  products.right(columns.data(), n, rank);
  return products.multiply(turn.data(), rank, q->data());
}

}  // namespace

Result<LowRank> low_rank(const std::vector<float>& w, int64_t rows, int64_t n, int64_t rank, const std::function<bool()>& wanted) {
  constexpr int64_t kChunk = 512;
  constexpr int kMostRounds = 40;
  constexpr double kGain = 1e-4;  // of |W|^2: less in a round is the end
  AERIE_ASSIGN(auto products, Products::create(kernels::data_bytes(DType::f32, Layout::panel16, n, std::max(n, kChunk)), wanted));
  const auto square = static_cast<size_t>(n * n);
  std::vector<float> g(square), next(static_cast<size_t>(rank * n));
  AERIE_TRY(gram(*products, w, rows, n, kChunk, g.data()));
  double all = 0;
  for (int64_t i = 0; i < n; ++i) all += static_cast<double>(g[static_cast<size_t>(i * n + i)]);
  if (!(all < 1e30)) return error(Code::bad_format, "the LM head has values that are not finite, or absurd");

  LowRank out;
  std::mt19937 random(1);
  out.down.assign(next.size(), 0.0f);
  orthonormalise(out.down.data(), rank, n, random);  // rows of zeros: drawn
  products->right(g.data(), n, n);
  for (int round = 0; round < kMostRounds; ++round) {
    AERIE_TRY(products->multiply(out.down.data(), rank, next.data()));
    double held = 0;
    for (int64_t i = 0; i < rank; ++i) held += static_cast<double>(dot(&out.down[static_cast<size_t>(i * n)], &next[static_cast<size_t>(i * n)], n));
    const double gain = all > 0 ? held / all - out.kept : 0;
    out.kept += gain;
    if (round > 0 && gain < kGain) break;
    out.down.swap(next);
    orthonormalise(out.down.data(), rank, n, random);
  }
  AERIE_TRY(rotate(*products, rank, n, random, &out.down));
  products->right(out.down.data(), rank, n);
  out.up.resize(static_cast<size_t>(rows * rank));
  AERIE_TRY(products->multiply(w.data(), rows, out.up.data()));
  return out;
}

}  // namespace aerie
