// PyTorch pickles are not read, since reading one can run code; whoever trusts them is told how to make safetensors of them.
#include "core/import/pickle.h"

#include <algorithm>

#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

std::string quoted(const std::string& path) {  // for a POSIX shell
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

// By names alone, and many files by what theirs have in common: an aerie_error has 500 bytes, of which a path may take half.
Status refuse_pickles(const std::vector<std::string>& files) {
  std::string list;
  if (files.size() > 1) {
    const std::string first = platform::file_name(files.front()), last = platform::file_name(files.back());
    const auto same = std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first;
    list = ' ' + quoted(std::string(first.begin(), same)) + '*' + first.substr(first.find_last_of('.'));
  } else {
    list = ' ' + quoted(platform::file_name(files.front()));
  }
  return error(Code::unsupported,
               files.front() + ": a PyTorch pickle, which can run code when read; if trusted, convert it in its directory: "
               "python -c \"import sys,torch,safetensors.torch as s; s.save_file({k:v.contiguous().clone() for f in sys.argv[1:] "
               "for k,v in torch.load(f,'cpu',weights_only=True).items()},'model.safetensors')\"" + list);
}

Result<std::vector<std::string>> find_pickles(const std::string& directory) {
  std::vector<std::string> all;
  for (const char* extension : {".bin", ".pt", ".pth"}) {
    AERIE_ASSIGN(const auto some, platform::list_files(directory, extension));
    all.insert(all.end(), some.begin(), some.end());
  }
  // Beside the weights there may be a trainer's state.
  const auto only = [&](const char* part) {
    std::vector<std::string> kept;
    std::copy_if(all.begin(), all.end(), std::back_inserter(kept), [&](const std::string& f) {
      return f.find(part, f.find_last_of("/\\") + 1) != std::string::npos;
    });
    return kept;
  };
  for (const char* weights : {"pytorch_model", "_lm_head."})
    if (auto kept = only(weights); !kept.empty()) return kept;
  if (all.size() > 1) all.resize(1);
  return all;
}

}  // namespace aerie
