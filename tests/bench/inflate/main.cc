// inflate: a trained model and its drafters at the cost of a larger one. What is measured with the result is "inflated".
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "check.h"
#include "core/import/convert.h"
#include "inflater.h"

namespace {

using namespace aerie;

const std::map<std::string, kernels::DType> kDTypes = {
    {"f32", kernels::DType::f32},   {"bf16", kernels::DType::bf16}, {"fp8", kernels::DType::fp8},
    {"int8", kernels::DType::int8}, {"int4", kernels::DType::int4}, {"q4_1", kernels::DType::q4_1},
    {"mxfp4", kernels::DType::mxfp4}};

// A power of four must change nothing; for any other ratio where it does is something to know, not a failure.
Status compare(const std::string& small, const std::string& big, int64_t n, bool exact) {
  AERIE_ASSIGN(const inflate::Comparison c, inflate::compare_greedy(small, big, n));
  if (c.same == c.tokens) {
    std::printf("identical for %zu greedy tokens\n", c.tokens);
  } else {
    std::printf("first difference at greedy token %zu of %zu\n", c.same, c.tokens);
    if (exact) return error(Code::internal, big + ": differs from " + small + " although the width ratio is a power of four");
  }
  return {};
}

struct Options {
  std::string target, shape = "1b", dtype, output;
  std::vector<std::string> drafters;
  uint64_t seed = 1;
  int32_t candidate_rank = 0;
  int64_t check = 0;
};

Status run(const Options& o) {
  namespace fs = std::filesystem;
  std::set<std::string> names{"target.aerie", "small.aerie"};
  for (const std::string& d : o.drafters)
    if (!names.insert(fs::path(d).filename().string()).second)
      return error(Code::invalid_argument, "--drafter " + d + ": a second file of this name in " + o.output);
  std::error_code ec;
  fs::create_directories(o.output, ec);  // if it failed, writing says so
  std::vector<std::string> read = o.drafters;
  read.push_back(o.target);
  for (const std::string& file : read)
    if (names.contains(fs::path(file).filename().string()) && fs::equivalent(fs::absolute(file).parent_path(), o.output, ec))
      return error(Code::invalid_argument, "--output " + o.output + ": " + file + " would be overwritten");
  AERIE_ASSIGN(auto package, Package::open(o.target));
  if (!package->target()) return error(Code::mismatch, o.target + ": not a target package");
  AERIE_ASSIGN(const inflate::Shape shape, inflate::parse_shape(o.shape, package->target()->head_dim));
  AERIE_TRY(inflate::check_shape(*package->target(), shape));
  std::string source = o.target;
  if (!o.dtype.empty()) {  // quantise first, then embed the codes
    ConvertOptions c;
    c.source = o.target;
    c.output = source = o.output + "/small.aerie";
    c.dtype = kDTypes.at(o.dtype);
    c.candidate_rank = o.candidate_rank;
    AERIE_TRY(convert(c));
    AERIE_ASSIGN(package, Package::open(source));
  }
  const LlamaConfig& small = *package->target();
  const bool exact = inflate::exact_ratio(small.hidden, shape.hidden) && shape.experts == 0;
  const inflate::Job target{package, shape, o.seed, o.output + "/target.aerie"};
  AERIE_TRY(inflate::inflate_target(target));
  std::printf("%s: inflated %d -> %d wide, %d -> %d layers%s\n", target.output.c_str(), small.hidden, shape.hidden, small.layers,
              shape.layers, exact ? "" : " (width ratio no power of four, or experts: not bit-exact)");
  for (const std::string& d : o.drafters) {
    AERIE_ASSIGN(auto drafter, Package::open(d));
    const inflate::Job job{drafter, shape, o.seed, o.output + "/" + fs::path(d).filename().string()};
    AERIE_TRY(inflate::inflate_drafter(job, target));
    std::printf("%s: inflated\n", job.output.c_str());
  }
  return o.check > 0 ? compare(source, target.output, o.check, exact) : Status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Put a trained package (and its drafters) into a larger Llama shape without changing what it says"};
  Options o;
  app.add_option("--target", o.target, "target package")->required();
  app.add_option("--drafter", o.drafters, "drafter package of that target; may be repeated");
  app.add_option("--shape", o.shape, "110m, 1b, 8b, or dim=,layers=,heads=,kv_heads=,ffn=,vocab=[,experts=,experts_used=]");
  CLI::Option* const dtype = app.add_option("--dtype", o.dtype, "quantise the target first")->check(CLI::IsMember(kDTypes));
  app.add_option("--candidate-head", o.candidate_rank, "give it a candidate head of this rank then; larger inflated")->check(CLI::Range(32, 1 << 16))->needs(dtype);
  app.add_option("--seed", o.seed, "of the random weights");
  app.add_option("--check", o.check, "compare this many greedy tokens of both");
  app.add_option("-o,--output", o.output, "folder for target.aerie and the drafters")->required();
  CLI11_PARSE(app, argc, argv);
  const Status s = run(o);
  if (s.ok()) return 0;
  std::fprintf(stderr, "inflate: %s\n", s.message().c_str());
  return 1;
}
