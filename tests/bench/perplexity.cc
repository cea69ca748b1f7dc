// perplexity [--threads N] [--windows N] [--kv f32|bf16|int8] TEXT PACKAGE...: what a weight format costs in quality.
// TEXT is UTF-8, or token ids as 16-bit integers in a file named *.u16. Windows of the model's whole context, spread
// evenly over the text, each read from nothing; the first token of a window is not predicted. Each package's figure
// stands beside the first one's, with the standard error of the difference over the windows.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/bench/kv_format.h"
#include "tests/bench/or_fail.h"

namespace {

using namespace aerie;
using namespace aerie::bench;

std::vector<int32_t> read_ids(const std::string& path, const Package& package) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path + ": cannot open");
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!path.ends_with(".u16")) {
    const auto tokenizer = take(text::Tokenizer::deserialize(package.blob("tokenizer")));
    return take(tokenizer->encode(bytes));
  }
  std::vector<int32_t> ids;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2)
    ids.push_back(static_cast<uint8_t>(bytes[i]) | static_cast<uint8_t>(bytes[i + 1]) << 8);
  return ids;
}

double nll(const float* logits, int64_t vocab, int32_t token) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < vocab; ++i) top = std::max(top, static_cast<double>(logits[i]));
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - top);
  return top + std::log(sum) - static_cast<double>(logits[token]);
}

struct Settings {
  int threads = 0, windows = 100;
  kernels::DType kv = kernels::DType::f32;
};

// Mean negative log-likelihood of each window.
std::vector<double> windows(const std::string& path, const std::string& text, const Settings& settings, int64_t* length) {
  kernels::CpuOptions cpu;
  cpu.threads = settings.threads;
  const std::shared_ptr<kernels::Device> device = take(kernels::make_cpu_device(cpu));
  const auto package = take(Package::open(path));
  ModelOptions options;
  options.kv_dtype = settings.kv;
  const auto model = take(Model::open(device, package, options));
  const LlamaConfig& config = model->config();
  const std::vector<int32_t> ids = read_ids(text, *package);
  if (*length == 0) *length = config.max_context;
  if (config.max_context < *length) fail(path + ": a context of " + std::to_string(config.max_context) + ", the first package has " + std::to_string(*length));
  const int64_t fit = static_cast<int64_t>(ids.size()) / *length, n = std::min<int64_t>(settings.windows, fit);
  if (n < 2) fail(text + ": too short for two windows of " + std::to_string(*length) + " tokens");
  const auto plan = take(Plan::create(device, 1 << 20));
  const auto queue = take(device->make_queue());
  KvSequence kv(model->pool(), *length, 1);
  check(kv.reserve(*length));
  std::vector<double> found;
  for (int64_t w = 0; w < n; ++w) {
    const int32_t* window = ids.data() + w * fit / n * *length;
    kv.state().rewind(0);  // of recurrent layers: each window is a text of its own
    RowsBuilder rows;
    rows.sequence(kv);
    for (int64_t i = 0; i + 1 < *length; ++i) {
      if (window[i] < 0 || window[i] >= config.vocab_size) fail(text + ": token " + std::to_string(window[i]) + " is not in the vocabulary of " + path);
      rows.plain(window[i], i);
    }
    plan->clear();
    const kernels::Tensor logits = model->logits(*plan, model->forward(*plan, rows.stage(*plan), {}, {}));
    check(plan->submit(*queue));
    if (take(queue->advance(kernels::kNoDeadline)) != kernels::RunState::done) fail("a pass did not finish");
    double sum = 0;
    for (int64_t i = 0; i + 1 < *length; ++i)
      sum += nll(static_cast<const float*>(logits.data) + i * logits.stride, config.vocab_size, window[i + 1]);
    found.push_back(sum / static_cast<double>(*length - 1));
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a.rfind("--", 0) == 0 && i + 1 >= argc) fail(a + " needs a value");
    if (a == "--threads") settings.threads = std::atoi(argv[++i]);
    else if (a == "--windows") settings.windows = std::atoi(argv[++i]);
    else if (a == "--kv") {
      const auto kv = kv_format(argv[++i]);
      if (!kv) fail(std::string("--kv: ") + argv[i] + " is not " + kKvFormats);
      settings.kv = *kv;
    }
    else if (a.rfind("--", 0) == 0) fail("unknown option " + a);
    else names.push_back(a);
  }
  if (names.size() < 2) fail("usage: perplexity [--threads N] [--windows N] [--kv f32|bf16|int8] TEXT PACKAGE...");
  int64_t length = 0;
  std::vector<double> first;
  for (size_t p = 1; p < names.size(); ++p) {
    const std::vector<double> found = windows(names[p], names[0], settings, &length);
    if (p == 1) first = found;
    const auto n = static_cast<double>(found.size());
    double mean = 0, difference = 0, square = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      mean += found[i] / n;
      difference += (found[i] - first[i]) / n;
    }
    for (size_t i = 0; i < found.size(); ++i) square += std::pow(found[i] - first[i] - difference, 2);
    const double error = std::sqrt(square / (n - 1) / n);
    std::printf("%-32s perplexity %9.4f  %+7.3f %% +- %.3f  (%zu windows of %lld tokens)\n", names[p].c_str(), std::exp(mean),
                100 * (std::exp(difference) - 1), 100 * error, found.size(), static_cast<long long>(length));
  }
}
