#include <cstdio>
#include <filesystem>
#include <map>

#include "aerie/tools.h"
#include "common.h"

namespace cli {
namespace {

const auto kDTypes = CLI::IsMember({"f32", "bf16", "fp8", "int8", "int4", "q4_1", "mxfp4", "stored"});
const std::map<std::string, int32_t> kWeights = {{"f32", AERIE_WEIGHTS_F32},   {"bf16", AERIE_WEIGHTS_BF16}, {"fp8", AERIE_WEIGHTS_FP8},
                                                 {"int8", AERIE_WEIGHTS_INT8}, {"int4", AERIE_WEIGHTS_INT4}, {"q4_1", AERIE_WEIGHTS_Q4_1},
                                                 {"mxfp4", AERIE_WEIGHTS_MXFP4}, {"stored", AERIE_WEIGHTS_STORED}};

}  // namespace

void add_convert(CLI::App& app, std::function<int()>* run) {
  struct Options {
    std::string source, output, dtype, head_dtype, drafter_for, tokenizer;
    bool compress = false;
    int candidate_rank = -1;  // not given
    int context = 0;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("convert", "make a package of a checkpoint");
  c->add_option("source", o->source, "Hugging Face or head directory, GGUF, llama2.c .bin, or .aerie")->required();
  c->add_option("-o,--output", o->output, "package to write")->required();
  c->add_option("--dtype", o->dtype, "of the weights; stored: of each that which is nearest to the source's; a source's MXFP4 becomes nothing but f32 or bf16 (default: stored, but bf16 for f32)")->check(kDTypes);
  c->add_option("--head-dtype", o->head_dtype, "of the embedding and the LM head (default: as --dtype)")->check(kDTypes);
  c->add_option("--drafter-for", o->drafter_for, "target package of a drafter head");
  c->add_option("--tokenizer", o->tokenizer, "llama2.c's tokenizer.bin, a tokenizer.json or .model, or none (default: the source's own)");
  c->add_option("--context", o->context, "targets: the longest text they will read (default: as long as the model can; LongRoPE: the shorter of its two)")
      ->type_name("TOKENS")
      ->check(CLI::Range(1, 1 << 24));
  c->add_flag("--compress", o->compress, "zstd: a smaller file, unpacked at load");
  c->add_option("--candidate-head", o->candidate_rank,
                "targets: add a low-rank head of this rank, through which drafters look for tokens (0: none)")
      ->type_name("RANK")
      ->check(CLI::Range(0, 1 << 24));
  c->callback([o, run] {
    *run = [o] {
      aerie_convert_options a;
      AERIE_INIT(a);
      a.source = o->source.c_str();
      a.output = o->output.c_str();
      if (!o->dtype.empty()) a.dtype = kWeights.at(o->dtype);
      if (!o->head_dtype.empty()) a.head_dtype = kWeights.at(o->head_dtype);
      if (!o->drafter_for.empty()) a.drafter_for = o->drafter_for.c_str();
      if (!o->tokenizer.empty()) a.tokenizer = o->tokenizer.c_str();
      a.compress = o->compress;
      a.context = o->context;
      a.candidate_rank = o->candidate_rank < 0 ? 0 : o->candidate_rank == 0 ? -1 : o->candidate_rank;
      a.progress = [](void*, uint64_t done, uint64_t total) -> int32_t {
        if (isatty(2)) print_progress("converting", done, total);
        return StopWriting::signal() == 0;
      };
      a.log = [](void*, int32_t, const char* message) { std::fprintf(stderr, "aerie: note: %s\n", message); };
      const StopWriting stop;
      int32_t code = AERIE_OK;
      check([&](aerie_error* e) {
        code = aerie_convert(&a, e);
        return code == AERIE_E_CANCELLED ? AERIE_OK : code;
      });
      if (code != AERIE_E_CANCELLED) {
        std::error_code none;
        const auto bytes = std::filesystem::file_size(path_of(o->output), none);
        if (!none) std::fprintf(stderr, "aerie: %s: %.1f MB\n", o->output.c_str(), static_cast<double>(bytes) * 1e-6);
        return 0;
      }
      std::fprintf(stderr, "%saerie: not finished, nothing was written\n", isatty(2) ? "\r\033[K" : "");
      return kEndedBySignal + StopWriting::signal();
    };
  });
}

void add_inspect(CLI::App& app, std::function<int()>* run) {
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("inspect", "show what is in a package");
  c->add_option("file", *file, "package")->required();
  c->add_flag("--json", *json, "one JSON object");
  c->callback([file, json, run] {
    *run = [file, json] {
      char* text = nullptr;
      check([&](aerie_error* e) { return aerie_inspect(file->c_str(), *json ? AERIE_INSPECT_JSON : AERIE_INSPECT_TEXT, &text, e); });
      std::fputs(text, stdout);
      aerie_string_free(text);
      return 0;
    };
  });
}

}  // namespace cli
