#include "core/import/convert.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "core/import/lfs_pointer.h"
#include "core/import/pickle.h"
#include "core/import/sink.h"
#include "core/import/source.h"
#include "core/platform/file.h"
#include "kernels/fp_env.h"

namespace aerie {

namespace {

using Importer = Status (*)(const ConvertOptions&, Sink&);

Status not_read(const std::string& source, const std::string& what) {
  return error(Code::unsupported, source + ": " + what);
}

Result<Importer> recognise_tensors(const ConvertOptions& o) {
  const std::string& path = o.source;
  AERIE_ASSIGN(const auto source, open_safetensors(path));
  const auto& t = source->tensors();
  const auto any = [&](const char* prefix) {
    const auto it = t.lower_bound(prefix);
    return it != t.end() && it->first.starts_with(prefix);
  };
  // Names and shapes, not the config's claims (official EAGLE-3 heads say LlamaForCausalLM).
  const bool medusa = t.count("0.0.linear.weight") || t.count("medusa_head.0.0.linear.weight") ||
                      t.count("medusa_heads.0.0.linear.weight") || t.count("blocks.0.layers.0.weight");
  // In one file with the model: Medusa-1.0's, and layers for multi-token prediction.
  if (medusa && !o.drafter_for.empty()) return Importer{import_medusa};
  if (!o.drafter_for.empty() && has_mtp(*source)) return Importer{import_mtp};
  if (t.count("pre_projection.weight") && t.count("post_projection.weight")) return Importer{import_gemma_assistant};
  if (t.count("hidden_norm.weight") && t.count("fc.weight") && t.count("layers.0.input_layernorm.weight")) return Importer{import_dflash};
  const auto head = [&](const std::string& at) -> Importer {  // of EAGLE's kinds
    if (any((at + "midlayer.").c_str()) || t.count("d2t") || t.count(at + "layers.0.hidden_norm.weight")) return import_eagle3;
    return t.count(at + "fc.weight") ? import_eagle : nullptr;
  };
  if (t.count("model.fc.weight") && !o.drafter_for.empty()) return t.count("model.hidden_norm.weight") ? import_dflash : head("model.");
  if (t.count("model.embed_tokens.weight") || any("model.layers.") || t.count("language_model.model.embed_tokens.weight") ||
      t.count("model.language_model.embed_tokens.weight"))
    return Importer{import_llama_directory};
  if (t.count("fc_in.weight")) return Importer{import_fasteagle};
  if (any("hydra_mlp.")) return Importer{import_hydra};
  if (medusa) return Importer{import_medusa};
  if (any("medusa_head") || t.count("0.linear.weight"))
    return not_read(path, "an unknown kind of Medusa heads; {head}.{block}.linear.weight is read");
  if (const Importer eagle = head("")) return eagle;
  return not_read(path,
                     "neither a Llama model (model.embed_tokens.weight) nor a drafter head (fc.weight, hydra_mlp., 0.0.linear.weight); "
                     "it holds " +
                         (t.empty() ? std::string("nothing") : t.begin()->first + " ..."));
}

Result<Importer> recognise(const ConvertOptions& o) {
  if (platform::path_kind(o.source) == platform::PathKind::directory) return recognise_tensors(o);
  AERIE_ASSIGN(const auto file, platform::MappedFile::open(o.source));
  const auto bytes = file->bytes();
  const auto begins = [&](std::string_view magic) {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("AERIE")) return Importer{import_package};
  if (begins("GGUF")) return Importer{o.drafter_for.empty() ? import_gguf : import_gguf_mtp};
  if (begins("PK\x03\x04") || begins("\x80\x02"))
    return refuse_pickles({o.source});
  AERIE_TRY(refuse_lfs_pointer(bytes).at(o.source));
  if (begins("24ka")) return not_read(o.source, "a llama2.c export of version 1 or later; export with --version 0");
  // safetensors: a JSON object after its length. (A llama2.c file of 123 layers has the '{', not the quote.)
  if (bytes.size() > 9 && bytes[8] == '{' && (bytes[9] == '"' || bytes[9] == '}' || bytes[9] == ' '))
    return recognise_tensors(o);
  return Importer{import_llama2c};
}

// An earlier package may be replaced, its source among them; what a drafter is for, and files that are no packages, may not.
Status check_output(const ConvertOptions& o) {
  for (const std::string* input : {&o.drafter_for, &o.tokenizer})
    if (platform::same_file(*input, o.output)) return error(Code::invalid_argument, o.output + ": the output would replace what it is made with");
  if (platform::path_kind(o.output) != platform::PathKind::file) return {};  // the writer says what else is wrong
  AERIE_ASSIGN(const auto file, platform::MappedFile::open(o.output));
  const auto bytes = file->bytes();
  if (bytes.empty() || (bytes.size() >= 5 && std::memcmp(bytes.data(), "AERIE", 5) == 0)) return {};
  return error(Code::invalid_argument, o.output + ": is there, and is no package; not overwritten");
}

Status run(const ConvertOptions& o) {
  using kernels::DType;
  if (o.source.empty() || o.output.empty())
    return error(Code::invalid_argument, "convert: source and output are needed");
  for (const WeightDType& w : {o.dtype, o.head_dtype.value_or(o.dtype)})
    if (!kernels::is_weight(w.of(DType::f32)))
      return error(Code::invalid_argument, "convert: dtype must be f32, bf16, fp8, int8, int4, q4_1 or mxfp4, or as stored");
  AERIE_TRY(check_output(o));
  AERIE_ASSIGN(const Importer importer, recognise(o));
  const auto is = [&](std::initializer_list<Importer> any) { return std::find(any.begin(), any.end(), importer) != any.end(); };
  const bool head = !is({import_llama_directory, import_gguf, import_llama2c, import_package});
  if (head && o.drafter_for.empty())
    return error(Code::invalid_argument, o.source + ": a drafter head; name its target with --drafter-for");
  if (!head && importer != import_package && !o.drafter_for.empty())
    return error(Code::mismatch, o.source + ": a target model, not a drafter for " + o.drafter_for);
  if ((head || importer == import_package) && !o.tokenizer.empty())
    return error(Code::unsupported, o.tokenizer + ": a tokenizer goes into a package made of a Hugging Face directory, a GGUF file or a "
                                                  "llama2.c checkpoint, not of " + o.source);
  if (o.candidate_rank < -1)
    return error(Code::invalid_argument, "convert: candidate head: rank " + std::to_string(o.candidate_rank));
  if (head && o.candidate_rank != 0)
    return error(Code::invalid_argument, o.source + ": a drafter head; a candidate head is part of its target");
  if (o.context < 0) return error(Code::invalid_argument, "convert: context: " + std::to_string(o.context));
  if (o.context > 0 && !is({import_llama_directory, import_gguf}))
    return error(Code::invalid_argument, o.source + ": a context is chosen where a Hugging Face directory or a GGUF file is converted");
  AERIE_ASSIGN(auto sink, Sink::create(o));
  AERIE_TRY(importer(o, *sink));
  AERIE_TRY(sink->add_candidate_head());
  if (!sink->wanted()) return error(Code::cancelled, o.source + ": conversion cancelled");
  return sink->writer().finish();
}

}  // namespace

Status convert(const ConvertOptions& options) {
  const kernels::WholeFpEnv env;  // the same package whatever the host's rounding
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    return error(Code::out_of_memory, options.source + ": out of memory");
  } catch (const std::exception& e) {  // nothing should; a library's surprise must not cross the module
    return error(Code::internal, options.source + ": " + e.what());
  }
}

}  // namespace aerie
