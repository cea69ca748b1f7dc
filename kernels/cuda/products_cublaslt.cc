// gpu.h's products by cuBLASLt. It is loaded when they are first asked for: without it the backend is complete but for them.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <tuple>

#include "kernels/cuda/gpu.h"

#define AERIE_TEXT_OF(x) #x
#define AERIE_TEXT(x) AERIE_TEXT_OF(x)

namespace aerie::kernels::cuda::gpu {
namespace {

constexpr char kName[] = "libcublasLt.so." AERIE_TEXT(CUBLAS_VER_MAJOR);
constexpr size_t kMostShapes = 256;

// A product's operands as cuBLASLt wants them described, and how it chose to multiply them.
struct Chosen {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t weights = nullptr, rows = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

class Library {
 public:
  Status load() {
    void* lib = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return error(Code::unsupported, std::string("cuda: fast products need ") + kName + ", which is not installed");
    const auto get = [&](auto& f, const char* name) {
      return (f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(lib, name))) != nullptr;
    };
    const bool whole = get(create_, "cublasLtCreate") && get(operation_create_, "cublasLtMatmulDescCreate") &&
                       get(operation_set_, "cublasLtMatmulDescSetAttribute") && get(operation_destroy_, "cublasLtMatmulDescDestroy") &&
                       get(layout_create_, "cublasLtMatrixLayoutCreate") && get(layout_destroy_, "cublasLtMatrixLayoutDestroy") &&
                       get(preference_create_, "cublasLtMatmulPreferenceCreate") &&
                       get(preference_set_, "cublasLtMatmulPreferenceSetAttribute") &&
                       get(preference_destroy_, "cublasLtMatmulPreferenceDestroy") &&
                       get(heuristic_, "cublasLtMatmulAlgoGetHeuristic") && get(multiply_, "cublasLtMatmul");
    return whole ? Status() : error(Code::unsupported, std::string("cuda: ") + kName + " lacks a function");
  }

  Status multiply(const Product& p, Stream stream) {
    const std::lock_guard lock(mutex_);
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return error(Code::device, "cuda: cuBLASLt: no current device");
    cublasLtHandle_t& handle = handles_[device];
    if (!handle) AERIE_TRY(check(create_(&handle), "cublasLtCreate"));
    if (chosen_.size() >= kMostShapes) forget();
    const auto [at, added] = chosen_.try_emplace({device, p.outputs, p.width, p.count});
    Chosen& c = at->second;
    if (added) {
      if (Status s = choose(handle, p, &c); !s.ok()) {
        destroy(c);
        chosen_.erase(at);
        return s;
      }
    }
    const float one = 1, zero = 0;
    return check(multiply_(handle, c.operation, &one, p.weights, c.weights, p.rows, c.rows, &zero, p.out, c.out, p.out, c.out,
                           &c.algorithm, p.room, Product::kRoom, reinterpret_cast<cudaStream_t>(stream)),
                 "cublasLtMatmul");
  }

 private:
  static Status check(cublasStatus_t s, const char* what) {
    if (s == CUBLAS_STATUS_SUCCESS) return {};
    return error(s == CUBLAS_STATUS_ALLOC_FAILED ? Code::out_of_memory : Code::device,
                 std::string("cuda: ") + what + ": status " + std::to_string(s));
  }

  // Column-major: out (outputs, count) = weights (width, outputs)^T rows (width, count).
  Status choose(cublasLtHandle_t handle, const Product& p, Chosen* c) const {
    const auto outputs = static_cast<uint64_t>(p.outputs), width = static_cast<uint64_t>(p.width), count = static_cast<uint64_t>(p.count);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    AERIE_TRY(check(operation_create_(&c->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate"));
    AERIE_TRY(check(operation_set_(c->operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "cublasLtMatmulDescSetAttribute"));
    AERIE_TRY(check(layout_create_(&c->weights, CUDA_R_16BF, width, outputs, p.width), "cublasLtMatrixLayoutCreate"));
    AERIE_TRY(check(layout_create_(&c->rows, CUDA_R_16BF, width, count, p.width), "cublasLtMatrixLayoutCreate"));
    AERIE_TRY(check(layout_create_(&c->out, CUDA_R_32F, outputs, count, p.outputs), "cublasLtMatrixLayoutCreate"));
    cublasLtMatmulPreference_t preference = nullptr;
    AERIE_TRY(check(preference_create_(&preference), "cublasLtMatmulPreferenceCreate"));
    constexpr size_t room = Product::kRoom;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    cublasStatus_t s = preference_set_(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    if (s == CUBLAS_STATUS_SUCCESS) s = heuristic_(handle, c->operation, c->weights, c->rows, c->out, c->out, preference, 1, &found, &n);
    (void)preference_destroy_(preference);
    AERIE_TRY(check(n == 0 && s == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : s, "cublasLtMatmulAlgoGetHeuristic"));
    c->algorithm = found.algo;
    return {};
  }

  void destroy(const Chosen& c) const {
    if (c.operation) (void)operation_destroy_(c.operation);
    for (const cublasLtMatrixLayout_t layout : {c.weights, c.rows, c.out})
      if (layout) (void)layout_destroy_(layout);
  }
  void forget() {
    for (const auto& [shape, c] : chosen_) destroy(c);
    chosen_.clear();
  }

  // The library's functions, of the types its header gives them.
  decltype(&cublasLtCreate) create_ = nullptr;
  decltype(&cublasLtMatmulDescCreate) operation_create_ = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) operation_set_ = nullptr;
  decltype(&cublasLtMatmulDescDestroy) operation_destroy_ = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create_ = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy_ = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create_ = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_ = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy_ = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic_ = nullptr;
  decltype(&cublasLtMatmul) multiply_ = nullptr;

  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;  // of devices
  std::map<std::tuple<int, int64_t, int64_t, int64_t>, Chosen> chosen_;
};

// Never unloaded, and never destroyed: threads may be in it when the process ends.
struct Loaded {
  Library* library = new Library;
  Status status = library->load();
};
const Loaded& loaded() {
  static const Loaded l;
  return l;
}

}  // namespace

Status load_products() { return loaded().status; }
Status multiply(const Product& product, Stream stream) {
  AERIE_TRY(loaded().status);
  return loaded().library->multiply(product, stream);
}

}  // namespace aerie::kernels::cuda::gpu
