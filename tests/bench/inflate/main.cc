// inflate: a trained model and its drafters at the cost of a larger one. What is measured with the result is "inflated".
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "core/import/convert.h"
#include "core/model/model.h"
#include "core/session/session.h"
#include "inflater.h"
#include "kernels/cpu/cpu_device.h"

namespace {

using namespace aerie;

// Greedy tokens of a package.
Result<std::vector<int32_t>> greedy(const std::string& path, int64_t n) {
  AERIE_ASSIGN(auto device, kernels::make_cpu_device({}));
  AERIE_ASSIGN(auto package, Package::open(path));
  ModelOptions options;
  options.kv_positions = n + 512;
  AERIE_ASSIGN(auto model, Model::open(std::shared_ptr<kernels::Device>(std::move(device)), package, options));
  SessionOptions o;
  o.ignore_eos = true;
  o.max_context = std::min<int64_t>(n + 32, model->config().max_context);
  AERIE_ASSIGN(auto session, Session::create(model, o));
  AERIE_TRY(session->append(std::vector<int32_t>{1, 17, 42, 23, 5}));
  std::vector<int32_t> out;
  while (static_cast<int64_t>(out.size()) < n) {
    StepResult r;
    AERIE_TRY(session->step(0, std::chrono::microseconds(0), &r));
    for (const EmittedToken& t : r.tokens) out.push_back(t.id);
    if (r.state == StepState::done) break;
  }
  return out;
}

Status compare(const std::string& small, const std::string& big, int64_t n) {
  AERIE_ASSIGN(const auto a, greedy(small, n));
  AERIE_ASSIGN(const auto b, greedy(big, n));
  size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  if (same == a.size() && same == b.size()) std::printf("identical for %zu greedy tokens\n", same);
  else std::printf("greedy tokens differ from token %zu on (the width ratio is not a power of four)\n", same);
  return {};
}

struct Options {
  std::string target, shape = "1b", dtype, output;
  std::vector<std::string> drafters;
  uint64_t seed = 1;
  int64_t check = 0;
};

Status run(const Options& o) {
  namespace fs = std::filesystem;
  std::error_code ec;
  fs::create_directories(o.output, ec);
  std::string source = o.target;
  if (!o.dtype.empty()) {  // quantise first, then embed the codes
    ConvertOptions c;
    c.source = o.target;
    c.output = source = o.output + "/small.aerie";
    c.dtype = o.dtype == "f32" ? kernels::DType::f32 : o.dtype == "bf16" ? kernels::DType::bf16 : o.dtype == "int8" ? kernels::DType::int8 : kernels::DType::int4;
    AERIE_TRY(convert(c));
  }
  AERIE_ASSIGN(const inflate::Shape shape, inflate::parse_shape(o.shape));
  AERIE_ASSIGN(auto package, Package::open(source));
  const inflate::Job target{package, shape, o.seed, o.output + "/target.aerie"};
  AERIE_TRY(inflate::inflate_target(target));
  std::printf("%s: inflated %d -> %d wide, %d -> %d layers%s\n", target.output.c_str(), package->target()->hidden, shape.hidden,
              package->target()->layers, shape.layers,
              inflate::exact_ratio(package->target()->hidden, shape.hidden) ? "" : " (width ratio not a power of four: not bit-exact)");
  for (const std::string& d : o.drafters) {
    AERIE_ASSIGN(auto small, Package::open(d));
    const inflate::Job job{small, shape, o.seed, o.output + "/" + fs::path(d).filename().string()};
    AERIE_TRY(inflate::inflate_drafter(job, target));
    std::printf("%s: inflated\n", job.output.c_str());
  }
  return o.check > 0 ? compare(source, target.output, o.check) : Status();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Put a trained package (and its drafters) into a larger Llama shape without changing what it says"};
  Options o;
  app.add_option("--target", o.target, "target package")->required();
  app.add_option("--drafter", o.drafters, "drafter package of that target; may be repeated");
  app.add_option("--shape", o.shape, "110m, 1b, 8b, or dim=,layers=,heads=,kv_heads=,ffn=,vocab=");
  app.add_option("--dtype", o.dtype, "quantise the target first")->check(CLI::IsMember({"f32", "bf16", "int8", "int4"}));
  app.add_option("--seed", o.seed, "of the random weights");
  app.add_option("--check", o.check, "compare this many greedy tokens of both");
  app.add_option("-o,--output", o.output, "folder for target.aerie and the drafters")->required();
  CLI11_PARSE(app, argc, argv);
  const Status s = run(o);
  if (s.ok()) return 0;
  std::fprintf(stderr, "inflate: %s\n", s.message().c_str());
  return 1;
}
