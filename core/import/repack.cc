// .aerie -> .aerie: another dtype or codec. The fingerprint stays: it is the same model.
#include "core/import/candidate_head.h"
#include "core/import/sink.h"
#include "kernels/cpu/cpu_device.h"

namespace aerie {

namespace {

SourceMatrix unpacked(const kernels::Tensor& t) {
  SourceMatrix m{t.rows, t.cols, std::vector<float>(static_cast<size_t>(t.rows * t.cols)), t.dtype};
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t c = 0; c < t.cols; ++c) m.values[static_cast<size_t>(r * t.cols + c)] = kernels::panel16_at(t, r, c);
  return m;
}

}  // namespace

Status import_package(const ConvertOptions& o, Sink& sink) {
  OpenOptions open;
  open.check_data = true;
  AERIE_ASSIGN(const auto package, Package::open(o.source, open));
  if (!o.drafter_for.empty()) {
    if (!package->drafter()) return error(Code::mismatch, o.source + ": a target package, not a drafter");
    AERIE_ASSIGN(const auto target, Package::open(o.drafter_for));
    if (!target->target()) return error(Code::mismatch, o.drafter_for + ": a drafter package, not a target");
    if (package->drafter()->target_fingerprint != target->fingerprint())
      return error(Code::mismatch, o.source + ": made for another target than " + o.drafter_for);
  }
  if (package->drafter() && o.candidate_rank != 0)
    return error(Code::invalid_argument, o.source + ": a drafter; a candidate head is part of its target");
  size_t done = 0;
  bool quantised = false;
  for (const TensorInfo& info : package->tensors()) {
    AERIE_ASSIGN(const kernels::Tensor t, package->tensor(info.name));
    const bool candidate = package->target() && info.name.starts_with("candidate.");
    const kernels::DType dtype = candidate ? candidate_dtype(o.dtype.of(t.dtype)) : o.dtype_of(info.name, t.dtype);
    if (candidate && o.candidate_rank != 0) {
      // Made anew, or not wanted.
    } else if (t.layout == kernels::Layout::row_major || t.dtype == dtype) {
      AERIE_TRY(sink.writer().add_tensor(info.name, t));
      if (o.candidate_rank > 0 && (info.name == "embed" || info.name == "lm_head"))
        sink.remember_head(info.name, unpacked(t));
    } else {
      quantised |= kernels::has_scales(t.dtype) && t.dtype != kernels::DType::mxfp4;  // which becomes only what holds it
      const SourceMatrix m = unpacked(t);
      sink.remember_head(info.name, m);
      AERIE_TRY(sink.pack(info.name, m.values, m.rows, m.cols, dtype));
    }
    if (o.progress && !o.progress(++done, package->tensors().size()))
      return error(Code::cancelled, o.source + ": conversion cancelled");
  }
  if (quantised) sink.warn(o.source + ": its weights were quantised before; converting the original loses less");
  for (const char* name : {"tokenizer", "chat_template"})
    if (const auto blob = package->blob(name); !blob.empty()) AERIE_TRY(sink.writer().add_blob(name, blob));
  sink.writer().set_name(package->name());
  sink.writer().set_fingerprint(package->fingerprint());
  if (package->target())
    sink.writer().set_target(*package->target());
  else
    sink.writer().set_drafter(*package->drafter());
  return {};
}

}  // namespace aerie
