// Packages of models with recurrent layers.
#include <functional>

#include "manifest_generated.h"
#include "unit/package/fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

LlamaConfig config_of_recurrent() {
  LlamaConfig c = small_config();
  c.hidden = 32;
  c.layers = 3;
  c.qk_norm = true;
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  Departures& d = c.departures;
  d.output_gate = true;
  d.delta_layers = {1, 0, 1};
  d.delta_key_heads = 2, d.delta_heads = 6, d.delta_key_dim = 16, d.delta_value_dim = 32, d.delta_taps = 3;
  return c;
}

Bytes package_of_recurrent(DType dtype = DType::int8) {
  const Folder folder;
  const Status written = write_target(folder / "t.aerie", config_of_recurrent(), dtype);
  EXPECT_TRUE(written.ok()) << written.message();
  return slurp(folder / "t.aerie");
}

TEST(RecurrentPackage, GivesBackFieldsAndTensors) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    const Bytes file = package_of_recurrent(dtype);
    OpenOptions checked;
    checked.check_data = true;
    const auto p = Package::open_memory(file, "mem.aerie", checked);
    ASSERT_TRUE(p.ok()) << p.status().message();
    EXPECT_EQ((*p)->target()->departures, config_of_recurrent().departures);
    EXPECT_EQ((*p)->target()->attention_layers(), 1);
    for (const auto& [name, rows, cols, weight] :
         {std::tuple{"layers.0.delta.in", 64 + 2 * 192, 32, true}, {"layers.2.delta.gates", 12, 32, true},
          {"layers.0.delta.conv", 3, 64 + 192, false}, {"layers.2.delta.decay", 2, 6, false}, {"layers.0.delta.norm", 1, 32, false},
          {"layers.2.delta.out", 32, 192, true}, {"layers.1.attn.qkv", 16, 32, true}, {"layers.1.attn.gate", 8, 32, true},
          {"layers.1.attn.k_norm", 1, 4, false}}) {
      const auto t = (*p)->tensor(name);
      ASSERT_TRUE(t.ok()) << t.status().message();
      EXPECT_EQ(t->rows, rows) << name;
      EXPECT_EQ(t->cols, cols) << name;
      const bool precise = std::string(name).ends_with("gates") && kernels::has_scales(dtype);
      EXPECT_EQ(t->dtype, weight ? precise ? DType::bf16 : dtype : DType::f32) << name;
    }
    for (const char* name : {"layers.0.attn.qkv", "layers.0.attn.gate", "layers.2.attn.o", "layers.2.attn.k_norm", "layers.1.delta.in"})
      EXPECT_FALSE((*p)->has(name)) << name;
  }
}

TEST(RecurrentPackage, EveryNumberIsJudged) {
  const Bytes file = package_of_recurrent();
  ASSERT_TRUE(open_status(file).ok());
  const auto refused = [&](const std::string& names, const std::function<void(Departures&)>& change) {
    expect_refused(file, names, [&](package::Manifest& m) { change(m.target->departures); });
  };
  using D = Departures;
  refused("delta_layers count: 2 is not in [3, 3]", [](D& d) { d.delta_layers = {1, 0}; });
  refused("delta_layers count: 4 is not in [3, 3]", [](D& d) { d.delta_layers = {1, 0, 1, 0}; });
  refused("delta_layers count: 1000000 is not in [3, 3]", [](D& d) { d.delta_layers.resize(1000000); });
  refused("delta_layers: 2 is not in [0, 1]", [](D& d) { d.delta_layers = {1, 0, 2}; });
  refused("delta_layers: -1 is not in [0, 1]", [](D& d) { d.delta_layers = {-1, 0, 1}; });
  refused("delta_layers: no layer has attention", [](D& d) { d.delta_layers = {1, 1, 1}; });
  refused("without delta_layers", [](D& d) { d.delta_layers.clear(); });
  for (int32_t D::*size : {&D::delta_key_heads, &D::delta_heads, &D::delta_key_dim, &D::delta_value_dim, &D::delta_taps})
    refused("without delta_layers", [&](D& d) {
      const int32_t one = d.*size;
      d = {};
      d.*size = one;
    });
  for (const int32_t n : {0, -1, 1025, 2147483647}) {
    refused("delta_heads: " + std::to_string(n) + " is not in [1, 1024]", [&](D& d) { d.delta_heads = n; });
    refused("delta_key_heads: " + std::to_string(n) + " is not in [1, 6]", [&](D& d) { d.delta_key_heads = n; });
  }
  refused("delta_key_heads: 4 does not divide delta_heads 6", [](D& d) { d.delta_key_heads = 4; });
  for (const int32_t n : {0, -16, 8, 528, 2147483647}) {
    refused("delta_key_dim: " + std::to_string(n) + " is not in [16, 512]", [&](D& d) { d.delta_key_dim = n; });
    refused("delta_value_dim: " + std::to_string(n) + " is not in [16, 512]", [&](D& d) { d.delta_value_dim = n; });
  }
  refused("delta_key_dim: 24 is no multiple of 16", [](D& d) { d.delta_key_dim = 24; });
  refused("delta_value_dim: 40 is no multiple of 16", [](D& d) { d.delta_value_dim = 40; });
  for (const int32_t n : {0, 1, -3, 9, 2147483647})
    refused("delta_taps: " + std::to_string(n) + " is not in [2, 8]", [&](D& d) { d.delta_taps = n; });
  for (const auto norms : {D::Norms::after, D::Norms::both}) refused("delta_layers: with a norm", [&](D& d) { d.norms = norms; });
  refused("delta_layers: with a norm or a scale", [](D& d) { d.residual_scale = 0.5f; });
  expect_refused(file, "rope_scaling: must be listed", [](package::Manifest& m) { m.target->rope_scaling.kind = RopeScaling::Kind::none; });
  // Sound ones that are not those of the tensors.
  refused("layers.0.delta.in: shape (448, 32), the config needs (416, 32)", [](D& d) { d.delta_key_heads = 1; });
  refused("layers.0.delta.in: shape (448, 32), the config needs (1050624, 32)",
          [](D& d) { d.delta_heads = 1024, d.delta_value_dim = d.delta_key_dim = 512; });
  refused("layers.0.delta.conv: shape (3, 256), the config needs (4, 256)", [](D& d) { d.delta_taps = 4; });
  refused("layers.0.attn.qkv: the tensor is missing", [](D& d) { d.delta_layers = {0, 1, 1}; });
  refused("layers.0.attn.qkv: the tensor is missing", [](D& d) { d.delta_layers = {0, 0, 0}; });
}

// Whoever does not know one of these pieces must not run the model without it.
TEST(RecurrentPackage, NothingIsMissingAndNothingLeftOver) {
  const Bytes file = package_of_recurrent();
  expect_refused(file, "layers.1.attn.gate: unexpected tensor", [](package::Manifest& m) { m.target->departures.output_gate = false; });
  for (const char* name : {"layers.0.delta.in", "layers.0.delta.gates", "layers.2.delta.conv", "layers.2.delta.decay", "layers.0.delta.norm",
                           "layers.2.delta.out", "layers.1.attn.gate", "layers.1.attn.qkv", "layers.2.attn_norm"})
    expect_refused(file, std::string(name) + ": the tensor is missing", [&](package::Manifest& m) {
      for (auto& t : m.tensors) t.name = t.name == name ? "other" : t.name;
    });
}

// A package with `name` as `add` writes it, in place of its own or beside all others: its refusal.
std::string recurrent_refusal(const std::string& name, const std::function<Status(PackageWriter&)>& add) {
  const Folder folder;
  const LlamaConfig c = config_of_recurrent();
  auto w = PackageWriter::create(folder / "t.aerie");
  (*w)->set_name("tiny");
  (*w)->set_fingerprint(kFingerprint);
  (*w)->set_target(c);
  EXPECT_TRUE(add(**w).ok());
  for (const auto& e : package::expected_tensors(c)) {
    if (e.name == name) continue;
    std::vector<float> v = values(e.name, e.rows * e.cols);
    const Packed packed = pack(v, e.rows, e.cols, DType::bf16);
    EXPECT_TRUE((*w)->add_tensor(e.name, e.weight ? packed.tensor : kernels::matrix(v.data(), e.rows, e.cols)).ok()) << e.name;
  }
  const Status s = (*w)->finish();
  EXPECT_EQ(s.code(), Code::bad_format) << name;
  return s.message();
}

TEST(RecurrentPackage, TensorsOfAnotherFormAreNotWritten) {
  const auto is = [](const std::string& name, int64_t rows, int64_t cols, DType dtype, bool panels, const std::string& words) {
    std::vector<float> v = values(name, rows * cols);
    const std::string said = recurrent_refusal(name, [&](PackageWriter& w) {
      return w.add_tensor(name, panels ? pack(v, rows, cols, dtype).tensor : kernels::matrix(v.data(), rows, cols));
    });
    EXPECT_NE(said.find(name + ": " + words), std::string::npos) << said;
  };
  for (const DType dtype : {DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    is("layers.0.delta.gates", 12, 32, dtype, true, "must be bf16 or f32");
  is("layers.0.delta.gates", 12, 32, DType::f32, false, "must be in the panel16 layout");
  is("layers.2.delta.in", 448, 32, DType::f32, false, "must be in the panel16 layout");
  is("layers.1.attn.gate", 8, 32, DType::f32, false, "must be in the panel16 layout");
  for (const auto& [name, rows, cols] : {std::tuple{"layers.0.delta.conv", 3, 256}, {"layers.0.delta.decay", 2, 6}, {"layers.2.delta.norm", 1, 32}})
    is(name, rows, cols, DType::f32, true, "must be f32, row_major");
  is("layers.0.delta.conv", 256, 3, DType::f32, false, "shape (256, 3), the config needs (3, 256)");
  is("layers.0.delta.gates", 6, 32, DType::f32, true, "shape (6, 32), the config needs (12, 32)");
  // Of the other kind of layer.
  is("layers.0.attn.qkv", 16, 32, DType::bf16, true, "unexpected tensor");
  is("layers.2.attn.o", 32, 8, DType::bf16, true, "unexpected tensor");
  is("layers.2.attn.k_norm", 1, 4, DType::f32, false, "unexpected tensor");
  is("layers.0.attn.gate", 8, 32, DType::bf16, true, "unexpected tensor");
  is("layers.1.delta.norm", 1, 32, DType::f32, false, "unexpected tensor");
}

// A model without recurrent layers has the manifest it had before there were any: the table ends where it did.
TEST(RecurrentPackage, OthersHaveTheManifestTheyHad) {
  package::Manifest m;
  m.name = "tiny";
  m.fingerprint = kFingerprint;
  m.target = config_of_recurrent();
  EXPECT_EQ(departures_bytes(m), fbs::Departures::VT_DELTA_TAPS + 2);
  m.target->departures = {};
  m.target->departures.output_gate = true;
  EXPECT_EQ(departures_bytes(m), fbs::Departures::VT_OUTPUT_GATE + 2);
  m.target->departures.output_gate = false;
  m.target->departures.expert_scale = 2;
  EXPECT_EQ(departures_bytes(m), fbs::Departures::VT_EXPERT_SCALE + 2);
}

}  // namespace
}  // namespace aerie::test
