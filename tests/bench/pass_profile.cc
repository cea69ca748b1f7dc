// Where a verify pass spends its time: milliseconds of each kind of op, for several numbers of rows.
//   pass_profile [--isa NAME] [--fetch one|two] [--context N] [--kv f32|bf16|int8] MODEL.aerie THREADS ROWS...
// The target's passes behind N positions (192), interleaved; medians of the sums over a pass, and the GMAC/s of Linear and of experts' matrices.
// A device that passes everything on times the ops: each runs as a plan of its own, with the rest of the pass behind it that is passed
// over, since a plan's ops are shared between threads by how much it reads in all.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/model/measure.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/fetching.h"
#include "tests/bench/choose_isa.h"
#include "tests/bench/kv_format.h"
#include "tests/support/wrapped_device.h"

namespace {

using namespace aerie;
using kernels::Op;

struct Spent {
  double ms = 0, macs = 0;
};
using Pass = std::map<std::string, Spent>;             // by kind of op
using Profile = std::map<int64_t, std::vector<Pass>>;  // by rows

template <class... F>
struct Cases : F... {
  using F::operator()...;
};

std::string kind_of(const Op& op) {
  const auto named = [](const char* kind, int64_t rows, int64_t cols) {
    char name[64];
    std::snprintf(name, sizeof name, "%s %6ld x %ld", kind, static_cast<long>(rows), static_cast<long>(cols));
    return std::string(name);
  };
  return std::visit(Cases{[&](const kernels::Linear& l) { return named("Linear", l.w.rows, l.w.cols); },
                          [&](const kernels::ExpertLinear& l) { return named("Expert", l.out.cols, l.w.cols); },
                          [](const kernels::Route&) { return std::string("Route"); },
                          [](const kernels::CombineExperts&) { return std::string("CombineExperts"); },
                          [](const kernels::ShortConv&) { return std::string("ShortConv"); },
                          [](const kernels::DeltaRule&) { return std::string("DeltaRule"); },
                          [](const kernels::Activate&) { return std::string("Activate"); },
                          [](const kernels::Attention&) { return std::string("Attention"); },
                          [](const kernels::RopeAndStore&) { return std::string("RopeAndStore"); },
                          [](const kernels::RmsNorm&) { return std::string("RmsNorm"); },
                          [](const kernels::GatedActivate&) { return std::string("GatedActivate"); },
                          [](const auto&) { return std::string("others"); }},
                    op);
}

int64_t macs_of(const Op& op) {
  if (const auto* l = std::get_if<kernels::Linear>(&op)) return l->x.rows * l->w.rows * l->w.cols;
  if (const auto* l = std::get_if<kernels::ExpertLinear>(&op)) return l->out.rows * l->out.cols * l->w.cols;
  return 0;
}

class TimedQueue final : public test::WrappedQueue {
 public:
  TimedQueue(std::unique_ptr<kernels::Queue> inner, Profile& profile) : WrappedQueue(std::move(inner)), profile_(profile) {}
  Status submit(std::span<const Op> ops) override {
    ops_ = ops;
    return {};
  }
  Result<kernels::RunState> advance(kernels::Clock::time_point) override {
    Pass pass;
    const int32_t never = 0;
    std::vector<Op> plan = {ops_.front(), kernels::RunIf{&never, static_cast<int32_t>(ops_.size())}};
    plan.insert(plan.end(), ops_.begin(), ops_.end());
    for (const Op& op : ops_) {
      plan.front() = op;
      AERIE_TRY(inner_->submit(plan));
      const auto start = kernels::Clock::now();
      AERIE_TRY(inner_->advance(kernels::kNoDeadline).status());
      const double ms = std::chrono::duration<double, std::milli>(kernels::Clock::now() - start).count();
      const double macs = static_cast<double>(macs_of(op));
      for (const std::string& kind : {kind_of(op), std::string("all")}) {
        pass[kind].ms += ms;
        pass[kind].macs += macs;
      }
    }
    // A pass ends with its logits; what is uploaded when a model opens is none.
    if (const auto* head = std::get_if<kernels::Linear>(&ops_.back())) profile_[head->x.rows].push_back(std::move(pass));
    return kernels::RunState::done;
  }
  void abandon() override {}

 private:
  Profile& profile_;
  std::span<const Op> ops_;
};

class TimedDevice final : public test::WrappedDevice {
 public:
  TimedDevice(std::shared_ptr<kernels::Device> inner, Profile& profile) : WrappedDevice(std::move(inner)), profile_(profile) {}

 private:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override {
    return std::make_unique<TimedQueue>(std::move(inner), profile_);
  }
  Profile& profile_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Wanted {
  const char* model = nullptr;
  int threads = 0;
  std::vector<int32_t> rows;
  int32_t context = 192;
  kernels::DType kv = kernels::DType::f32;
};

Status profile_passes(const Wanted& wanted, Profile& profile, std::string* about) {
  kernels::CpuOptions cpu;
  cpu.threads = wanted.threads;
  AERIE_ASSIGN(auto inner, kernels::make_cpu_device(cpu));
  *about = inner->isa();
  AERIE_ASSIGN(auto package, Package::open(wanted.model));
  ModelOptions options;
  options.kv_positions = wanted.context + 1024;
  options.kv_dtype = wanted.kv;
  AERIE_ASSIGN(const auto model, Model::open(std::make_shared<TimedDevice>(std::move(inner), profile), std::move(package), options));
  MeasureOptions measure;
  measure.contexts = {wanted.context};
  measure.rows = wanted.rows;
  measure.least_samples = measure.most_samples = 15;
  return measure_target(*model, measure).status();
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  const auto option = [&](const std::string& name, const char* value) {
    if (name == "--isa") return choose_isa(value);
    if (name == "--fetch") {  // weights in so many steps, not as this machine does
      const std::string steps = value;
      kernels::cpu::set_fetch_in_two_steps(steps == "two");
      return steps == "one" || steps == "two";
    }
    if (name == "--context") return (wanted.context = std::atoi(value)) > 0;
    const auto kv = name == "--kv" ? kv_format(value) : std::nullopt;
    if (kv) wanted.kv = *kv;
    return kv.has_value();
  };
  bool good = true;
  for (; good && argc > 2 && argv[1][0] == '-'; argv += 2, argc -= 2) good = option(argv[1], argv[2]);
  if (argc > 2) wanted.model = argv[1], wanted.threads = std::atoi(argv[2]);
  for (int i = 3; i < argc; ++i) wanted.rows.push_back(std::atoi(argv[i]));
  for (const int32_t n : wanted.rows) good = good && n >= 1 && n <= 128;
  if (!good || wanted.rows.empty() || wanted.threads < 1)
    return std::fprintf(stderr, "usage: pass_profile [--isa NAME] [--fetch one|two] [--context N] [--kv %s] MODEL.aerie THREADS ROWS...\n",
                        kKvFormats), 1;
  Profile profile;
  std::string about;
  if (const Status s = profile_passes(wanted, profile, &about); !s.ok()) return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
  std::printf("%s\n%-22s", about.c_str(), "ms a pass of rows");
  for (const auto& [n, passes] : profile) std::printf("  %8ld  GMAC/s", static_cast<long>(n));
  for (const auto& [kind, of_first] : profile.begin()->second.front()) {
    std::printf("\n%-22s", kind.c_str());
    for (const auto& [n, passes] : profile) {
      std::vector<double> ms;
      for (size_t i = 1; i < passes.size(); ++i) ms.push_back(passes[i].at(kind).ms);  // the first warms up
      const double m = median(ms), macs = passes[0].at(kind).macs;
      std::printf("  %8.3f %7s", m, macs > 0 ? std::to_string(std::lround(macs / m * 1e-6)).c_str() : "");
    }
  }
  std::printf("\n");
}
