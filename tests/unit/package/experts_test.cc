// Packages of models with mixtures of experts.
#include <functional>

#include "manifest_generated.h"
#include "unit/package/fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

LlamaConfig config_of_experts() {
  LlamaConfig c = small_config();
  c.hidden = 32;
  c.ffn = 24;
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  c.departures.experts = 5;
  c.departures.experts_used = 3;
  c.departures.norm_experts = true;
  return c;
}

Bytes package_of_experts(const LlamaConfig& c, DType dtype = DType::int8) {
  const Folder folder;
  const Status written = write_target(folder / "t.aerie", c, dtype);
  EXPECT_TRUE(written.ok()) << written.message();
  return slurp(folder / "t.aerie");
}

TEST(PackageOfExperts, GivesBackFieldsAndTensors) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const bool norm : {false, true}) {
      LlamaConfig c = config_of_experts();
      c.departures.norm_experts = norm;
      const Bytes file = package_of_experts(c, dtype);
      OpenOptions checked;
      checked.check_data = true;
      const auto p = Package::open_memory(file, "mem.aerie", checked);
      ASSERT_TRUE(p.ok()) << p.status().message();
      EXPECT_EQ((*p)->target()->departures, c.departures);
      EXPECT_FALSE((*p)->has("layers.0.mlp.gate_up"));
      EXPECT_FALSE((*p)->has("layers.0.mlp.down"));
      for (const auto& [name, rows, cols] : {std::tuple{"layers.1.mlp.router", 5, 32}, {"layers.1.mlp.experts.gate_up", 5 * 2 * 24, 32},
                                             {"layers.1.mlp.experts.down", 5 * 32, 24}}) {
        const auto t = (*p)->tensor(name);
        ASSERT_TRUE(t.ok()) << t.status().message();
        EXPECT_EQ(t->rows, rows) << name;
        EXPECT_EQ(t->cols, cols) << name;
        const bool router = std::string(name).ends_with("router");
        EXPECT_EQ(t->dtype, router && dtype != DType::f32 ? DType::bf16 : dtype) << name;
        const Packed want = pack(values(name, int64_t{rows} * cols), rows, cols, t->dtype);
        EXPECT_EQ(std::memcmp(t->data, want.data.data(), want.data.size()), 0) << name;
      }
    }
}

// A panel of 16 outputs belongs to one expert, in both matrices: so hidden and ffn are judged, too.
TEST(PackageOfExperts, EveryNumberIsJudged) {
  const Bytes file = package_of_experts(config_of_experts());
  ASSERT_TRUE(open_status(file).ok());
  const auto refused = [&](const std::string& names, const std::function<void(package::Manifest&)>& change) { expect_refused(file, names, change); };
  using M = package::Manifest;
  const auto departures = [](M& m) -> Departures& { return m.target->departures; };
  refused("experts: -1 is not in [1, 1024]", [&](M& m) { departures(m).experts = -1; });
  refused("experts: 1025 is not in [1, 1024]", [&](M& m) { departures(m).experts = 1025; });
  refused("experts: 0 is not in [1, 1024]", [&](M& m) { departures(m).experts = 0; });
  refused("experts: 0 is not in [1, 1024]", [&](M& m) { departures(m).experts = departures(m).experts_used = 0; });
  refused("experts_used: 6 is not in [1, 5]", [&](M& m) { departures(m).experts_used = 6; });
  refused("experts_used: 0 is not in [1, 5]", [&](M& m) { departures(m).experts_used = 0; });
  refused("experts_used: 33 is not in [1, 32]", [&](M& m) { departures(m).experts = 64, departures(m).experts_used = 33; });
  refused("hidden 40 is no multiple of 16", [&](M& m) { m.target->hidden = 40; });
  refused("ffn 28 is no multiple of 8", [&](M& m) { m.target->ffn = 28; });
  refused("rope_scaling: must be listed", [&](M& m) { m.target->rope_scaling.kind = RopeScaling::Kind::none; });
  // Fewer or more experts than the tensors have.
  refused("layers.0.mlp.router: shape (5, 32), the config needs (4, 32)", [&](M& m) { departures(m).experts = 4; });
  refused("layers.0.mlp.gate_up: the tensor is missing", [&](M& m) { departures(m) = {}, departures(m).gelu = true; });
}

TEST(PackageOfExperts, EveryTensorIsNeeded) {
  const Bytes file = package_of_experts(config_of_experts());
  for (const char* name : {"layers.0.mlp.router", "layers.1.mlp.experts.gate_up", "layers.1.mlp.experts.down"}) {
    Parts parts = take_apart(file);
    for (auto& t : parts.manifest.tensors) t.name = t.name == name ? "other" : t.name;
    const Status s = open_status(put_together(parts));
    EXPECT_EQ(s.code(), Code::bad_format) << name;
    EXPECT_NE(s.message().find(std::string(name) + ": the tensor is missing"), std::string::npos) << s.message();
  }
}

LlamaConfig config_of_gpt_oss() {
  LlamaConfig c = config_of_experts();
  c.qkv_bias = c.departures.o_bias = c.departures.sinks = c.departures.expert_bias = true;
  c.departures.glu_limit = 7;
  c.departures.windows = {16, 0};
  return c;
}

TEST(PackageOfGptOss, GivesBackFieldsAndTensors) {
  const LlamaConfig c = config_of_gpt_oss();
  const Bytes file = package_of_experts(c, DType::mxfp4);
  const auto p = Package::open_memory(file, "mem.aerie", {});
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ((*p)->target()->departures, c.departures);
  for (const auto& [name, rows, cols] : {std::tuple{"layers.1.attn.sinks", 1, 2}, {"layers.0.attn.o.bias", 1, 32}, {"layers.0.mlp.router.bias", 1, 5},
                                         {"layers.1.mlp.experts.gate_up.bias", 5, 2 * 24}, {"layers.1.mlp.experts.down.bias", 5, 32}}) {
    const auto t = (*p)->tensor(name);
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->rows, rows) << name;
    EXPECT_EQ(t->cols, cols) << name;
    EXPECT_EQ(std::memcmp(t->data, values(name, int64_t{rows} * cols).data(), static_cast<size_t>(rows * cols) * 4), 0) << name;
  }
}

// Whoever does not know one of these pieces must not run the model without it: its tensor is one too many.
TEST(PackageOfGptOss, NothingIsMissingAndNothingLeftOver) {
  const Bytes file = package_of_experts(config_of_gpt_oss());
  using M = package::Manifest;
  const auto refused = [&](const std::string& names, const std::function<void(Departures&)>& change) {
    expect_refused(file, names, [&](M& m) { change(m.target->departures); });
  };
  refused("layers.0.attn.sinks: unexpected tensor", [](Departures& d) { d.sinks = false; });
  refused("layers.0.attn.o.bias: unexpected tensor", [](Departures& d) { d.o_bias = false; });
  refused("layers.0.mlp.experts.down.bias: unexpected tensor", [](Departures& d) { d.expert_bias = false; });
  refused("glu_limit: -1 is not in (0, 1e+06]", [](Departures& d) { d.glu_limit = -1; });
  refused("glu_limit: inf is not in (0, 1e+06]", [](Departures& d) { d.glu_limit = INFINITY; });
  refused("expert_bias: without experts", [](Departures& d) { d.experts = d.experts_used = 0, d.norm_experts = false; });
  for (const char* name : {"layers.1.attn.sinks", "layers.1.attn.o.bias", "layers.1.mlp.router.bias", "layers.1.mlp.experts.gate_up.bias",
                           "layers.1.mlp.experts.down.bias"})
    expect_refused(file, std::string(name) + ": the tensor is missing", [&](M& m) {
      for (auto& t : m.tensors) t.name = t.name == name ? "other" : t.name;
    });
}

LlamaConfig config_of_sharing() {
  LlamaConfig c = config_of_experts();
  Departures& d = c.departures;
  d.dense_layers = 1, d.dense_ffn = 20, d.shared_ffn = 12;
  d.shared_gate = d.expert_choice = d.sigmoid_experts = true;
  d.expert_scale = 2.5f;
  return c;
}

TEST(PackageOfSharing, GivesBackFieldsAndTensors) {
  const LlamaConfig c = config_of_sharing();
  const Bytes file = package_of_experts(c);
  const auto p = Package::open_memory(file, "mem.aerie", {});
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ((*p)->target()->departures, c.departures);
  for (const auto& [name, rows, cols] : {std::tuple{"layers.0.mlp.gate_up", 40, 32}, {"layers.0.mlp.down", 32, 20}, {"layers.1.mlp.router.choice", 1, 5},
                                         {"layers.1.mlp.shared.gate_up", 24, 32}, {"layers.1.mlp.shared.down", 32, 12}, {"layers.1.mlp.shared.gate", 1, 32},
                                         {"layers.1.mlp.experts.down", 160, 24}}) {
    const auto t = (*p)->tensor(name);
    ASSERT_TRUE(t.ok()) << t.status().message();
    EXPECT_EQ(t->rows, rows) << name;
    EXPECT_EQ(t->cols, cols) << name;
  }
  EXPECT_FALSE((*p)->has("layers.0.mlp.router"));
  EXPECT_EQ((*p)->tensor("layers.1.mlp.shared.gate")->dtype, DType::bf16) << "as precise as a router";
}

TEST(PackageOfSharing, EveryNumberIsJudgedAndEveryTensorNeeded) {
  const Bytes file = package_of_experts(config_of_sharing());
  using M = package::Manifest;
  const auto refused = [&](const std::string& names, const std::function<void(Departures&)>& change) {
    expect_refused(file, names, [&](M& m) { change(m.target->departures); });
  };
  refused("dense_layers: 2 is not in [0, 1]", [](Departures& d) { d.dense_layers = 2; });
  refused("dense_layers: -1 is not in [0, 1]", [](Departures& d) { d.dense_layers = -1; });
  refused("dense_ffn: 0 is not in [1, 1048576]", [](Departures& d) { d.dense_ffn = 0; });
  refused("dense_ffn: 20 is not in [0, 0]", [](Departures& d) { d.dense_layers = 0; });
  refused("shared_ffn: 1048577 is not in [0, 1048576]", [](Departures& d) { d.shared_ffn = (1 << 20) + 1; });
  refused("shared_gate: without a shared expert", [](Departures& d) { d.shared_ffn = 0; });
  refused("shared_ffn: with a norm behind", [](Departures& d) { d.norms = Departures::Norms::both; });
  refused("expert_scale: nan is not in (0, 1e+06]", [](Departures& d) { d.expert_scale = NAN; });
  refused("expert_scale: 0 is not in (0, 1e+06]", [](Departures& d) { d.expert_scale = 0; });
  refused("sigmoid_experts, expert_scale: without expert_choice", [](Departures& d) { d.expert_choice = false, d.expert_scale = 1; });
  refused("sigmoid_experts, expert_scale: without expert_choice", [](Departures& d) { d.expert_choice = d.sigmoid_experts = false; });
  refused("without experts", [](Departures& d) { d.experts = d.experts_used = 0, d.norm_experts = false; });
  refused("glu_limit: without sinks and biases", [](Departures& d) { d.glu_limit = 7; });
  for (const char* name : {"layers.0.mlp.gate_up", "layers.1.mlp.router.choice", "layers.1.mlp.shared.gate_up", "layers.1.mlp.shared.down",
                           "layers.1.mlp.shared.gate"})
    expect_refused(file, std::string(name) + ": the tensor is missing", [&](M& m) {
      for (auto& t : m.tensors) t.name = t.name == name ? "other" : t.name;
    });
}

TEST(PackageOfExperts, TensorsOfAnotherFormAreNotWritten) {
  const LlamaConfig c = config_of_experts();
  const auto refusal = [&](const std::string& name, const std::function<Status(PackageWriter&, const std::vector<float>&)>& add) {
    const Folder folder;
    auto w = PackageWriter::create(folder / "t.aerie");
    (*w)->set_name("tiny");
    (*w)->set_fingerprint(kFingerprint);
    (*w)->set_target(c);
    for (const auto& e : package::expected_tensors(c)) {
      const std::vector<float> v = values(e.name, e.rows * e.cols);
      const Packed packed = pack(v, e.rows, e.cols, DType::bf16);
      const bool its = e.name == name;
      Status s = its ? add(**w, v) : e.weight ? (*w)->add_tensor(e.name, packed.tensor)
                                              : (*w)->add_tensor(e.name, kernels::matrix(const_cast<float*>(v.data()), e.rows, e.cols));
      EXPECT_TRUE(s.ok()) << s.message();
    }
    const Status s = (*w)->finish();
    EXPECT_EQ(s.code(), Code::bad_format);
    return s.message();
  };
  const std::string router = "layers.0.mlp.router", down = "layers.1.mlp.experts.down";
  const auto row_major = [&](const std::string& name, int64_t rows, int64_t cols) {
    return refusal(name, [=](PackageWriter& w, const std::vector<float>& v) {
      return w.add_tensor(name, kernels::matrix(const_cast<float*>(v.data()), rows, cols));
    });
  };
  EXPECT_NE(row_major(router, 5, 32).find(router + ": must be in the panel16 layout"), std::string::npos);
  EXPECT_NE(row_major(down, 160, 24).find(down + ": must be in the panel16 layout"), std::string::npos);
  EXPECT_NE(row_major(down, 32, 120).find(down + ": shape (32, 120), the config needs (160, 24)"), std::string::npos);
  for (const DType dtype : {DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    const std::string message = refusal(router, [=](PackageWriter& w, const std::vector<float>& v) {
      return w.add_tensor(router, pack(v, 5, 32, dtype).tensor);
    });
    EXPECT_NE(message.find(router + ": must be bf16 or f32"), std::string::npos) << message;
  }
}

// A model without experts has the manifest it had before there were any: the table ends where it did.
TEST(PackageOfExperts, OthersAreWrittenAsBefore) {
  package::Manifest m;
  m.name = "tiny";
  m.fingerprint = kFingerprint;
  m.target = config_of_experts();
  EXPECT_EQ(departures_bytes(m), fbs::Departures::VT_NORM_EXPERTS + 2);
  m.target->departures = {};
  m.target->departures.norms = Departures::Norms::both;
  m.target->departures.windows = {4, 0};
  EXPECT_EQ(departures_bytes(m), fbs::Departures::VT_LAYER_ROPE + 2);
}

}  // namespace
}  // namespace aerie::test
