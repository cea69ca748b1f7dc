// gpu.h over the CUDA runtime (linked statically; it looks for the driver when it is first called).
#include <cuda_runtime.h>

#include "kernels/cuda/gpu.h"

namespace aerie::kernels::cuda::gpu {
namespace {

Status status(cudaError_t e, const char* what) {
  switch (e) {
    case cudaSuccess:
      return {};
    case cudaErrorMemoryAllocation:
      (void)cudaGetLastError();  // not the next call's failure
      return error(Code::out_of_memory, std::string("cuda: ") + what + ": out of device memory");
    case cudaErrorNoDevice:
      return error(Code::device, "cuda: no CUDA device is present");
    case cudaErrorInsufficientDriver:
      return error(Code::device, "cuda: no NVIDIA driver, or one older than CUDA " +
                                     std::to_string(CUDART_VERSION / 1000) + "." +
                                     std::to_string(CUDART_VERSION % 1000 / 10) + " needs");
    case cudaErrorNoKernelImageForDevice:
      return error(Code::unsupported, "cuda: this build has no code for the device");
    default:
      return error(Code::device, std::string("cuda: ") + what + ": " + cudaGetErrorString(e));
  }
}

// A size past all reason may be called invalid, which is no sign of a device that has failed.
cudaError_t size_too_large(cudaError_t e) { return e == cudaErrorInvalidValue ? cudaErrorMemoryAllocation : e; }

cudaStream_t native(Stream s) { return reinterpret_cast<cudaStream_t>(s); }
cudaEvent_t native(Event e) { return reinterpret_cast<cudaEvent_t>(e); }
cudaGraphExec_t native(Graph g) { return reinterpret_cast<cudaGraphExec_t>(g); }

// Of this thread's device, beside what a kernel has for its argument.
int most_shared() {
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
    return kMostShared;
  return bytes - 2 * kMostArgument;
}

}  // namespace

Result<Info> open(int device) {
  int count = 0;
  AERIE_TRY(status(cudaGetDeviceCount(&count), "looking for devices"));
  if (count == 0) return status(cudaErrorNoDevice, "");
  if (device < 0 || device >= count)
    return error(Code::not_found, "cuda: device " + std::to_string(device) + " of " + std::to_string(count));
  AERIE_TRY(status(cudaSetDevice(device), "choosing the device"));
  cudaDeviceProp p;
  AERIE_TRY(status(cudaGetDeviceProperties(&p, device), "asking the device"));
  if (p.major < 8)
    return error(Code::unsupported, std::string("cuda: ") + p.name + " has compute capability " +
                                        std::to_string(p.major) + "." + std::to_string(p.minor) + ", 8.0 is needed");
  return Info{p.name, p.major, p.minor, static_cast<uint32_t>(most_shared())};
}
Status attach(int device) { return status(cudaSetDevice(device), "choosing the device"); }

Result<void*> allocate(size_t bytes) {
  void* p = nullptr;
  AERIE_TRY(status(size_too_large(cudaMalloc(&p, bytes)), "allocating"));
  return p;
}
void release(void* memory) { (void)cudaFree(memory); }
Result<void*> allocate_pinned(size_t bytes) {
  void* p = nullptr;
  AERIE_TRY(status(size_too_large(cudaMallocHost(&p, bytes)), "allocating pinned memory"));
  return p;
}
void release_pinned(void* memory) { (void)cudaFreeHost(memory); }

Result<Stream> make_stream() {
  cudaStream_t s = nullptr;
  AERIE_TRY(status(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "making a stream"));
  return reinterpret_cast<Stream>(s);
}
void destroy(Stream stream) { (void)cudaStreamDestroy(native(stream)); }
Result<Event> make_event() {
  cudaEvent_t e = nullptr;
  AERIE_TRY(status(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "making an event"));
  return reinterpret_cast<Event>(e);
}
void destroy(Event event) { (void)cudaEventDestroy(native(event)); }
Status record(Event event, Stream stream) {
  return status(cudaEventRecord(native(event), native(stream)), "recording an event");
}
Result<bool> reached(Event event) {
  const cudaError_t e = cudaEventQuery(native(event));
  if (e == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  AERIE_TRY(status(e, "running a plan"));
  return true;
}
Status wait(Event event) { return status(cudaEventSynchronize(native(event)), "running a plan"); }
Status wait(Stream stream) { return status(cudaStreamSynchronize(native(stream)), "running a plan"); }

Status copy_to_device(void* device, const void* host, size_t bytes, Stream stream) {
  return status(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, native(stream)), "copying to the device");
}
Status copy_to_host(void* host, const void* device, size_t bytes, Stream stream) {
  return status(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, native(stream)), "copying to the host");
}

Status begin_capture(Stream stream) {
  return status(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal), "capturing a plan");
}
Result<Graph> end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  AERIE_TRY(status(cudaStreamEndCapture(native(stream), &graph), "capturing a plan"));
  cudaGraphExec_t ready = nullptr;
  const Status s = status(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
  (void)cudaGraphDestroy(graph);
  AERIE_TRY(s);
  return reinterpret_cast<Graph>(ready);
}
Status run(Graph graph, Stream stream) { return status(cudaGraphLaunch(native(graph), native(stream)), "starting a graph"); }
void destroy(Graph graph) { (void)cudaGraphExecDestroy(native(graph)); }

// Graphs know of it since CUDA 12.3. Code for an older device, brought to a newer one by its PTX, does not wait.
bool can_be_early([[maybe_unused]] Kernel kernel) {
#if CUDART_VERSION >= 12030
  cudaFuncAttributes a;
  int device = 0, major = 0;
  const bool known = cudaFuncGetAttributes(&a, kernel) == cudaSuccess && cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  (void)cudaGetLastError();
  return known && major >= 9 && a.ptxVersion >= 90;
#else
  return false;
#endif
}

Status launch(const Launch& l, const void* argument, Stream stream, bool early, bool all_shared) {
  if (l.shared_bytes > (48 << 10) - kMostArgument)  // with its argument maybe more than a kernel may have unasked
    AERIE_TRY(status(cudaFuncSetAttribute(l.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared()), "asking for shared memory"));
  if (all_shared)
    AERIE_TRY(status(cudaFuncSetAttribute(l.kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "asking for shared memory"));
  void* arguments[] = {&argument};
  cudaLaunchAttribute behind{};
  behind.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  behind.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(l.x, l.y, l.z);
  config.blockDim = dim3(l.threads);
  config.dynamicSmemBytes = l.shared_bytes;
  config.stream = native(stream);
  config.attrs = &behind;
  config.numAttrs = early ? 1 : 0;
  return status(cudaLaunchKernelExC(&config, l.kernel, arguments), "starting a kernel");
}

}  // namespace aerie::kernels::cuda::gpu
