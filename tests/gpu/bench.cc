// Passes of Llama-3.1-8B's shape on the GPU, random weights, against the card's measured read bandwidth: target passes of
// 1 to 128 rows (of 1 and 64 in other ways, too: kWays), a level of an EAGLE drafter, and prefill by our kernels and by
// cuBLASLt. Prints one JSON object.
//   gpu_bench [bf16|fp8|int8|int4|q4_1|mxfp4]... [--context N] [--layers N] [--samples N] [--rows N]... [--parts] [--tiny] [--save FILE]
// All types but mxfp4 unless some are named. --rows: target passes of so many rows alone. --parts: what of a pass each kind of op
// costs. --save: the object so far, whenever a part of it is done.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/gpu/passes.h"
#include "tests/gpu/probe.h"

namespace {

using namespace aerie::gpu_bench;
using nlohmann::ordered_json;

struct Options {
  Shape shape;
  int32_t context = 512;
  int samples = 41;
  std::vector<std::string> types;
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 32, 64, 128};
  bool parts = false;
  std::string save;
  double bandwidth = 0;  // bytes a second
};

ordered_json timed(Bench& b, const std::vector<Op>& plan, int64_t rows, double floor_us, const Options& o, const char* what) {
  const Timing t = b.time(plan, o.samples);
  std::fprintf(stderr, "%-14s %5lld rows %10.1f us  %5.1f %% of read bandwidth  (submit %.1f us)\n", what, static_cast<long long>(rows),
               t.us, 100 * floor_us / t.us, t.submit_us);
  return {{"rows", rows}, {"us", t.us}, {"submit_us", t.submit_us}, {"first_us", t.first_us}, {"graph_us", t.graph_us}, {"of_bandwidth", floor_us / t.us}};
}

// Of each kind of op one a layer, one after another.
ordered_json bench_parts(Bench& b, const TargetPass& target, const Options& o) {
  ordered_json all;
  for (const int64_t rows : {1, 8, 16, 32, 64}) {
    for (const auto& [name, plan] : target.parts(rows)) {
      const double us = b.time(plan, o.samples).us;
      std::fprintf(stderr, "  %2lld rows, %3zu x %-16s %9.1f us\n", static_cast<long long>(rows), plan.size(), name.c_str(), us);
      all.push_back({{"rows", rows}, {"op", name}, {"ops", plan.size()}, {"us", us}});
    }
  }
  return all;
}

// How kernels may follow one another; the first way is what is used.
struct Way {
  const char* name;
  CudaOptions options;
};
const Way kWays[] = {{"as it is", {}},
                     {"not early", {.early = false}},
                     {"beside attention 0", {.beside_attention = 0}},
                     {"beside attention 256 KB", {.beside_attention = 256 << 10}},
                     {"first stages at once", {.one_by_one = 0}},
                     {"one by one for all rows", {.one_by_one = 64}},
                     {"4 stages", {.stages = 4}},
                     {"4 stages, at once", {.stages = 4, .one_by_one = 0}},
                     {"weights stay in the cache", {.once = false}},
                     {"attention as of many from 16 rows on", {.many_tiles = 32}},
                     {"attention as of few", {.many_tiles = 1 << 30}},
                     {"as it is, again", {}},
                     {"all shared memory", {.all_shared = true}}};  // last: kernels keep it

ordered_json bench_ways(Bench& b, TargetPass& target, double floor_us, const Options& o) {
  ordered_json all;
  for (const Way& way : kWays) {
    b.use(way.options);
    for (const int64_t rows : {1, 16, 64}) {
      all.push_back(timed(b, target.plan(rows), rows, floor_us, o, way.name));
      all.back()["way"] = way.name;
    }
  }
  b.use({});
  return all;
}

ordered_json bench_type(DType type, const std::string& name, const Options& o) {
  Bench b;
  TargetPass target(b, o.shape, type, o.context);
  const double floor_us = static_cast<double>(b.bytes) / o.bandwidth * 1e6;
  ordered_json j = {{"dtype", name}, {"layers", o.shape.layers}, {"context", o.context}, {"weight_bytes", b.bytes}, {"floor_us", floor_us}};
  for (const int64_t rows : o.rows) j["passes"].push_back(timed(b, target.plan(rows), rows, floor_us, o, (name + " target").c_str()));
  if (o.parts) j["parts"] = bench_parts(b, target, o);
  if (type == DType::bf16) {
    j["ways"] = bench_ways(b, target, floor_us, o);
    const aerie::Status library = b.load_fast_linear();
    j["cublaslt"] = library.ok() ? "loaded" : library.message();
    std::fprintf(stderr, "cuBLASLt: %s\n", library.ok() ? "loaded" : library.message().c_str());
    for (const int64_t rows : {64, 512}) {
      const double own = b.time(target.widest(b, rows, false), o.samples).us;
      const double theirs = library.ok() ? b.time(target.widest(b, rows, true), o.samples).us : 0;
      std::fprintf(stderr, "prefill %4lld rows of (%lld, %lld): %.1f us, by cuBLASLt (not bit-exact) %.1f us\n", static_cast<long long>(rows),
                   static_cast<long long>(2 * o.shape.ffn), static_cast<long long>(o.shape.hidden), own, theirs);
      j["prefill"].push_back({{"rows", rows}, {"us", own}, {"cublaslt_us", theirs > 0 ? ordered_json(theirs) : ordered_json()}});
    }
  }
  return j;
}

// How much less a level takes without each of its ops: what there is but one of would come out of the cache if it ran alone.
ordered_json bench_left_out(Bench& b, const std::vector<Op>& level, const Options& o) {
  if (level.size() != std::size(EagleLevel::kOps) + 2) fail("EagleLevel::kOps are not its plan's");  // and two downloads
  const double whole = b.time(level, o.samples).us;
  ordered_json all;
  for (size_t i = 0; i < std::size(EagleLevel::kOps); ++i) {
    std::vector<Op> others = level;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double us = whole - b.time(others, o.samples).us;
    std::fprintf(stderr, "  EAGLE level without %-16s %9.1f us less\n", EagleLevel::kOps[i], us);
    all.push_back({{"op", EagleLevel::kOps[i]}, {"us", us}});
  }
  return all;
}

ordered_json bench_eagle(const Options& o) {
  Bench b;
  EagleLevel level(b, o.shape, DType::bf16, o.context);
  const double floor_us = static_cast<double>(b.bytes) / o.bandwidth * 1e6;
  ordered_json j = {{"dtype", "bf16"}, {"weight_bytes", b.bytes}, {"floor_us", floor_us}};
  for (const int64_t rows : {1, 10, 32}) j["passes"].push_back(timed(b, level.plan(rows), rows, floor_us, o, "EAGLE level"));
  if (o.parts) j["parts"] = bench_left_out(b, level.plan(10), o);
  return j;
}

Options parse(int argc, char** argv) {
  Options o;
  std::vector<int64_t> rows;
  for (int i = 1; i < argc; ++i) {
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (!std::strcmp(argv[i], "--context")) o.context = number();
    else if (!std::strcmp(argv[i], "--layers")) o.shape.layers = number();
    else if (!std::strcmp(argv[i], "--samples")) o.samples = number();
    else if (!std::strcmp(argv[i], "--save")) o.save = i + 1 < argc ? argv[++i] : "";
    else if (!std::strcmp(argv[i], "--rows")) rows.push_back(number());
    else if (!std::strcmp(argv[i], "--parts")) o.parts = true;
    else if (!std::strcmp(argv[i], "--tiny")) o.shape = {64, 96, 512, 1, 2, 1, 32};
    else o.types.emplace_back(argv[i]);
  }
  if (o.context < 1 || o.context > 1 << 20 || o.shape.layers < 1 || o.shape.layers > 200 || o.samples < 1)
    fail("--context, --layers or --samples out of range");
  for (const int64_t n : rows)
    if (n < 1 || n > Working::kRows) fail("--rows out of range");
  if (!rows.empty()) o.rows = std::move(rows);
  if (o.types.empty()) o.types = {"bf16", "fp8", "int8", "int4", "q4_1"};
  return o;
}

DType type_of(const std::string& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "fp8") return DType::fp8;
  if (name == "int8") return DType::int8;
  if (name == "int4") return DType::int4;
  if (name == "q4_1") return DType::q4_1;
  if (name == "mxfp4") return DType::mxfp4;
  fail("there are bf16, fp8, int8, int4, q4_1 and mxfp4, not " + name);
}

void save(const ordered_json& so_far, const std::string& file) {
  if (file.empty()) return;
  std::ofstream(file + ".new") << so_far.dump(2) << "\n";
  std::rename((file + ".new").c_str(), file.c_str());  // never half of it
}

}  // namespace

int main(int argc, char** argv) {
  Options o = parse(argc, argv);
  if (const auto d = make_cuda_device({}); !d.ok()) fail(d.status().message());
  o.bandwidth = read_bandwidth();
  if (!(o.bandwidth > 0)) fail("the read bandwidth could not be measured");
  std::fprintf(stderr, "%s: %.0f GB/s read\n", describe().c_str(), o.bandwidth * 1e-9);
  ordered_json out = {{"device", describe()}, {"read_bandwidth", o.bandwidth}};
  const auto part = [&](ordered_json& to, ordered_json measured) {
    to = std::move(measured);
    save(out, o.save);
  };
  out["targets"] = ordered_json::array();
  for (size_t i = 0; i < o.types.size(); ++i) {
    part(out["targets"].emplace_back(), bench_type(type_of(o.types[i]), o.types[i], o));
    if (i == 0) part(out["eagle_level"], bench_eagle(o));  // what bars are about comes first
  }
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}
