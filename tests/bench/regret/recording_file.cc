// Recordings kept in a file, for another replay of the same: host byte order, this build only.
#include <fstream>

#include "tests/bench/regret/recording.h"

namespace aerie::bench {

namespace {

template <class T>
void put(std::ofstream& out, const std::vector<T>& v) {
  const auto n = static_cast<int64_t>(v.size());
  out.write(reinterpret_cast<const char*>(&n), sizeof n);
  out.write(reinterpret_cast<const char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(T)));
}
template <class T>
bool get(std::ifstream& in, std::vector<T>* v) {
  int64_t n = 0;
  if (!in.read(reinterpret_cast<char*>(&n), sizeof n) || n < 0 || n > (1 << 24)) return false;
  v->resize(static_cast<size_t>(n));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(v->data()), static_cast<std::streamsize>(v->size() * sizeof(T))));
}

}  // namespace

bool save_recording(const Recording& r, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  put(out, std::vector<int64_t>{static_cast<int64_t>(r.kind), r.max_depth, static_cast<int64_t>(r.texts.size())});
  for (const RecordedText& t : r.texts) {
    put(out, std::vector<int64_t>{t.prompt, static_cast<int64_t>(t.trees.size())});
    put(out, t.truth);
    for (const WideTree& w : t.trees) put(out, w.nodes);
  }
  return static_cast<bool>(out.flush());
}

bool load_recording(const std::string& path, Recording* r) {
  std::ifstream in(path, std::ios::binary);
  std::vector<int64_t> head;
  if (!in || !get(in, &head) || head.size() != 3) return false;
  r->kind = static_cast<DrafterKind>(head[0]);
  r->max_depth = static_cast<int32_t>(head[1]);
  r->texts.resize(static_cast<size_t>(head[2]));
  for (RecordedText& t : r->texts) {
    if (!get(in, &head) || head.size() != 2 || !get(in, &t.truth)) return false;
    t.prompt = head[0];
    t.trees.resize(static_cast<size_t>(head[1]));
    for (WideTree& w : t.trees)
      if (!get(in, &w.nodes)) return false;
  }
  return true;
}

}  // namespace aerie::bench
