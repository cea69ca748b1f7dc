// gpu.h without a GPU: streams are lists of work that is done when somebody asks whether it is done, so what relies on
// work being done earlier fails. Device memory is host memory here (the mock device tells the two apart).
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "kernels/cuda/gpu.h"
#include "tests/support/cuda_emulation/emulation.h"

namespace aerie::kernels::cuda {
namespace {

using Work = std::function<std::string()>;  // what went wrong, if it did

struct EmulatedStream {
  std::deque<Work> work;
  std::vector<Work>* capture = nullptr;
  bool kernel_last = false;  // what was put here last is a kernel
};
struct EmulatedEvent {
  EmulatedStream* stream = nullptr;
  std::shared_ptr<bool> reached;
};
struct EmulatedGraph {
  std::vector<Work> work;
  bool ran = false;
};

std::mutex mutex;
emulation::Faults faults;
int64_t allocated = 0;
emulation::Counts counted;
bool lost = false;
std::string lost_why;
std::map<void*, size_t> memory;

Status gone() { return error(Code::device, "cuda: running a plan: " + lost_why); }

thread_local int depth = 0;
struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
};

// One piece of work; false when there is none.
bool advance(EmulatedStream* s) {
  const Inside inside;
  if (s->work.empty()) return false;
  const Work w = std::move(s->work.front());
  s->work.pop_front();
  if (lost) return true;
  if (const std::string failure = w(); !failure.empty()) {
    const std::lock_guard lock(mutex);
    lost = true;
    lost_why = failure;
  }
  return true;
}

void put(EmulatedStream* s, Work w) {
  s->kernel_last = false;
  if (s->capture)
    s->capture->push_back(std::move(w));
  else
    s->work.push_back(std::move(w));
}

EmulatedStream* native(gpu::Stream s) { return reinterpret_cast<EmulatedStream*>(s); }
EmulatedEvent* native(gpu::Event e) { return reinterpret_cast<EmulatedEvent*>(e); }
EmulatedGraph* native(gpu::Graph g) { return reinterpret_cast<EmulatedGraph*>(g); }

}  // namespace

namespace emulation {
bool inside() { return depth > 0; }
void set_faults(const Faults& f) {
  const std::lock_guard lock(mutex);
  faults = f;
  lost = false;
}
int64_t allocated_bytes() {
  const std::lock_guard lock(mutex);
  return allocated;
}
Counts counts() {
  const std::lock_guard lock(mutex);
  return counted;
}
}  // namespace emulation

namespace gpu {

Result<Info> open(int device) {
  if (faults.old_driver) return error(Code::device, "cuda: no NVIDIA driver, or one older than CUDA 13.0 needs");
  if (faults.devices == 0) return error(Code::device, "cuda: no CUDA device is present");
  if (device < 0 || device >= faults.devices) return error(Code::not_found, "cuda: device " + std::to_string(device));
  return Info{"emulated", 8, 0, emulation::most_shared_bytes()};
}
Status attach(int) { return {}; }

Result<void*> allocate(size_t bytes) {
  const std::lock_guard lock(mutex);
  if (lost) return gone();
  const bool room = allocated + static_cast<int64_t>(bytes) <= faults.memory;
  void* p = room ? ::operator new(bytes, std::align_val_t{256}, std::nothrow) : nullptr;
  if (!p) return error(Code::out_of_memory, "cuda: allocating: out of device memory");
  std::memset(p, 0xff, bytes);  // NaN
  memory[p] = bytes;
  ++counted.allocations;
  allocated += static_cast<int64_t>(bytes);
  return p;
}
void release(void* p) {
  if (!p) return;
  const std::lock_guard lock(mutex);
  allocated -= static_cast<int64_t>(memory.at(p));
  memory.erase(p);
  ::operator delete(p, std::align_val_t{256});
}
Result<void*> allocate_pinned(size_t bytes) { return allocate(bytes); }
void release_pinned(void* p) { release(p); }

Result<Stream> make_stream() {
  if (lost) return gone();
  return reinterpret_cast<Stream>(new EmulatedStream);
}
void destroy(Stream s) { delete native(s); }
Result<Event> make_event() { return reinterpret_cast<Event>(new EmulatedEvent); }
void destroy(Event e) { delete native(e); }
Status record(Event e, Stream s) {
  const Inside inside;
  {
    const std::lock_guard lock(mutex);
    ++counted.host_waits;
  }
  native(e)->stream = native(s);
  native(e)->reached = std::make_shared<bool>(false);
  put(native(s), [flag = native(e)->reached] {
    *flag = true;
    return std::string();
  });
  return {};
}
Result<bool> reached(Event e) {
  for (int i = 0; i < 8 && !*native(e)->reached; ++i)  // a little of it
    if (!advance(native(e)->stream)) break;
  if (lost) return gone();
  return *native(e)->reached;
}
Status wait(Event e) {
  while (!*native(e)->reached && !lost && advance(native(e)->stream)) {
  }
  if (lost) return gone();
  return {};
}
Status wait(Stream s) {
  while (advance(native(s))) {
  }
  if (lost) return gone();
  return {};
}

Status copy_to_device(void* device, const void* host, size_t bytes, Stream stream) {
  const Inside inside;
  put(native(stream), [=] {
    std::memcpy(device, host, bytes);
    return std::string();
  });
  return {};
}
Status copy_to_host(void* host, const void* device, size_t bytes, Stream stream) {
  return copy_to_device(host, device, bytes, stream);
}

Status load_products() {
  return faults.no_products ? error(Code::unsupported, "cuda: fast products need an emulation that has them") : Status();
}
Status multiply(const Product& p, Stream s) {
  {
    const std::lock_guard lock(mutex);
    ++counted.products;
  }
  put(native(s), [p] {
    const auto value = [](uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); };
    for (int64_t r = 0; r < p.count; ++r)
      for (int64_t n = 0; n < p.outputs; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < p.width; ++k) sum += double{value(p.rows[r * p.width + k])} * value(p.weights[n * p.width + k]);
        p.out[r * p.outputs + n] = static_cast<float>(sum);
      }
    return std::string();
  });
  return {};
}

Status begin_capture(Stream s) {
  native(s)->capture = new std::vector<Work>;
  return {};
}
Result<Graph> end_capture(Stream s) {
  const std::unique_ptr<std::vector<Work>> work(native(s)->capture);
  native(s)->capture = nullptr;
  const std::lock_guard lock(mutex);
  ++counted.captures;
  if (faults.no_graphs) return error(Code::out_of_memory, "cuda: making a graph: out of device memory");
  ++counted.graphs;
  return reinterpret_cast<Graph>(new EmulatedGraph{std::move(*work)});
}
Status run(Graph g, Stream s) {
  const Inside inside;
  {
    const std::lock_guard lock(mutex);
    if (faults.no_graph_runs && !native(g)->ran) return error(Code::out_of_memory, "cuda: starting a graph: out of device memory");
    native(g)->ran = true;
    ++counted.graph_launches;
  }
  for (const Work& w : native(g)->work) put(native(s), w);
  return {};
}
void destroy(Graph g) {
  {
    const std::lock_guard lock(mutex);
    --counted.graphs;
  }
  delete native(g);
}

bool can_be_early(Kernel) { return true; }
Status launch(const Launch& l, const void* argument, Stream stream, bool early, bool) {
  const Inside inside;
  if (early && !native(stream)->kernel_last) return error(Code::internal, "cuda: a kernel before what is none");
  put(native(stream), [=]() -> std::string {
    {
      const std::lock_guard lock(mutex);
      ++counted.kernels;
      if (faults.launches == 0) return "the device has gone";
      if (faults.launches > 0) --faults.launches;
    }
    const auto kernel = reinterpret_cast<void (*)(const void*)>(l.kernel);
    return emulation::run_grid({l.x, l.y, l.z}, l.threads, l.shared_bytes, [=] { kernel(argument); });
  });
  native(stream)->kernel_last = true;
  return {};
}

}  // namespace gpu
}  // namespace aerie::kernels::cuda
