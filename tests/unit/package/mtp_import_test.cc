// A model's own layer for multi-token prediction as a drafter: of Hugging Face's directories and of GGUF files. What it drafts is held against the
// reference in golden_heads_test.cc.
#include <functional>

#include "unit/package/gguf_family_file.h"

namespace aerie::test {
namespace {

struct MtpFile {
  std::string golden, arch;
  FamilyFile target, head;
  std::string package;  // of the target

  MtpFile(const std::string& g, const std::string& a) : golden(g), arch(a), target(g, a), head("../heads/mtp_" + g, a) {
    EXPECT_TRUE(target.hf());
    package = target.options.output;
    head.options.drafter_for = package;
  }
  // All of the model, as llama.cpp's converter writes it.
  Gguf file() const {
    const int layers = target.config["num_hidden_layers"];
    const std::string at = "model.layers." + std::to_string(layers) + ".";
    FamilyFile whole(golden, arch);
    for (const auto& [name, s] : head.tensors) {
      std::string theirs = name;
      for (const auto& [hf, gguf] : {std::pair{std::string("mtp.layers.0."), at}, {"mtp.fc.", at + "nextn.eh_proj."},
                                     {"mtp.pre_fc_norm_embedding.", at + "nextn.enorm."}, {"mtp.pre_fc_norm_hidden.", at + "nextn.hnorm."},
                                     {"mtp.norm.", at + "nextn.shared_head_norm."}, {at + "eh_proj.", at + "nextn.eh_proj."},
                                     {at + "enorm.", at + "nextn.enorm."}, {at + "hnorm.", at + "nextn.hnorm."},
                                     {at + "shared_head.norm.", at + "nextn.shared_head_norm."},
                                     {at + "shared_head.head.", at + "nextn.shared_head_head."}, {at + "embed_tokens.", at + "nextn.tokens."}})
        if (theirs.starts_with(hf)) theirs.replace(0, hf.size(), gguf);
      if (whole.tensors.count(theirs) == 0) whole.tensors[theirs] = s;
    }
    if (whole.config.contains("layer_types")) whole.config["layer_types"].push_back("full_attention");
    Gguf g = whole.file();
    if (const std::string own = "blk." + std::to_string(layers) + ".nextn."; head.tensors.count(at + "embed_tokens.weight")) {
      g.forget_tensor(own + "tokens.weight");  // which the builder would take for the model's
      const Source& s = head.tensors.at(at + "embed_tokens.weight");
      g.tensor(own + "embed_tokens.weight", s.shape, s.values);
    }
    g.u32(arch + ".block_count", static_cast<uint32_t>(layers + 1));
    g.u32(arch + ".nextn_predict_layers", 1);
    return g;
  }
  void says(const Result<std::shared_ptr<const Package>>& p, Code code, std::initializer_list<const char*> words) const {
    ASSERT_FALSE(p.ok());
    EXPECT_EQ(p.status().code(), code) << p.status().message();
    for (const char* w : words) EXPECT_NE(p.status().message().find(w), std::string::npos) << w << " / " << p.status().message();
    EXPECT_FALSE(fs::exists(head.options.output));
  }
};

class MtpImport : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  MtpFile m{GetParam().first, GetParam().second};
};
INSTANTIATE_TEST_SUITE_P(Families, MtpImport, testing::Values(std::pair{"qwen3_5", "qwen35"}, std::pair{"qwen3_5_moe", "qwen35moe"}, std::pair{"glm4_moe", "glm4moe"}),
                         [](const auto& info) { return std::string(info.param.second); });

TEST_P(MtpImport, AFileOfLlamaCppsIsTheSameDrafter) {
  const auto ours = m.head.hf();
  const auto theirs = m.head.gguf(m.file());
  ASSERT_TRUE(theirs.ok()) << theirs.status().message();
  ASSERT_TRUE(ours);
  EXPECT_EQ(ours->fingerprint(), (*theirs)->fingerprint());
  EXPECT_EQ(ours->drafter()->plugin_id, "mtp");
  EXPECT_EQ(ours->drafter()->target_fingerprint, (*Package::open(m.package))->fingerprint());
  ASSERT_TRUE(ours->drafter()->decoder && (*theirs)->drafter()->decoder);
  EXPECT_EQ(ours->drafter()->decoder->departures, (*theirs)->drafter()->decoder->departures);
  EXPECT_EQ(ours->drafter()->decoder->layers, 1);
}

// Together with the model, as published; each alone is the same as from both.
TEST_P(MtpImport, TheModelsDirectoryHasBoth) {
  const auto alone = m.head.hf();
  ASSERT_TRUE(alone);
  const Sources all = m.target.tensors;
  for (const auto& [name, s] : all) m.head.tensors.emplace(name, s);
  const auto beside = m.head.hf();
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->fingerprint(), alone->fingerprint());
  m.head.options.drafter_for.clear();
  const auto target = m.head.hf();
  ASSERT_TRUE(target);
  EXPECT_EQ(target->fingerprint(), (*Package::open(m.package))->fingerprint());
  EXPECT_NE(m.head.warnings.front().find("with --drafter-for"), std::string::npos) << m.head.warnings.front();
}

TEST_P(MtpImport, EveryTensorCounts) {
  const Sources all = m.head.tensors;
  const std::string own = "model.layers." + std::to_string(m.target.config["num_hidden_layers"].get<int>()) + ".";
  for (const auto& [name, s] : all) {
    SCOPED_TRACE(name);
    // The model's own do as well; GLM's projection is what says that there is a head, and one bias that there are three.
    if (name.find("embed_tokens") == name.npos && name.find("shared_head.head") == name.npos && name != own + "eh_proj.weight" &&
        name.find("_proj.bias") == name.npos) {
      m.head.tensors.erase(name);
      m.says(m.head.try_hf(), Code::bad_format, {name.find(".experts.") == name.npos ? name.c_str() : ".experts.", "missing"});
    }
    m.head.tensors = all;
    m.head.tensors[name].shape.push_back(1);
    m.says(m.head.try_hf(), Code::bad_format, {name.c_str(), "shape"});
    m.head.tensors = all;
  }
  const std::string stray = (all.count("mtp.fc.weight") ? "mtp." : own) + "stray.weight";
  m.head.tensors[stray] = {"F32", {4}, std::vector<float>(4)};
  m.says(m.head.try_hf(), Code::bad_format, {stray.c_str(), "unexpected"});
}

TEST_P(MtpImport, OnlyForItsOwnTarget) {
  m.head.tensors["model.embed_tokens.weight"].values[40] += 1;
  m.says(m.head.try_hf(), Code::mismatch, {"embed_tokens.weight"});
  Gguf g = m.file();
  MtpFile other("qwen3_5", "qwen35");
  other.target.config["rope_parameters"]["rope_theta"] = 5000;  // another model, whose embedding is the same
  other.target.tensors["model.embed_tokens.weight"].values[3] += 1;
  ASSERT_TRUE(other.target.hf());
  m.head.options.drafter_for = other.target.options.output;
  m.says(m.head.gguf(g), Code::mismatch, {"token_embd.weight"});
}

TEST_P(MtpImport, WhatIsNotReadIsSaid) {
  const bool qwen = m.golden != "glm4_moe";
  const char* const key = qwen ? "mtp_num_hidden_layers" : "num_nextn_predict_layers";
  m.head.config[key] = 2;
  m.says(m.head.try_hf(), Code::unsupported, {"config.json: 2 layers for multi-token prediction"});
  m.head.config["hidden_size"] = 64;
  m.says(m.head.try_hf(), Code::mismatch, {"hidden_size"});

  Gguf g = m.file();
  const std::string more = m.arch + ".nextn_predict_layers", blocks = m.arch + ".block_count";
  const auto layers = m.target.config["num_hidden_layers"].get<uint32_t>();
  const std::string own = "blk." + std::to_string(layers) + ".nextn.eh_proj.weight";
  g.forget_tensor(own);
  m.says(m.head.gguf(g), Code::unsupported, {own.c_str(), "missing"});
  // A file of a target alone is not a drafter.
  m.says(m.head.gguf(m.target.file()), Code::mismatch, {"model.gguf: a target model, not a drafter for"});
  m.head.config = m.target.config;
  m.head.tensors = m.target.tensors;
  const auto p = m.head.try_hf();
  EXPECT_FALSE(p.ok());
  EXPECT_NE(p.status().message().find("not a drafter"), std::string::npos) << p.status().message();
}

}  // namespace
}  // namespace aerie::test
