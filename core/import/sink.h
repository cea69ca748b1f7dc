// Where converted tensors go: packs weights, writes the package, and hashes what it sees.
#pragma once

#include <xxhash.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/import/convert.h"
#include "core/import/source.h"
#include "core/package/writer.h"
#include "core/text/tokenizer.h"

namespace aerie {

class Sink {
 public:
  static Result<std::unique_ptr<Sink>> create(const ConvertOptions& options);
  ~Sink();
  PackageWriter& writer() { return *writer_; }
  // A linear weight or embedding, packed in the dtype asked for it.
  Status weight(const std::string& name, const SourceMatrix& m);
  // One of so many experts' matrices, one after the other: (count * rows, cols), of which `read` gives one at a time.
  struct Experts {
    int64_t count, rows, cols;  // rows: a multiple of kernels::kPanel
    kernels::DType stored;
    std::function<Result<std::vector<float>>(int64_t expert)> read;
  };
  Status experts(const std::string& name, const Experts& all);
  // The same in a dtype of its own, but for a router (bf16 or f32), without becoming part of the fingerprint.
  Status pack(const std::string& name, const std::vector<float>& values, int64_t rows, int64_t cols, kernels::DType d);
  // What the candidate head is made of, if one is asked for: the last of a target's embedding and LM head.
  void remember_head(const std::string& name, const SourceMatrix& m);
  // False: the caller of the conversion has cancelled it. For what comes after the import, whose steps all are done.
  bool wanted() const { return !options_.progress || options_.progress(1, 1); }
  // After the import of a target: candidate.down and candidate.up, if asked for. They are no part of its identity.
  Status add_candidate_head();
  // A norm or bias, f32; or a few of them.
  Status vector(const std::string& name, const std::vector<float>& values, int64_t rows = 1);
  // Row numbers or token ids, i32.
  Status indices(const std::string& name, const std::vector<int32_t>& values);
  // Stores the tokenizer and lets it bound c->vocab_used; `source` is the file's own bytes.
  Status tokenizer(const text::Tokenizer& tokenizer, std::span<const uint8_t> source, LlamaConfig* c);
  // A tokenizer.json, or SentencePiece's own file. True: it puts a BOS before a text.
  Result<bool> tokenizer_file(const std::string& path, LlamaConfig* c);
  // The last calls of an import: name (taken from a path) and identity of the whole.
  void finish_target(const std::string& path, const LlamaConfig& c);
  void finish_drafter(const std::string& name, const DrafterConfig& c);
  void warn(std::string message) const {
    if (options_.warnings) options_.warnings->push_back(std::move(message));
  }

 private:
  explicit Sink(const ConvertOptions& options) : options_(options), state_(XXH3_createState()) {
    XXH3_128bits_reset(state_);
  }
  void hash(const void* data, size_t bytes) { XXH3_128bits_update(state_, data, bytes); }
  void hash_values(const std::string& name, const std::vector<float>& values);
  void hash_rounded(const std::vector<float>& values);
  // Room for a packed matrix, until the next is asked for.
  kernels::Tensor packed(int64_t rows, int64_t cols, kernels::DType d);
  void hash_config(const LlamaConfig& c);
  void hash_departures(const Departures& d);
  std::string fingerprint() const;

  const ConvertOptions& options_;
  std::unique_ptr<PackageWriter> writer_;
  XXH3_state_t* state_;
  std::vector<char> data_, scales_;
  SourceMatrix head_;
  bool untied_ = false;  // it is the lm_head's
};

// A package's name: what may be shown of it, cut to so many bytes.
std::string shown(const std::string& name, size_t most);
// The last component of a path without its extension.
std::string name_from_path(const std::string& path);

// What each kind of source does (one file each).
Status import_llama_directory(const ConvertOptions& options, Sink& sink);
Status import_gguf(const ConvertOptions& options, Sink& sink);
Status import_llama2c(const ConvertOptions& options, Sink& sink);
Status import_eagle(const ConvertOptions& options, Sink& sink);
Status import_eagle3(const ConvertOptions& options, Sink& sink);
Status import_fasteagle(const ConvertOptions& options, Sink& sink);
Status import_medusa(const ConvertOptions& options, Sink& sink);
Status import_hydra(const ConvertOptions& options, Sink& sink);
Status import_mtp(const ConvertOptions& options, Sink& sink);
Status import_gemma_assistant(const ConvertOptions& options, Sink& sink);
Status import_dflash(const ConvertOptions& options, Sink& sink);
bool has_mtp(const TensorSource& source);  // mtp.cc
Status import_gguf_mtp(const ConvertOptions& options, Sink& sink);
Status import_package(const ConvertOptions& options, Sink& sink);

}  // namespace aerie
