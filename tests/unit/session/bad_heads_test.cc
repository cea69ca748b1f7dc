// Heads that do not fit: refused at conversion or when the drafter is opened, with the field's name.
#include <nlohmann/json.hpp>

#include "tests/support/models.h"

namespace aerie::test {
namespace {

using nlohmann::json;

struct BadHeads : testing::Test {
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "bad-target", kernels::DType::f32));
    other_ = new std::string(converted(golden("gqa_tied"), "bad-other", kernels::DType::f32));
  }
  static std::string *target_, *other_;
  static std::string source(const std::string& kind) { return source_dir() + "/tests/golden/heads/" + kind; }

  // Conversion of a copy whose config has been changed.
  static std::string converting(const std::string& kind, const std::function<void(json&)>& change, const std::string& target = *target_) {
    const std::string folder = scratch_dir() + "/changed-" + kind;
    std::filesystem::remove_all(folder);
    std::filesystem::copy(source(kind), folder);
    json j;
    std::ifstream(folder + "/config.json") >> j;
    change(j);
    std::ofstream(folder + "/config.json") << j;
    ConvertOptions o;
    o.source = folder;
    o.output = folder + ".aerie";
    o.drafter_for = target;
    o.dtype = kernels::DType::f32;
    const Status s = convert(o);
    EXPECT_EQ(exists(o.output), s.ok());
    std::filesystem::remove(o.output);
    return s.message();
  }

  // The same with entry `index` of an int64 tensor changed.
  static std::string with_d2t(int64_t index, int64_t value) {
    const std::string folder = scratch_dir() + "/changed-d2t", file = folder + "/model.safetensors";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(source("eagle3"), folder);
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    uint64_t header = 0;
    f.read(reinterpret_cast<char*>(&header), 8);
    std::string text(header, ' ');
    f.read(text.data(), static_cast<std::streamsize>(header));
    const uint64_t begin = json::parse(text)["d2t"]["data_offsets"][0];
    f.seekp(static_cast<std::streamoff>(8 + header + begin + static_cast<uint64_t>(index) * 8));
    f.write(reinterpret_cast<const char*>(&value), 8);
    f.close();
    ConvertOptions o;
    o.source = folder;
    o.output = folder + ".aerie";
    o.drafter_for = *target_;
    const Status s = convert(o);
    EXPECT_FALSE(exists(o.output));
    return s.message();
  }

  static std::shared_ptr<const Package> good_package(const std::string& kind) {
    return must(Package::open(converted(source(kind), "bad-" + kind, kernels::DType::f32, *target_)));
  }

  // Opening a package whose parameters have been changed, or that lacks a tensor, or has more.
  static std::string opening(const std::string& kind, const std::string& param, double value, const std::string& without = {},
                             const std::function<void(PackageWriter&)>& more = {}) {
    const auto good = good_package(kind);
    const std::string path = scratch_dir() + "/damaged-" + kind + ".aerie";
    auto writer = must(PackageWriter::create(path));
    for (const TensorInfo& t : good->tensors())
      if (t.name != without) must(writer->add_tensor(t.name, must(good->tensor(t.name))));
    if (more) more(*writer);
    DrafterConfig c = *good->drafter();
    bool found = param.empty();
    for (auto& p : c.params)
      if (p.name == param) {
        p.value = value;
        found = true;
      }
    EXPECT_TRUE(found) << param;
    writer->set_name(good->name());
    writer->set_fingerprint(good->fingerprint());
    writer->set_drafter(c);
    must(writer->finish());
    const auto model = open_model(*target_, cpu(1));
    for (PluginKind& k : must(load_plugin(drafter_library(library_of(kind)))))
      if (c.plugin_id == k.desc.id) {
        const auto drafter = Drafter::open(model, k, must(Package::open(path)), {});
        EXPECT_FALSE(drafter.ok()) << kind << " " << param;
        return drafter.status().message();
      }
    return "no such plugin";
  }

  // Opening a head with a tensor it does not say it has.
  static std::string with_tensor(const std::string& kind, const std::string& name) {
    std::vector<float> values(32 * 32, 0.5f);
    kernels::Tensor t = kernels::matrix(values.data(), 32, 32);
    t.layout = kernels::Layout::panel16;
    return opening(kind, "", 0, {}, [&](PackageWriter& w) { must(w.add_tensor(name, t)); });
  }

  // Opening an EAGLE-3 head with entry `index` of its vocabulary changed.
  static std::string with_vocab_map(int64_t index, int32_t id) {
    const auto good = good_package("eagle3");
    const kernels::Tensor map = must(good->tensor("vocab_map"));
    const auto* first = static_cast<const int32_t*>(map.data);
    std::vector<int32_t> ids(first, first + map.cols);
    ids[static_cast<size_t>(index)] = id;
    return opening("eagle3", "", 0, "vocab_map", [&](PackageWriter& w) {
      must(w.add_tensor("vocab_map", kernels::matrix(ids.data(), 1, map.cols, kernels::DType::i32)));
    });
  }
};
std::string *BadHeads::target_, *BadHeads::other_;

void expect_says(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* w : words) EXPECT_NE(message.find(w), std::string::npos) << w << " / " << message;
}

TEST_F(BadHeads, Conversion) {
  const auto set = [](const char* key, json value) { return [key, value](json& j) { j[key] = value; }; };
  for (const char* kind : {"eagle", "eagle3", "fasteagle", "dflash", "medusa", "hydra"}) {
    expect_says(converting(kind, set("hidden_size", 64)), {"config.json", "hidden_size", "64"});
    expect_says(converting(kind, [](json&) {}, scratch_dir() + "/nothing.aerie"), {"nothing.aerie"});
    EXPECT_EQ(converting(kind, [](json&) {}), "");
  }
  expect_says(converting("fasteagle", set("num_hidden_layers", 4)), {"layers.3.input_layernorm.weight", "missing"});
  expect_says(converting("fasteagle", set("num_hidden_layers", 2)), {"layers.2", "unexpected"});
  expect_says(converting("fasteagle", set("num_hidden_layers", 0)), {"num_hidden_layers", "1..32"});
  expect_says(converting("fasteagle", set("draft_top_k", 1000)), {"draft_top_k", "1..128"});
  for (const char* kind : {"fasteagle", "eagle3"}) {
    expect_says(converting(kind, set("eagle_aux_hidden_state_layer_ids", {0, 1})), {"fc.weight", "shape"});
    expect_says(converting(kind, set("eagle_aux_hidden_state_layer_ids", {0, 1, 7})), {"eagle_aux_hidden_state_layer_ids", "layer 7"});
    expect_says(converting(kind, set("eagle_aux_hidden_state_layer_ids", {0, 1, -2})), {"eagle_aux_hidden_state_layer_ids"});
    expect_says(converting(kind, set("rope_scaling", {{"type", "longrope"}, {"factor", 2}})), {"rope_scaling", "longrope"});
    expect_says(converting(kind, set("rope_scaling", {{"type", "linear"}, {"factor", -2}})), {"rope_scaling.factor"});
  }
  // A list that begins with 1 counts outputs: 1, 2, 3 would be inputs 2, 3, 4 of a target of three layers.
  expect_says(converting("eagle3", set("eagle_aux_hidden_state_layer_ids", {1, 2, 3})), {"the output of layer 3"});
  expect_says(converting("eagle3", set("draft_vocab_size", 63)), {"lm_head.weight", "shape"});
  expect_says(converting("eagle3", set("draft_vocab_size", 1000)), {"draft_vocab_size"});
  expect_says(converting("eagle3", set("target_hidden_size", 64)), {"target_hidden_size"});
  expect_says(converting("eagle3_narrow", set("target_hidden_size", 24)), {"hidden_size", "24", "32"});
  expect_says(converting("eagle3_narrow", set("target_hidden_size", 40)), {"target_hidden_size", "40", "32"});
  for (const char* kind : {"eagle", "fasteagle", "medusa", "hydra"})
    expect_says(converting(kind, [](json& j) { j["hidden_size"] = 24, j["target_hidden_size"] = 32; }), {"target_hidden_size", "another width"});
  expect_says(converting("eagle3", set("norm_before_residual", 1)), {"norm_before_residual", "neither true nor false"});
  expect_says(converting("eagle3", set("norm_before_fc", true)), {"input_norm.weight", "missing"});
  expect_says(converting("eagle3_norms", set("fc_norm", true)), {"fc_norm", "norm_before_fc"});
  expect_says(converting("eagle3_norms", set("speculators_model_type", "dflash")), {"speculators_model_type"});
  expect_says(converting("eagle3", set("fc_norm", 1)), {"fc_norm", "neither true nor false"});
  expect_says(with_d2t(3, 1000), {"d2t", "entry 3", "token 1003"});
  expect_says(with_d2t(3, -4), {"d2t", "token -1"});
  expect_says(with_d2t(0, 1 << 20), {"d2t", "entry 0"});
  expect_says(converting("hydra", set("hydra_head_arch", "prefix-mlp")), {"hydra_head_arch", "the tensors are of mlp"});
  expect_says(converting("hydra_prefix", set("hydra_head_arch", "mlp")), {"hydra_head_arch", "the tensors are of prefix-mlp"});
  expect_says(converting("hydra", set("hydra_head_arch", "eagle-attn")), {"hydra_head_arch"});
  expect_says(converting("hydra", set("grounded_heads", false)), {"grounded_heads"});
  expect_says(converting("hydra", set("hidden_state_offset", 1)), {"hidden_state_offset"});
}

TEST_F(BadHeads, Opening) {
  expect_says(opening("fasteagle", "levels", 4), {"layers.3"});
  expect_says(opening("fasteagle", "levels", 2), {"levels"});
  expect_says(opening("fasteagle", "levels", 0), {"levels", "1 to 32"});
  expect_says(opening("fasteagle", "levels", 2.5), {"levels", "whole number"});
  expect_says(opening("fasteagle", "", 0, "layers.1.attn_norm"), {"layers.1.attn_norm"});
  expect_says(opening("fasteagle", "top_k", 0), {"top_k"});
  expect_says(opening("dflash", "block", 1), {"block", "2 to 33"});
  expect_says(opening("dflash", "block", 34), {"block", "2 to 33"});
  expect_says(opening("dflash", "mask", 160), {"filler 160"});
  expect_says(opening("dflash", "mask", -1), {"mask"});
  expect_says(opening("dflash", "taps", 1), {"fc", "(32, 32)"});
  expect_says(opening("dflash", "tap.1", 4), {"tap 4", "3 layers"});
  for (const char* tensor : {"fc", "hidden_norm", "norm"}) expect_says(opening("dflash", "", 0, tensor), {tensor});
  expect_says(opening("medusa", "heads", 2), {"damaged-medusa.aerie", "heads"});
  expect_says(opening("medusa", "heads", 4), {"heads.3.0.linear"});
  expect_says(opening("medusa", "own_lm_heads", 1), {"heads.0.lm_head"});
  expect_says(opening("hydra", "heads", 4), {"heads.3"});
  expect_says(opening("hydra", "blocks", 2), {"heads.0.1.linear"});
  expect_says(opening("hydra_prefix", "levels", 4), {"heads.3"});
  expect_says(opening("hydra_prefix", "levels", 2), {"levels"});
  expect_says(opening("hydra_prefix", "heads", 3), {"heads"});
  for (const char* tensor : {"prefix.attn_norm", "prefix.attn.qkv", "prefix.mlp.down"})
    expect_says(opening("hydra_prefix", "", 0, tensor), {tensor});
  for (const char* kind : {"medusa", "hydra"}) {
    expect_says(with_tensor(kind, "heads.0.1.linear"), {"parameter blocks", kind});
    expect_says(with_tensor(kind, "heads.0.lm_head"), {"own_lm_heads", "heads.0.lm_head"});
  }
  expect_says(opening("eagle3_norms", "", 0, "taps_norm"), {"taps_norm"});
  expect_says(opening("eagle3_fc_norm", "", 0, "tap_norm.1"), {"tap_norm.1"});
  expect_says(opening("eagle3_narrow", "", 0, "embed"), {"embed"});
  expect_says(opening("eagle3_narrow", "hidden", 32), {"attn.qkv", "(64, 48)"});
  expect_says(opening("eagle3", "hidden", 24), {"attn.qkv", "(64, 64)"});
  expect_says(opening("eagle3", "hidden", -1), {"hidden"});
  expect_says(opening("eagle3_deep", "layers", 1), {"layers", "fewer"});
  expect_says(opening("eagle3_deep", "layers", 3), {"layers.2."});
  expect_says(opening("eagle3_deep", "layers", 0), {"layers", "1 to 64"});
  expect_says(opening("eagle3_deep", "layers", 1.5), {"layers", "whole number"});
  expect_says(opening("eagle3_deep", "", 0, "layers.1.attn_norm"), {"layers.1.attn_norm"});
  expect_says(opening("eagle3", "draft_vocab", 60), {"lm_head", "(64, 32)"});
  expect_says(opening("eagle3", "", 0, "vocab_map"), {"vocab_map"});
  // Damage behind the converter's back: ids that no token of the target has.
  expect_says(with_vocab_map(0, -1), {"damaged-eagle3.aerie: vocab_map: entry 0: token -1 ", "vocabulary of 160"});
  expect_says(with_vocab_map(5, 160), {"damaged-eagle3.aerie: vocab_map: entry 5: token 160 "});
  expect_says(with_vocab_map(63, INT32_MAX), {"damaged-eagle3.aerie: vocab_map: entry 63: token 2147483647 "});
  for (const char* kind : {"fasteagle", "eagle3"}) {
    expect_says(opening(kind, "taps", 2), {"fc", "(32, 96)"});
    expect_says(opening(kind, "taps", 9), {"taps", "1 to 8"});
    expect_says(opening(kind, "tap.1", 4), {"tap 4", "3 layers"});
    expect_says(opening(kind, "heads", 3), {"kv_heads"});
    expect_says(opening(kind, "ffn", 64), {"mlp.gate_up"});
  }
}

TEST_F(BadHeads, AHeadForAnotherTarget) {
  const auto model = open_model(*other_, cpu(1));
  for (const char* kind : {"eagle", "eagle3", "fasteagle", "dflash", "medusa", "hydra"}) {
    const auto package = must(Package::open(converted(source(kind), std::string("other-") + kind, kernels::DType::f32, *target_)));
    for (PluginKind& k : must(load_plugin(drafter_library(library_of(kind)))))
      if (package->drafter()->plugin_id == k.desc.id) {
        const auto drafter = Drafter::open(model, k, package, {});
        EXPECT_EQ(drafter.status().code(), Code::mismatch) << kind;
        expect_says(drafter.status().message(), {"another target"});
      }
  }
}

}  // namespace
}  // namespace aerie::test
