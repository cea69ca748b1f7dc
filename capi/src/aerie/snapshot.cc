// Saved sessions: to a buffer or file of the host's and back.
#include "capi/src/aerie/handles.h"
#include "core/platform/file.h"

using namespace aerie;
using namespace aerie::capi;

namespace {

Status restore(aerie_model* model, const aerie_session_options* options, std::span<const uint8_t> bytes, aerie_session** out) {
  SessionOptions s;
  AERIE_TRY(read_session(options, &s));
  auto handle = session_handle(model->runtime);
  AERIE_ASSIGN(handle->session, Session::restore(model->model, std::move(s), bytes));
  *out = handle.release();
  return {};
}

}  // namespace

extern "C" {

int32_t aerie_session_save(aerie_session* session, void* buffer, size_t capacity, size_t* size, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(size, "size"));
    if (capacity > 0) AERIE_TRY(require(buffer, "buffer"));
    return s.save({static_cast<uint8_t*>(buffer), capacity}, size);
  });
}

int32_t aerie_session_save_file(aerie_session* session, const char* path, aerie_error* err) {
  return on_session(session, err, [&](Session& s) -> Status {
    AERIE_TRY(require(path, "path"));
    AERIE_ASSIGN(const auto file, platform::AtomicFile::create(path));
    size_t size = 0;
    AERIE_TRY(s.save({}, &size));
    std::vector<uint8_t> bytes(size);
    AERIE_TRY(s.save(bytes, &size));
    bytes.resize(size);  // less, if a drafter has become unusable
    AERIE_TRY(file->append(bytes));
    return file->commit();
  });
}

int32_t aerie_session_restore(aerie_model* model, const aerie_session_options* options, const void* data, size_t size,
                              aerie_session** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(data, "data"));
    AERIE_TRY(require(out, "out"));
    return restore(model, options, {static_cast<const uint8_t*>(data), size}, out);
  });
}

int32_t aerie_session_restore_file(aerie_model* model, const aerie_session_options* options, const char* path,
                                   aerie_session** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(model, "model"));
    AERIE_TRY(require(path, "path"));
    AERIE_TRY(require(out, "out"));
    AERIE_ASSIGN(const auto file, platform::MappedFile::open(path));
    return restore(model, options, file->bytes(), out).at(path);
  });
}

}  // extern "C"
