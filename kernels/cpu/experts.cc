// Mixtures of experts. What rows want of an expert is a Linear of its own whose rows lie anywhere: its weights pass once for up to
// kMostRows of them.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/op_kernels.h"
#include "kernels/route_math.h"

namespace aerie::kernels::cpu {

namespace {

float* row(const Tensor& t, int64_t r) { return static_cast<float*>(t.data) + r * t.stride; }

// Rows that are packed together. With more a task has so few panels in its time that packing, which every thread does for itself,
// is worth mentioning; with fewer the weights come from afar too often.
constexpr int64_t kMostRows = 64;
// Nanoseconds of a task: worth a hand-over between cores, short enough for a frame budget.
constexpr int64_t kLeastTask = 4000, kMostTask = 100000;

int64_t experts_of(const ExpertLinear& op) { return std::min<int64_t>(op.w.rows / op.out.cols, kMaxExperts); }
int64_t panels_of(const ExpertLinear& op) { return op.out.cols / kPanel; }

// What m rows want of an expert.
Linear linear_of(const ExpertLinear& op, int64_t expert, int64_t m) {
  const Tensor bias = op.bias ? rows(op.bias, expert, 1) : Tensor{};
  return {rows(op.x, 0, m), panels(op.w, expert * panels_of(op), panels_of(op)), bias, {}, rows(op.out, 0, m)};
}

// How many rows each expert has, and behind the last how many have none.
struct ExpertRows {
  int64_t experts;
  std::array<int32_t, kMaxExperts + 1> count;

  explicit ExpertRows(const ExpertLinear& op) : experts(experts_of(op)) {
    std::fill_n(count.begin(), experts + 1, 0);
    for (int64_t p = 0; p < op.out.rows; ++p) ++count[place(op.experts[p])];
  }
  size_t place(int32_t expert) const { return std::min(static_cast<size_t>(static_cast<uint32_t>(expert)), static_cast<size_t>(experts)); }
};

// An expert's rows in batches that are about alike. fn(first of these rows, rows)
template <class Fn>
void each_batch(int64_t count, const Fn& fn) {
  const int64_t n = (count + kMostRows - 1) / kMostRows;
  for (int64_t i = 0; i < n; ++i) fn(count * i / n, count * (i + 1) / n - count * i / n);
}

// How an op is cut: its batches, each of them into tasks.
struct ExpertCut {
  ExpertRows rows;
  int64_t batches = 0, tasks = 0, room = 0;          // room: for the largest batch's rows, packed
  std::array<int32_t, kMostRows + 1> panels_each{};  // of a task of a batch of so many rows; of those without expert all

  ExpertCut(const ExpertLinear& op, int threads) : rows(op) {
    std::array<int32_t, kMostRows + 1> of_rows{};
    std::array<int64_t, kMostRows + 1> ns{};
    int64_t all = 0;
    const auto count = [&](int64_t, int64_t m) { ++of_rows[static_cast<size_t>(m)]; };
    for (int64_t e = 0; e < rows.experts; ++e) each_batch(rows.count[static_cast<size_t>(e)], count);
    for (size_t m = 1; m <= kMostRows; ++m) {
      if (of_rows[m] == 0) continue;
      const Linear linear = linear_of(op, 0, static_cast<int64_t>(m));
      ns[m] = std::max<int64_t>({estimate(linear), weights_read(linear) / kMemoryBytes, 1});
      room = std::max(room, packing_bytes(linear));
      all += of_rows[m] * ns[m];
    }
    const int64_t task = threads > 1 ? std::clamp(all / (threads * 8), kLeastTask, kMostTask) : kMostTask, panels = panels_of(op);
    for (size_t m = 1; m <= kMostRows; ++m) {
      if (of_rows[m] == 0) continue;
      const int64_t parts = std::min((ns[m] + task - 1) / task, panels);
      const int64_t each = round_up((panels + parts - 1) / parts, panels_at_once(linear_of(op, 0, static_cast<int64_t>(m))));
      panels_each[m] = static_cast<int32_t>(each);
      batches += of_rows[m];
      tasks += of_rows[m] * ((panels + each - 1) / each);
    }
    const int64_t without = (rows.count[static_cast<size_t>(rows.experts)] + kMostRows - 1) / kMostRows;
    batches += without;
    tasks += without;
  }
};

struct ExpertBatch {
  int32_t expert, first, rows;  // in the order of experts
  int32_t task, panels;         // its first; each one's
};

// What a thread works out once for an op, in its scratch: the batches; which rows of x and of the outputs they have; and the rows of
// the last batch it met, packed.
class BatchedRows {
 public:
  BatchedRows(const ExpertLinear& op, int threads, Scratch& scratch) : places_(op.out.rows), divided_(op.x.rows != op.out.rows) {
    head_ = static_cast<Head*>(scratch.kept());
    if (!head_) {
      const ExpertCut cut(op, threads);
      const int64_t index = round_up(size(cut.batches), kLine);
      head_ = static_cast<Head*>(scratch.get(static_cast<size_t>(index + cut.room)));
      *head_ = {cut.batches, index, 0, 0};
      fill(op, cut);
    }
    scratch.keep();
  }

  const ExpertBatch& batch_of(int32_t task) const {
    return *(std::upper_bound(batches(), batches() + head_->batches, task, [](int32_t t, const ExpertBatch& b) { return t < b.task; }) - 1);
  }
  const int32_t* to(const ExpertBatch& b) const { return all_to() + b.first; }
  PackedRows pack(const Linear& linear, const ExpertBatch& b) {
    // One row's experts all read the same.
    const int32_t* const from = all_from() + b.first;
    const bool again = head_->packed_rows == b.rows && std::equal(from, from + b.rows, all_from() + head_->packed);
    head_->packed = b.first, head_->packed_rows = b.rows;
    return pack_rows(linear, from, to(b), reinterpret_cast<char*>(head_) + head_->room, again);
  }

 private:
  struct Head {
    int64_t batches, room;        // bytes from here to the packed rows
    int64_t packed, packed_rows;  // of which batch: its first, how many; 0: none
  };
  // Batches, then the rows of the outputs, then those of x where they are others.
  int64_t size(int64_t batches) const {
    return static_cast<int64_t>(sizeof(Head)) + batches * static_cast<int64_t>(sizeof(ExpertBatch)) + places_ * (divided_ ? 8 : 4);
  }
  ExpertBatch* batches() const { return reinterpret_cast<ExpertBatch*>(head_ + 1); }
  int32_t* all_to() const { return reinterpret_cast<int32_t*>(batches() + head_->batches); }
  int32_t* all_from() const { return all_to() + (divided_ ? places_ : 0); }

  void fill(const ExpertLinear& op, const ExpertCut& cut) {
    std::array<int32_t, kMaxExperts + 1> next;  // where an expert's next row goes
    int32_t first = 0, task = 0;
    ExpertBatch* batch = batches();
    for (size_t e = 0; e <= static_cast<size_t>(cut.rows.experts); ++e) {
      next[e] = first;
      each_batch(cut.rows.count[e], [&](int64_t at, int64_t m) {
        const bool none = e == static_cast<size_t>(cut.rows.experts);
        const auto panels = static_cast<int32_t>(panels_of(op)), each = none ? panels : cut.panels_each[static_cast<size_t>(m)];
        *batch++ = {static_cast<int32_t>(e), first + static_cast<int32_t>(at), static_cast<int32_t>(m), task, each};
        task += (panels + each - 1) / each;
      });
      first += cut.rows.count[e];
    }
    int32_t* const to = all_to();
    for (int64_t p = 0; p < places_; ++p) to[next[cut.rows.place(op.experts[p])]++] = static_cast<int32_t>(p);
    for (int64_t i = 0; divided_ && i < places_; ++i) all_from()[i] = to[i] / op.k;
  }

  const int64_t places_;
  const bool divided_;
  Head* head_;
};

// Experts that rows take. What many rows take, the first of them say well enough.
int64_t count_experts(const ExpertLinear& op) {
  constexpr int64_t kEnough = 1024;
  std::array<bool, kMaxExperts + 1> taken{};
  int64_t n = 0;
  const int64_t experts = experts_of(op);
  for (int64_t p = 0; p < std::min(op.out.rows, kEnough); ++p) {
    const int64_t e = op.experts[p];
    if (e >= 0 && e < experts) n += !std::exchange(taken[static_cast<size_t>(e)], true);
  }
  return n;
}

}  // namespace

int64_t weights_read(const ExpertLinear& op) { return count_experts(op) * weights_read(linear_of(op, 0, 1)); }

int64_t estimate(const ExpertLinear& op) {
  return std::max(count_experts(op) * estimate(linear_of(op, 0, 1)), estimate(linear_of(op, 0, op.out.rows)));
}

int32_t tasks(const ExpertLinear& op, int threads) { return static_cast<int32_t>(ExpertCut(op, threads).tasks); }

void run(const ExpertLinear& op, int32_t task, int threads, Scratch& scratch) {
  BatchedRows batched(op, threads, scratch);
  const ExpertBatch& b = batched.batch_of(task);
  if (b.expert == experts_of(op)) {
    for (int32_t r = 0; r < b.rows; ++r) std::fill_n(row(op.out, batched.to(b)[r]), op.out.cols, 0.0f);
    return;
  }
  const Linear linear = linear_of(op, b.expert, b.rows);
  const int64_t first = int64_t{task - b.task} * b.panels;
  linear_range(linear, first, std::min(panels_of(op), first + b.panels), batched.pack(linear, b));
}

int32_t tasks(const Route& op, int) { return static_cast<int32_t>((op.logits.rows + 15) / 16); }
void run(const Route& op, int32_t task, int, Scratch&) {
  for (int64_t r = task * 16; r < std::min<int64_t>(op.logits.rows, task * 16 + 16); ++r) route_row(op, r);
}

// N outputs of a row.
template <int N>
static void combine(const float* x, int64_t stride, const float* weights, int64_t k, float* out) {
  float sums[N];
  for (int c = 0; c < N; ++c) sums[c] = weights[0] * x[c];
  for (int64_t i = 1; i < k; ++i)
    for (int c = 0; c < N; ++c) sums[c] += weights[i] * x[i * stride + c];
  for (int c = 0; c < N; ++c) out[c] = sums[c];
}

// Rows of a task: of some ten thousand products, and not so many that they take longer than a task may.
static int64_t combined_rows(const CombineExperts& op, int threads) {
  const int64_t width = std::max<int64_t>(op.weights.cols * op.out.cols, 1);
  const int64_t least = std::max<int64_t>(1, 16384 / width), most = std::max<int64_t>(least, 500000 / width);
  return std::clamp((op.out.rows + threads * 4 - 1) / (threads * 4), least, most);
}

int32_t tasks(const CombineExperts& op, int threads) {
  const int64_t per = combined_rows(op, threads);
  return static_cast<int32_t>((op.out.rows + per - 1) / per);
}
void run(const CombineExperts& op, int32_t task, int threads, Scratch&) {
  const int64_t k = op.weights.cols, per = combined_rows(op, threads);
  for (int64_t r = task * per; r < std::min(op.out.rows, (task + 1) * per); ++r) {
    const float* w = row(op.weights, r);
    for (int64_t c = 0; c < op.out.cols; c += kPanel) {  // what fits the registers of any processor
      const int64_t n = std::min<int64_t>(kPanel, op.out.cols - c);
      if (n == kPanel) combine<kPanel>(row(op.x, r * k) + c, op.x.stride, w, k, row(op.out, r) + c);
      else
        for (int64_t i = c; i < c + n; ++i) combine<1>(row(op.x, r * k) + i, op.x.stride, w, k, row(op.out, r) + i);
    }
  }
}

}  // namespace aerie::kernels::cpu
