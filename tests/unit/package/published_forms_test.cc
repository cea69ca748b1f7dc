// The forms in which heads are published, beside the plain one: other names, other tensors beside them, pickles.
#include "unit/package/edited_head.h"

namespace aerie::test {
namespace {

// The contents of a package: names, and fingerprints of what they mean.
std::pair<std::string, std::vector<std::string>> contents(const Package& p) {
  std::vector<std::string> names;
  for (const TensorInfo& t : p.tensors()) names.push_back(t.name);
  return {p.fingerprint(), names};
}

void rename(EditedHead& head, const std::function<std::string(const std::string&)>& name) {
  std::map<std::string, EditedHead::Tensor> all;
  for (auto& [from, t] : head.tensors) all[name(from)] = std::move(t);
  head.tensors = std::move(all);
}

TEST(PublishedForms, MedusaHeadsUnderOtherNames) {
  const auto want = contents(*EditedHead("medusa").package());
  for (const char* prefix : {"medusa_head.", "medusa_heads."}) {
    EditedHead head("medusa");
    rename(head, [&](const std::string& n) { return prefix + n; });
    EXPECT_EQ(contents(*head.package()), want) << prefix;
    head.add("stray", "F32", {4});
    head.refused({"stray", "unexpected"});
  }
  EditedHead head("medusa");  // {head}.0.linear.weight
  rename(head, [](const std::string& n) { return "blocks." + n.substr(0, 1) + ".layers.0" + n.substr(n.rfind('.')); });
  EXPECT_EQ(contents(*head.package()), want);
  head.tensors.erase("blocks.1.layers.0.bias");
  head.refused({"blocks.1.layers.0.bias", "missing"});
}

TEST(PublishedForms, VllmsMedusaHeadsMayHaveNoBiases) {
  EditedHead zero("medusa"), without("medusa");
  for (auto& [name, t] : zero.tensors)
    if (name.ends_with(".bias")) std::fill(t.bytes.begin(), t.bytes.end(), uint8_t{0});
  rename(without, [](const std::string& n) { return "blocks." + n.substr(0, 1) + ".layers.0" + n.substr(n.rfind('.')); });
  std::erase_if(without.tensors, [](const auto& t) { return t.first.ends_with(".bias"); });
  EXPECT_EQ(contents(*without.package()), contents(*zero.package()));
}

// Medusa-1.0: one directory is the target as well as the heads for it.
TEST(PublishedForms, MedusaHeadsBesideTheirModel) {
  const std::string mha = std::string(AERIE_SOURCE_DIR) + "/tests/golden/logits/mha";
  const auto want = contents(*EditedHead("medusa").package());
  EditedHead head("medusa");
  rename(head, [](const std::string& n) { return "medusa_head." + n; });
  head.read(mha + "/model.safetensors");
  std::ifstream(mha + "/config.json") >> head.config;
  EXPECT_EQ(contents(*head.package()), want);
  const auto target = *Package::open(head.options.drafter_for);
  head.options.drafter_for.clear();
  std::vector<std::string> warnings;
  head.options.warnings = &warnings;
  EXPECT_EQ(contents(*head.package()), contents(*target));
  const auto told = [&](const std::string& w) { return w.find("--drafter-for") != std::string::npos; };
  EXPECT_EQ(std::count_if(warnings.begin(), warnings.end(), told), 1);
}

// Hydra's own files have the target's embedding in them.
TEST(PublishedForms, HydraHeadsWithAnEmbedding) {
  const auto want = contents(*EditedHead("hydra").package());
  EditedHead head("hydra");
  head.add("input_embed_fn.weight", "F32", {160, 32});
  EXPECT_TRUE(head.package()->has("embed"));
  const auto target = *Package::open(head.options.drafter_for);
  const auto embed = *target->tensor("embed");
  for (int64_t r = 0; r < 160; ++r)
    for (int64_t c = 0; c < 32; ++c) head.tensors["input_embed_fn.weight"].as<float>()[r * 32 + c] = kernels::panel16_at(embed, r, c);
  EXPECT_FALSE(head.package()->has("embed"));
  EXPECT_EQ(contents(*head.package()), want);
}

TEST(PublishedForms, HydrasPrefixLayerHasAnEmbeddingThatNobodyReads) {
  const auto want = contents(*EditedHead("hydra_prefix").package());
  EditedHead head("hydra_prefix");
  head.add("prefix_embeding_layer.embed_tokens.weight", "F32", {160, 32});
  head.add("prefix_embeding_layer.layers.0.self_attn.rotary_emb.inv_freq", "F32", {4});
  EXPECT_EQ(contents(*head.package()), want);
}

TEST(PublishedForms, PicklesAreRefusedWithTheCommandThatConvertsThem) {
  const Folder folder;
  const auto message = [&](const std::string& source) {
    ConvertOptions o;
    o.source = source;
    o.output = folder / "out.aerie";
    return convert(o).message();
  };
  const std::string pickle("PK\3\4....", 8), d = folder / "it's";
  spit(d + "/config.json", std::string("{}"));
  spit(d + "/medusa_lm_head.pt", pickle);
  spit(d + "/training_args.bin", pickle);
  for (const std::string& m : {message(d), message(d + "/medusa_lm_head.pt")}) {
    EXPECT_EQ(m.rfind(d, 0), 0u) << m;
    EXPECT_EQ(m.find("medusa_lm_head.pt: a PyTorch pickle"), d.size() + 1) << m;
    EXPECT_NE(m.find("in its directory: python -c \""), std::string::npos) << m;
    EXPECT_TRUE(m.ends_with(",'model.safetensors')\" 'medusa_lm_head.pt'")) << m;
  }
  spit(d + "/it's.bin", pickle);
  EXPECT_TRUE(message(d + "/it's.bin").ends_with(" 'it'\\''s.bin'"));
  // In the hub's cache a directory has some 130 bytes, and an aerie_error takes 503.
  const std::string deep = d + "/" + std::string(d.size() < 140 ? 140 - d.size() : 1, 'd');
  spit(deep + "/config.json", std::string("{}"));
  for (int n = 1; n <= 12; ++n) {
    char name[64];
    std::snprintf(name, sizeof name, "/pytorch_model-%05d-of-00012.bin", n);
    spit(deep + name, pickle);
    const std::string m = message(deep);
    EXPECT_LE(m.size(), 503 - 140 + deep.size()) << m;
    EXPECT_TRUE(m.ends_with(n == 1   ? " 'pytorch_model-00001-of-00012.bin'"
                            : n < 10 ? " 'pytorch_model-0000'*.bin"
                                     : " 'pytorch_model-000'*.bin")) << m;
  }
}

TEST(PublishedForms, WhatStandsInAFilesPlaceIsNamed) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
  const std::string mha = std::string(AERIE_SOURCE_DIR) + "/tests/golden/logits/mha";
  const Folder folder;
  ConvertOptions o;
  o.source = folder / "m";
  o.output = folder / "out.aerie";
  const auto expect = [&](const std::string& file, const std::string& what) {
    const std::string m = convert(o).message();
    EXPECT_NE(m.find(file), std::string::npos) << m;
    EXPECT_NE(m.find(what), std::string::npos) << m;
  };
  fs::create_directories(o.source);
  fs::copy(mha + "/config.json", o.source);
  spit(o.source + "/model.safetensors", pointer);
  expect("model.safetensors", "Git LFS pointer");
  fs::copy_file(mha + "/model.safetensors", o.source + "/model.safetensors", fs::copy_options::overwrite_existing);
  spit(o.source + "/tokenizer.json", pointer);
  expect("tokenizer.json", "Git LFS pointer");
  fs::remove(o.source + "/tokenizer.json");
  spit(o.source + "/tokenizer.model", std::string("IQ== 0\nIg== 1\n"));
  expect("tokenizer.model", "tiktoken");
  fs::remove(o.source + "/tokenizer.model");
  spit(o.source + "/config.json", pointer);
  expect("config.json", "Git LFS pointer");
}

}  // namespace
}  // namespace aerie::test
