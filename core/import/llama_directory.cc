// Hugging Face directories of Llama-like models: config.json, safetensors, perhaps a tokenizer.
#include <algorithm>

#include "core/import/hf_config.h"
#include "core/package/validate.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

using nlohmann::json;
using platform::PathKind;

// Where a text begins and ends the generation config says, where there is one, as in transformers.
Status read_generation(const std::string& directory, LlamaConfig* c) {
  const std::string path = platform::join_path(directory, "generation_config.json");
  if (platform::path_kind(path) != PathKind::file) return {};
  AERIE_ASSIGN(const auto document, read_json(path));
  const ConfigReader reader(document.root());
  const auto known = [&](const char* key, int32_t id) {
    if (id < c->vocab_size) return Status();
    return error(Code::bad_format, path + ": " + key + ": " + std::to_string(id) + " is not in [0, " + std::to_string(c->vocab_size - 1) + "]");
  };
  if (reader.has("eos_token_id")) {
    AERIE_TRY(reader.integers("eos_token_id", &c->eos_ids).at(path));
    for (const int32_t id : c->eos_ids) AERIE_TRY(known("eos_token_id", id));
  }
  AERIE_TRY(reader.integer("bos_token_id", &c->bos_id, c->bos_id).at(path));
  return known("bos_token_id", c->bos_id);
}

Result<std::string> chat_template(const std::string& directory, Sink& sink) {
  const std::string jinja = platform::join_path(directory, "chat_template.jinja");
  if (platform::path_kind(jinja) == PathKind::file) {
    AERIE_ASSIGN(const auto bytes, platform::read_file(jinja, 1 << 20));
    return std::string(bytes.begin(), bytes.end());
  }
  const std::string path = platform::join_path(directory, "tokenizer_config.json");
  if (platform::path_kind(path) != PathKind::file) return std::string();
  AERIE_ASSIGN(const auto document, read_json(path));
  const json& j = document.root();
  if (!j.contains("chat_template")) return std::string();
  const json& t = j["chat_template"];
  if (t.is_string()) return t.get<std::string>();
  if (t.is_array())  // several by name
    for (const json& item : t)
      if (item.is_object() && item.contains("name") && is_text(item["name"], "default") && item.contains("template") &&
          item["template"].is_string())
        return item["template"].get<std::string>();
  if (!t.is_null()) sink.warn(path + ": chat_template is neither a text nor a list with one named default: it is left out");
  return std::string();
}

constexpr const char* kMakeTokenizerJson =
    "; a tokenizer.json would have them (python -c \"import sys, transformers; "
    "transformers.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])\" DIRECTORY)";

// Versions of transformers differ in whether add_bos_token counts beside a tokenizer.json; here, as in the latest, that alone does.
Status tell_of_bos(const std::string& directory, const std::string& tokenizer, bool adds_bos, Sink& sink) {
  const std::string path = platform::join_path(directory, "tokenizer_config.json");
  if (adds_bos || platform::path_kind(path) != PathKind::file) return {};
  AERIE_ASSIGN(const auto document, read_json(path));
  const json& j = document.root();
  if (j.contains("add_bos_token") && j["add_bos_token"] == true && j.contains("bos_token") && !j["bos_token"].is_null())
    sink.warn(path + ": add_bos_token is true, but " + tokenizer + " puts none before a text; it is encoded without");
  return {};
}

Status add_text(const ConvertOptions& o, const std::string& directory, Sink& sink, LlamaConfig* c) {
  if (o.tokenizer == kNoTokenizer) return {};
  std::string path = o.tokenizer;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (!path.empty()) break;
    std::string here = platform::join_path(directory, name);
    if (platform::path_kind(here) == PathKind::file) path.swap(here);
  }
  if (path.empty()) {
    sink.warn(o.source + ": no tokenizer.json or tokenizer.model: the package speaks token ids only");
    return {};
  }
  AERIE_ASSIGN(const bool adds_bos, sink.tokenizer_file(path, c));
  for (const int32_t id : c->eos_ids)
    if (id >= c->vocab_used && id < c->vocab_size)
      return error(Code::mismatch, o.source + ": eos_token_id: " + std::to_string(id) + ", but " + path + " has only " +
                                       std::to_string(c->vocab_used) + " tokens" + (path.ends_with("tokenizer.model") ? kMakeTokenizerJson : ""));
  const std::string added = platform::join_path(directory, "added_tokens.json");
  if (path.ends_with("tokenizer.model") && platform::path_kind(added) == PathKind::file && c->vocab_used < c->vocab_size)
    sink.warn(added + ": tokens that " + path + " does not have are left out" + kMakeTokenizerJson);
  AERIE_TRY(tell_of_bos(directory, path, adds_bos, sink));
  AERIE_ASSIGN(const std::string chat, chat_template(directory, sink));
  return sink.writer().add_blob("chat_template", {reinterpret_cast<const uint8_t*>(chat.data()), chat.size()});
}

}  // namespace

// Gemma 3 and 4 or Qwen 3.5 that sees images has a model of language within, under another name in each major version of transformers.
Result<std::unique_ptr<TensorSource>> open_language_model(const std::string& path) {
  AERIE_ASSIGN(auto source, open_safetensors(path));
  if (source->tensors().count("language_model.model.embed_tokens.weight")) return without_prefix(std::move(source), "language_model.");
  if (source->tensors().count("model.language_model.embed_tokens.weight")) return without_prefix(std::move(source), "model.language_model.", "model.");
  return source;
}

Status import_llama_directory(const ConvertOptions& o, Sink& sink) {
  const std::string directory = checkpoint_directory(o.source);
  const std::string config_path = platform::join_path(directory, "config.json");
  AERIE_ASSIGN(const auto document, read_json(config_path));
  AERIE_ASSIGN(const auto file, open_language_model(o.source));
  SourceModel m;
  m.wanted = o.context;
  LlamaConfig& c = m.config;
  AERIE_ASSIGN(c.departures.o_bias, has_output_bias(*file, kHuggingFaceNames));
  const ConfigReader config(document.root(), {"text_config"});
  AERIE_TRY(read_model_config(config, &m).at(config_path));
  for (const std::string& note : m.notes) sink.warn(config_path + ": " + note);
  AERIE_TRY(read_generation(directory, &c));
  if (c.eos_ids.empty() && !config.contains("eos_token_id") && m.usual_end >= 0 && c.vocab_size > m.usual_end) {
    c.eos_ids = {m.usual_end};
    sink.warn(config_path + ": no eos_token_id: token " + std::to_string(m.usual_end) + " ends a text, as in transformers");
  }
  AERIE_TRY(in_its_words(package::check_config(c)).at(config_path));

  AERIE_TRY(config.boolean("tie_word_embeddings", &m.tied, m.tied).at(config_path));
  const std::unique_ptr<TensorSource> source = as_ours(*file, m);
  TensorTaker take(*source);
  take.ignore_if([](const std::string& n) { return n.ends_with(".rotary_emb.inv_freq"); });  // computed from theta
  bool heads = false, images = false;
  take.ignore_if([&](const std::string& n) { return n.starts_with("medusa_head.") && (heads = true); });  // Medusa-1.0: both in one file
  if (heads) sink.warn(o.source + ": its Medusa heads are left out; with --drafter-for a package is made of them");
  take.ignore_if([&](const std::string& n) {
    static constexpr const char* kOthers[] = {"vision_tower.", "multi_modal_projector.", "embed_vision.", "audio_tower.", "embed_audio."};
    return (n.starts_with("model.visual.") || std::any_of(std::begin(kOthers), std::end(kOthers), [&](const char* s) { return n.find(s) != n.npos; })) &&
           (images = true);
  });
  if (images) sink.warn(o.source + ": what reads images or sounds is left out");
  leave_out_more_layers(m, o, sink, &take);
  AERIE_TRY(import_model(o, sink, take, &m));
  AERIE_TRY(add_text(o, directory, sink, &c));
  sink.finish_target(o.source, c);
  return {};
}

}  // namespace aerie
