// Attention within a window: a row looks at the last so many positions, wherever they lie.
#include "unit/kernels/attention_long.h"

namespace aerie::kernels::attention_test {
namespace {

constexpr int32_t kWindows[] = {1, 20, kPageSlots, 150, kSpanSlots + 40, kContext + 1};

TEST(AttentionWindow, MatchesTheReferenceOnEveryIsaWhateverTheCompany) {
  for (const Shape& s : kLong) {
    LongCache c(s);
    ragged(c);
    const size_t width = static_cast<size_t>(s.heads) * static_cast<size_t>(s.dim), n = c.rows.seq.size();
    Floats q = random_floats(n * width, 3, 2.0f);
    const Floats everything = attend(c, c.rows, q, 0);
    for (const int32_t window : kWindows) {
      SCOPED_TRACE("dim " + std::to_string(s.dim) + ", window " + std::to_string(window));
      c.rows.window = window;
      const Floats want = attend_reference(c, c.rows, q, 0);
      expect_near(attend_split(c, c.rows, q, 3, [](const auto& op) { run_reference(op); }), want, 1e-6f);
      each_isa([&] {
        const Floats whole = attend(c, c.rows, q, 0);
        expect_near(whole, want, 2e-5f);
        EXPECT_TRUE(same_bits(attend(c, c.rows, q, 0, 40), whole));
        EXPECT_TRUE(same_bits(attend_split(c, c.rows, q, 3, [](const auto& op) { run_cpu(op, 8); }), whole));
        for (size_t r = static_cast<size_t>(window) % 3; r < n; r += 3) {
          const auto first = q.begin() + static_cast<std::ptrdiff_t>(r * width);
          Floats own(first, first + static_cast<std::ptrdiff_t>(width));
          EXPECT_TRUE(same_bits(attend(c, c.rows.only(r), own, 0).data(), whole.data() + r * width, width * 4)) << "row " << r << " alone";
        }
      });
      EXPECT_EQ(same_bits(attend(c, c.rows, q, 0), everything), window > kContext) << "a window as wide as the text changes nothing";
    }
  }
}

TEST(AttentionWindow, ATailHasTheBitsOfPlainContextAndWhatIsOutsideIsNotTouched) {
  for (const Shape& s : kLong) {
    LongCache c(s);
    const size_t width = static_cast<size_t>(s.heads) * static_cast<size_t>(s.dim);
    Floats q = random_floats(width, 8, 2.0f);
    for (const int32_t length : {kSpanSlots + 20, 2 * kSpanSlots + 1})
      for (const int32_t window : {1, 20, 45, kSpanSlots - 3}) {
        SCOPED_TRACE("length " + std::to_string(length) + ", window " + std::to_string(window));
        Rows plain = c.rows;
        plain.window = window;
        plain.add(0, length, {});
        const Floats want = attend(c, plain, q, 0);
        Cache poisoned = c;
        poisoned.kv.data = poisoned.bytes.data();
        if (c.kv.scales) poisoned.kv.scales = reinterpret_cast<float*>(poisoned.bytes.data() + (reinterpret_cast<char*>(c.kv.scales) - c.bytes.data()));
        const int64_t size = s.dim * kv_element_bytes(s.dtype);
        for (int32_t p = 0; p < length - window; ++p)
          for (int64_t head = 0; head < 2 * s.kv_heads; ++head) {  // keys' and values'
            const int64_t row = kv_row(poisoned.kv, 0, 0, head, c.slot(0, p));
            std::fill_n(poisoned.bytes.begin() + row * size, size, static_cast<char>(0xff));
            if (c.kv.scales) poisoned.kv.scales[row] = std::nanf("");
          }
        EXPECT_TRUE(same_bits(attend(poisoned, plain, q, 0), want));
        for (int32_t n = 1; n <= 40; n += 13) {
          Rows tree = c.rows;
          tree.window = window;
          c.add_with_tail(&tree, length, n);
          EXPECT_TRUE(same_bits(attend(c, tree, q, 0), want)) << n;
          EXPECT_TRUE(same_bits(attend_split(c, tree, q, 4, [](const auto& op) { run_cpu(op, 2); }), want)) << n;
        }
      }
  }
}

}  // namespace
}  // namespace aerie::kernels::attention_test
